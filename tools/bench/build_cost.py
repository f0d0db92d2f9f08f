#!/usr/bin/env python3
"""What a node costs to capture and to instantiate, in a long graph.

Makes a chain of products (see chain.py), runs `gexec compare` on it some times, each in a
process of its own, and tells the microseconds of capture and instantiation by node of the
graph. Needs a GPU.

    tools/bench/build_cost.py --gexec build/release/gexec --json build_cost.json

Exit status: 0 done and within the limit; 1 over it; 2 bad usage; 3 gexec does not run here.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile

from chain import FORMS, ROOT, chain


def build(gexec, path):
    """Nodes, capture and instantiation in seconds, and the card, of one process."""
    run = subprocess.run([gexec, "compare", path, "-q", "--pairs", "3", "--block", "4",
                          "--json", "-"], stdout=subprocess.PIPE)
    if run.returncode != 0:
        sys.exit(3 if run.returncode == 3 else
                 f"build_cost.py: gexec compare ended with status {run.returncode}")
    told = json.loads(run.stdout)
    costs = told["costs_s"]
    return told["graph_nodes"], costs["capture"], costs["instantiate"], told["environment"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gexec", default=os.path.join(ROOT, "build", "release", "gexec"))
    parser.add_argument("--products", type=int, default=1000, metavar="N")
    parser.add_argument("--repeats", type=int, default=5, metavar="N")
    parser.add_argument("--limit", type=float, default=8.0, metavar="US",
                        help="microseconds a node (default 8)")
    parser.add_argument("--json", metavar="FILE", help="raw results")
    args = parser.parse_args()
    if args.products < 1 or args.repeats < 1:
        parser.error("--products and --repeats: expected a number from 1")
    if not os.access(args.gexec, os.X_OK):
        print(f"build_cost.py: no program {args.gexec}; build it or name it with --gexec",
              file=sys.stderr)
        sys.exit(3)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "chain.yaml")
        for form, words in FORMS.items():
            with open(path, "w") as file:
                file.write(chain(args.products, form))
            runs = [build(args.gexec, path) for _ in range(args.repeats)]
            nodes, environment = runs[0][0], runs[0][3]
            us = [1e6 * (run[1] + run[2]) / run[0] for run in runs]
            median = statistics.median(us)
            print(f"{args.products} products, {words}: {nodes} nodes; capture "
                  f"{statistics.median(run[1] for run in runs) * 1e3:.2f} ms, instantiate "
                  f"{statistics.median(run[2] for run in runs) * 1e3:.2f} ms: {median:.2f} us "
                  f"a node ({min(us):.2f} to {max(us):.2f} in {args.repeats} runs)", flush=True)
            results.append({"form": form, "products": args.products, "nodes": nodes,
                            "us_a_node": median, "raw_us_a_node": us,
                            "raw_capture_s": [run[1] for run in runs],
                            "raw_instantiate_s": [run[2] for run in runs]})
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"date": datetime.datetime.now(datetime.timezone.utc)
                       .isoformat(timespec="seconds"), "environment": environment,
                       "limit_us": args.limit, "command": [os.path.basename(sys.argv[0]),
                                                           *sys.argv[1:]],
                       "results": results}, file, indent=1)
            file.write("\n")
    sys.exit(any(result["us_a_node"] > args.limit for result in results))


if __name__ == "__main__":
    main()
