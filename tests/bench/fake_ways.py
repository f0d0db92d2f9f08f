"""Stands in for gexec and for the peers' interpreter: answers as they do, with made-up times.

FAKE_WAYS names a file of JSON, by way: step_s, the seconds of a step; load, what `load` does
(hang once, hang in CASE, die, error); time, the same of `time`; shift, added to the losses;
ready, of gexec.
"""

import json
import os
import sys
import time

HELP = """  --steps-per-launch K     steps in one graph launch (default 1)
  --step-loop on           as a loop"""


def tell(answer):
    print(json.dumps(answer), flush=True)


def trouble(kind, rest=""):
    if (kind or "").startswith("hang in "):
        if kind[len("hang in "):] in rest:
            with open(os.environ["FAKE_WAYS"] + ".hung", "w"):
                time.sleep(600)
        return False
    if kind == "hang once":
        mark = os.environ["FAKE_WAYS"] + ".hung"
        if os.path.exists(mark):
            return False
        with open(mark, "w"):
            time.sleep(600)
    if kind == "die":
        print("a library said so", file=sys.stderr)
        sys.exit(7)
    if kind == "error":
        tell({"error": "RuntimeError: it cannot"})
    return bool(kind)


def main():
    words = sys.argv[1:]
    if words == ["--version"]:
        print("gexec 9.9")
        return
    if words[:2] == ["-m", "peer.values"]:
        return
    gexec = words[0] == "run"
    if gexec and "--help" in words:
        print(HELP)
        return
    if gexec:
        many = "--steps-per-launch" in words
        name = "gexec_loop" if "--step-loop" in words else "gexec_many" if many else "gexec"
        k = int(words[words.index("--steps-per-launch") + 1]) if many else 1
    else:
        name = words[1].replace("peer.with_", "") + "_" + words[2]
        k = int(words[4]) if name == "jax_scan" else 1
    with open(os.environ["FAKE_WAYS"]) as file:
        way = json.load(file).get(name, {})
    if gexec:
        if trouble(way.get("ready")):
            return
        tell({"ready": True, "environment": {"gexec": "9.9", "card": "A card",
                                             "toolkit_cuda": "13.0"}})
    else:
        tell({"hello": True, "version": "1.2", "card": "A card"})
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        if word == "quit":
            break
        if word in ("load", "time") and trouble(way.get(word), rest):
            continue
        if word == "time":
            seconds = int(rest) * way.get("step_s", 1e-4)
            assert int(rest) % k == 0
            tell({"wall_s": seconds, "device_s": None if name.startswith("jax") else seconds})
        elif word == "losses":
            shift = way.get("shift", 0)
            tell({"losses": [2 - i / 100 + shift for i in range(int(rest))]})
        elif word == "load":
            tell({"ready": True, "steps_per_launch": k})
        else:
            tell({word: True})


main()
