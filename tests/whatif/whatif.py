#!/usr/bin/env python3
"""Predictions of `gexec nsys` beside what the same steps take as CUDA graphs.

For each of four small programs (whatif_programs) and of gexec's example models: times eager
and graph, traces the eager steps under Nsight Systems, exports the trace, and has
`gexec nsys` predict the graph from it. Files that lie in --keep already are taken as they
are, so that predictions can be made again where there is no GPU.

    tests/whatif/whatif.py --build build/release --nsys nsys --keep traces --json whatif.json

Exit status: 0 every prediction lies within --limit of what was measured; 1 one does not;
2 bad usage; 3 no nsys, or no GPU.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools", "bench"))

from arguments import result_file  # noqa: E402

PROGRAMS = ("sync", "pageable", "streams", "chain")
# Traced steps: of the large model so many that clocks are those of a card under load.
MODELS = {"mnist_mlp": 12, "deep_narrow": 12, "digits_mlp": 12, "wide": 400}


def stop(status, message):
    print(f"whatif.py: {message}", file=sys.stderr)
    sys.exit(status)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"),
                        help="folder with gexec and tests/whatif_programs")
    parser.add_argument("--nsys", default="nsys")
    parser.add_argument("--importer", help="QdstrmImporter, for an nsys that leaves a .qdstrm")
    parser.add_argument("--only", metavar="LIST", help="of "
                        + ", ".join((*PROGRAMS, *MODELS)))
    parser.add_argument("--steps", type=int, help="traced steps of each model")
    parser.add_argument("--costs", help="file for gexec nsys --costs")
    parser.add_argument("--keep", metavar="DIR", help="where traces and timings are kept")
    parser.add_argument("--limit", type=float, default=0.10,
                        help="of the measured time (default 0.10)")
    parser.add_argument("--json", type=result_file, metavar="FILE")
    args = parser.parse_args()
    args.names = args.only.split(",") if args.only else [*PROGRAMS, *MODELS]
    for name in args.names:
        if name not in PROGRAMS and name not in MODELS:
            parser.error(f"no case is named '{name}'")
    args.gexec = os.path.join(args.build, "gexec")
    args.programs = os.path.join(args.build, "tests", "whatif_programs")
    return args


def run(command, status=0):
    """Runs it; what it wrote to standard output."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, cwd=ROOT, check=False)
    except OSError as error:
        stop(3, f"{command[0]}: {error.strerror}")
    if done.returncode != status:
        stop(3 if done.returncode == 3 else 1,
             f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout[-1000:]}"
             f"{done.stderr[-2000:]}")
    return done.stdout


def model_file(name):
    return os.path.join("graphs", "examples", name + ".yaml")


def measure(args, name, folder):
    """Times of both ways, untraced."""
    path = os.path.join(folder, name + ".truth.json")
    if not os.path.exists(path):
        if name in PROGRAMS:
            text = run([args.programs, name])
            with open(path, "w") as file:
                file.write(text)
        else:
            # One plan for the timing and for the trace.
            run([args.gexec, "compare", model_file(name), "--quiet", "--json", path,
                 "--plan", os.path.join(folder, name + ".plan")])
    with open(path) as file:
        found = json.load(file)
    if "ways" in found:
        return {"card": found["environment"]["card"],
                "eager_us": 1e6 * found["ways"]["eager"]["steady_s"]["median"],
                "graph_us": 1e6 * found["ways"]["graph"]["steady_s"]["median"],
                "sm_mhz": found["clocks"]["sm_mhz"]["median"]}
    return {key: found[key] for key in ("card", "eager_us", "graph_us")}


def trace(args, name, folder):
    """The export of a trace of eager steps."""
    path = os.path.join(folder, name + ".sqlite")
    base = os.path.join(folder, name)
    if os.path.exists(path):
        return path
    if name in PROGRAMS:
        command = [args.programs, name, "--trace"]
    else:
        command = [args.gexec, "run", model_file(name), "--eager", "--nsys-window",
                   "--evaluate", "never", "--quiet", "--steps", str(args.steps or MODELS[name])]
        plan = os.path.join(folder, name + ".plan")
        if os.path.exists(plan):
            command += ["--plan", plan]
    run([args.nsys, "profile", "--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none",
         "--capture-range=cudaProfilerApi", "--capture-range-end=stop",
         "--cuda-graph-trace=node", "--force-overwrite=true", "--output=" + base, *command])
    report = base + ".nsys-rep"
    if not os.path.exists(report) and os.path.exists(base + ".qdstrm"):
        if not args.importer:
            stop(3, f"nsys left {base}.qdstrm: name QdstrmImporter with --importer")
        run([args.importer, "-i", base + ".qdstrm", "-o", report])
    run([args.nsys, "export", "--type=sqlite", "--force-overwrite=true", "--output=" + path,
         report])
    return path


def predict(args, path):
    command = [args.gexec, "nsys", path, "--json", "-"]
    if args.costs:
        command += ["--costs", args.costs]
    return json.loads(run(command))["traces"][0]["as_graph"]


def judge(args, name, truth, prediction):
    result = {"name": name, "measured": truth, "prediction": prediction}
    if prediction["why_not"]:
        result["error"] = None
    else:
        result["error"] = prediction["step_ns"] / 1e3 / truth["graph_us"] - 1
    result["good"] = result["error"] is not None and abs(result["error"]) <= args.limit
    return result


def tell(result):
    prediction, truth = result["prediction"], result["measured"]
    if prediction["why_not"]:
        print(f"{result['name']:12s} n/a: {prediction['why_not']}")
        return
    print(f"{result['name']:12s} {prediction['step_ns'] / 1e3:10.2f}"
          f" {prediction['low_ns'] / 1e3:10.2f} {prediction['high_ns'] / 1e3:10.2f}"
          f" {prediction['kernel_sum_ns'] / 1e3:10.2f} {truth['graph_us']:10.2f}"
          f" {100 * result['error']:+8.1f}% {truth['eager_us']:10.2f}"
          f"{'' if result['good'] else '   beyond the limit'}")
    for one in prediction["in_the_way"]:
        print(f"{'':12s} {one['what']} {one['name'] or ''}: {one['a_step']:.3g} a step")


def main():
    args = arguments()
    folder = os.path.abspath(args.keep) if args.keep else tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    print(f"{'us a step':12s} {'predicted':>10s} {'low':>10s} {'high':>10s} {'kernel sum':>10s}"
          f" {'measured':>10s} {'error':>9s} {'eager':>10s}")
    results = []
    try:
        for name in args.names:
            truth = measure(args, name, folder)
            results.append(judge(args, name, truth, predict(args, trace(args, name, folder))))
            tell(results[-1])
            sys.stdout.flush()
    finally:
        if not args.keep:
            shutil.rmtree(folder)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"limit": args.limit, "results": results}, file, indent=1)
            file.write("\n")
    return 0 if all(result["good"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
