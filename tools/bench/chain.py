#!/usr/bin/env python3
"""How long a long model takes to become a plan: parsed, checked, expanded, laid out.

Makes chains of products, over one shared parameter and with a parameter, a bias and an
activation each, runs `gexec plan --stage layout --device cpu` on one core, and tells seconds
(of the clock, and of the processor) and memory by length.

    tools/bench/chain.py --gexec build/cpu/gexec --json chain.json
    tools/bench/chain.py --write 1000 own > chain.yaml       only makes a model

Exit status: 0 done; 2 bad usage; 3 gexec does not run.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

from arguments import need_gexec, result_file
from whole import write_whole

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FORMS = {"shared": "one parameter for all", "own": "a parameter, bias and relu each"}
LENGTHS = (1000, 3000, 10000, 30000, 100000)
REPEATS = 5


def chain(length, form):
    """A model that runs as it stands, and whose values are finite at any length."""
    lines = ["gexec: 1", "name: chain", "precision: f32", "inputs:",
             "  x: {shape: [32, 32], init: normal}", "params:"]
    if form == "shared":
        # A power of one matrix: what shrinks under each product ends at 0, not in infinities.
        lines += ["  w: {shape: [32, 32], init: {uniform: [-0.1, 0.1]}}"]
    else:
        for i in range(length):
            lines += [f"  w{i}: {{shape: [32, 32], init: he_normal}}",
                      f"  b{i}: {{shape: [32], init: zeros}}"]
    lines += ["ops:"]
    before = "x"
    for i in range(length):
        rest = "b: w" if form == "shared" else \
            f"b: w{i}, epilogue: {{bias: b{i}, act: relu}}"
        lines += [f"  - {{op: gemm, name: y{i}, a: {before}, {rest}}}"]
        before = f"y{i}"
    return "\n".join([*lines, f"outputs: [{before}]", ""])


def plan(gexec, path):
    """Seconds of the clock and of the processor, and peak KiB."""
    begin = time.perf_counter()
    child = subprocess.Popen([gexec, "plan", path, "--device", "cpu", "--stage", "layout",
                              "-q"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begin
    if status != 0:
        print(f"chain.py: gexec ended with status {os.waitstatus_to_exitcode(status)}",
              file=sys.stderr)
        sys.exit(3)
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gexec", default=os.path.join(ROOT, "build", "cpu", "gexec"))
    parser.add_argument("--write", nargs=2, metavar=("LENGTH", "FORM"))
    parser.add_argument("--json", type=result_file, metavar="FILE", help="raw results, written after each length")
    args = parser.parse_args()
    if args.write:
        try:
            length, form = int(args.write[0]), args.write[1]
        except ValueError:
            length, form = 0, None
        if length < 1 or form not in FORMS:
            parser.error(f"--write: expected a length from 1 and one of {', '.join(FORMS)}")
        sys.stdout.write(chain(length, form))
        return
    need_gexec(args.gexec)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    report = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
              "machine": platform.machine(), "cores_used": 1,
              "command": [os.path.basename(sys.argv[0]), *sys.argv[1:]],
              "points_planned": len(FORMS) * len(LENGTHS), "results": []}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "chain.yaml")
        for form, words in FORMS.items():
            print(f"{words}\n  {'products':>8}  {'s':>7}  {'CPU s':>7}  {'us each':>7}  {'peak MB':>7}")
            for length in LENGTHS:
                with open(path, "w") as file:
                    file.write(chain(length, form))
                runs = [plan(args.gexec, path) for _ in range(REPEATS)]
                seconds = statistics.median(run[0] for run in runs)
                cpu = statistics.median(run[1] for run in runs)
                peak = max(run[2] for run in runs) * 1024 / 1e6
                print(f"  {length:8d}  {seconds:7.3f}  {cpu:7.3f}  {cpu / length * 1e6:7.2f}"
                      f"  {peak:7.0f}", flush=True)
                report["results"].append({"form": form, "products": length, "median_s": seconds,
                                          "median_cpu_s": cpu, "peak_mb": peak,
                                          "raw_s": [run[0] for run in runs],
                                          "raw_cpu_s": [run[1] for run in runs]})
                if args.json:
                    write_whole(args.json, json.dumps(report, indent=1) + "\n",
                                len(report["results"]) == report["points_planned"])


if __name__ == "__main__":
    main()
