#!/usr/bin/env python3
"""What a node costs to capture and to instantiate, in a long graph.

Makes a chain of products (see chain.py), runs `gexec compare` on it some times, each in a
process of its own, and tells the microseconds of capture and instantiation by node of the
graph. Needs a GPU.

    tools/bench/build_cost.py --gexec build/release/gexec --json build_cost.json

Exit status: 0 done and within the limit; 1 over it, or bits differ between an eager step and a
replay; 2 bad usage; 3 gexec does not run here, or time was out before all was done, which is
written and told as it comes.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from arguments import need_gexec, number, result_file, seconds
from chain import FORMS, ROOT, chain
from whole import write_whole


class Failed(Exception):
    """Why a run has no result, and with which status the script ends."""

    def __init__(self, reason, status=3):
        super().__init__(reason)
        self.status = status


def build(gexec, path, flags, limit_s):
    """Nodes, capture and instantiation in seconds, and the environment, of one process."""
    command = [gexec, "compare", path, "-q", "--pairs", "3", "--block", "4", "--json", "-",
               *flags.split()]
    try:
        run = subprocess.run(command, stdout=subprocess.PIPE, timeout=max(limit_s, 0.1))
    except subprocess.TimeoutExpired:
        raise Failed("no time left") from None
    if run.returncode == 1:
        raise Failed("gexec compare found that bits differ", 1)
    if run.returncode != 0:
        # What gexec calls bad usage is in --flags: the model is made here.
        raise Failed(f"gexec compare ended with status {run.returncode}",
                     2 if run.returncode == 2 else 3)
    try:
        told = json.loads(run.stdout)
        costs = told["costs_s"]
        return told["graph_nodes"], costs["capture"], costs["instantiate"], told["environment"]
    except (KeyError, TypeError, ValueError):
        raise Failed("gexec compare told no costs") from None


def driver_version():
    try:
        return subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
            capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None


def measure(args, form, path, end):
    """The result of one form and the environment, None where not one run was done; and the
    Failed that says why runs are missing, if they are."""
    runs, failed = [], None
    for _ in range(args.repeats):
        try:
            runs.append(build(args.gexec, path, args.flags, end - time.monotonic()))
        except Failed as reason:
            failed = reason
            break
    if not runs:
        return None, None, failed
    us = [1e6 * (run[1] + run[2]) / run[0] for run in runs]
    median = statistics.median(us)
    print(f"{args.products} products, {FORMS[form]}: {runs[0][0]} nodes; capture "
          f"{statistics.median(run[1] for run in runs) * 1e3:.2f} ms, instantiate "
          f"{statistics.median(run[2] for run in runs) * 1e3:.2f} ms: {median:.2f} us "
          f"a node ({min(us):.2f} to {max(us):.2f} in {len(runs)} runs)", flush=True)
    return {"form": form, "products": args.products, "nodes": runs[0][0], "us_a_node": median,
            "raw_us_a_node": us, "raw_capture_s": [run[1] for run in runs],
            "raw_instantiate_s": [run[2] for run in runs]}, runs[0][3], failed


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gexec", default=os.path.join(ROOT, "build", "release", "gexec"))
    parser.add_argument("--products", type=int, default=1000, metavar="N")
    parser.add_argument("--repeats", type=int, default=5, metavar="N")
    parser.add_argument("--limit", type=number(0, 1000000), default=8.0, metavar="US",
                        help="microseconds a node (default 8)")
    parser.add_argument("--flags", default="", help="more flags for gexec compare")
    parser.add_argument("--budget", type=seconds, default=540, metavar="S",
                        help="seconds for everything (default 540)")
    parser.add_argument("--commit", metavar="NAME", help="what is measured, for the record")
    parser.add_argument("--json", type=result_file, metavar="FILE",
                        help="raw results, written after each form")
    args = parser.parse_args()
    if args.products < 1 or args.repeats < 1:
        parser.error("--products and --repeats: expected a number from 1")
    need_gexec(args.gexec)
    end = time.monotonic() + args.budget
    report = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
              "environment": None, "driver": driver_version(), "commit": args.commit,
              "limit_us": args.limit, "command": [os.path.basename(sys.argv[0]), *sys.argv[1:]],
              "results": [], "missing": {}}
    statuses = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "chain.yaml")
        for form in FORMS:
            with open(path, "w") as file:
                file.write(chain(args.products, form))
            result, environment, failed = measure(args, form, path, end)
            if result:
                report["results"].append(result)
                report["environment"] = environment
            if failed:
                report["missing"][form] = str(failed)
                statuses.append(failed.status)
                print(f"build_cost.py: {FORMS[form]}: {failed}", file=sys.stderr)
            if args.json:
                write_whole(args.json, json.dumps(report, indent=1) + "\n",
                            form == list(FORMS)[-1])
    if statuses:
        sys.exit(min(statuses))  # bits that differ weigh more than what was not done
    sys.exit(any(result["us_a_node"] > args.limit for result in report["results"]))


if __name__ == "__main__":
    main()
