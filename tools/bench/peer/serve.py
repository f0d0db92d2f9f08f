"""A peer's side of the pipe, in the words of gexec run --blocks.

    load FILE   makes and warms the step of case.json; answers {"ready": true, ...}
    reset       back to the start
    time N      N steps from an idle device; answers wall_s and device_s (null where no
                events were taken)
    losses N    runs N steps and tells the loss of each
    unload      frees what load made
    quit
"""

import gc
import json
import os
import sys
import time
import traceback


def serve(hello, load, free):
    """`load(case)` makes an object with reset(), block(n), losses(n), steps_per_launch;
    free() gives memory of the device back once the object is gone."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    sys.stdout = sys.stderr

    def tell(answer):
        out.write(json.dumps(answer) + "\n")
        out.flush()

    runner = None

    def obey(word, rest):
        nonlocal runner
        if word == "load":
            runner = None
            gc.collect()
            free()
            begin = time.perf_counter()
            with open(rest) as file:
                runner = load(json.load(file))
            return {"ready": True, "steps_per_launch": runner.steps_per_launch,
                    "prepare_s": time.perf_counter() - begin}
        if word == "unload":
            runner = None
            gc.collect()
            free()
            return {"unloaded": True}
        if runner is None:
            raise RuntimeError("nothing is loaded")
        if word == "reset":
            runner.reset()
            return {"reset": True}
        if word == "time":
            wall, device = runner.block(int(rest))
            return {"steps": int(rest), "wall_s": wall, "device_s": device}
        if word == "losses":
            return {"losses": runner.losses(int(rest))}
        raise ValueError(f"{word!r} is no command")

    tell({"hello": True, **hello})
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        if word == "quit":
            break
        try:
            answer = obey(word, rest)
        except Exception as error:  # whatever a library throws is this way's reason
            traceback.print_exc()
            text = " ".join(str(error).split())
            answer = {"error": f"{type(error).__name__}: {text}"[:300]}
        tell(answer)
