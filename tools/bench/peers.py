#!/usr/bin/env python3
"""gexec beside its peers on one training step, on one card, in alternating blocks.

Every way starts from the same values and trains on one batch that stays on the device. In each
round every way runs one block, in random order. gexec and each form of a peer are processes of
their own, asked for blocks through a pipe. tools/bench/README.md has the method.

    tools/bench/peers.py --gexec build/release/gexec --ceilings doctor.json --json out.json
    tools/bench/peers.py --workloads deep_narrow --types bf16 --peers torch_graph,jax_scan
    tools/bench/peers.py --random 6 --seed 5 --types tf32,bf16 --json random.json
    tools/bench/peers.py --workloads tiny --device cpu     the curves alone, no GPU

Exit status: 0 done; 1 losses differ by more than their bound; 2 bad usage; 3 gexec or every
peer failed somewhere, or time was out before some case; 130, 143 stopped by a signal, with
what was done.
"""

import argparse
import contextlib
import datetime
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time

from arguments import need_gexec, result_file, result_folder, seconds, words_of
from peer import ahead, cases, child, floors, rounds, table, values
from peer.child import Failed
from whole import write_whole

RANDOM_PEERS = ("torch_compile", "torch_compile_all", "jax_jit", "jax_scan")


class Stopped(Exception):
    """A signal came."""

    def __init__(self, number, _):
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.status = 128 + number

    @classmethod
    def at_signals(cls):
        """The first that comes; later ones do not disturb what it ends."""
        def handle(number, frame):
            for each in (signal.SIGTERM, signal.SIGINT):
                signal.signal(each, signal.SIG_IGN)
            child.Child.hurry = True
            raise cls(number, frame)

        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, handle)


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--gexec", default=os.path.join(cases.ROOT, "build", "release", "gexec"))
    add("--python", default=sys.executable,
        help="the peers' interpreter, with numpy, PyTorch and JAX (default: this one)")
    add("--workloads", metavar="LIST", help="of " + ", ".join(cases.WORKLOADS)
        + " (default: the first three, none with --random)")
    add("--types", default="tf32,bf16", metavar="LIST", help="of " + ", ".join(cases.TYPES))
    add("--peers", metavar="LIST", help="of " + ", ".join(table.PEERS) + " (default: all; of "
        "random shapes alone: " + ", ".join(RANDOM_PEERS) + ")")
    add("--ours", default="gexec,gexec_many", metavar="LIST",
        help="of " + ", ".join(table.OURS) + ", gexec among them (default: the first two)")
    add("--random", type=int, default=0, metavar="N",
        help="N shapes drawn at random, the types in turn: " + cases.RANGE_WORDS)
    add("--first", type=int, default=0, metavar="I",
        help="the first of the shapes drawn, from 0 (default 0)")
    add("--seed", type=int, default=1, help="of values, shapes and orders (default 1)")
    add("--pairs", type=int, default=15, help="rounds (default 15)")
    add("--many", type=int, default=50, metavar="K",
        help="steps a launch of gexec_many, gexec_loop and jax_scan (default 50)")
    add("--device", choices=("gpu", "cpu"), default="gpu",
        help="cpu: losses alone, of the ways that a CPU has")
    add("--limit", type=seconds, default=90, metavar="S",
        help="seconds that a way may take to be ready, or for an answer (default 90)")
    add("--jobs", type=int, default=0, metavar="N", help="processes that compile ahead "
        "(default: half the cores)")
    add("--compile-limit", type=seconds, default=240, metavar="S",
        help="seconds for all that is compiled ahead (default 240)")
    add("--budget", type=seconds, default=540, metavar="S",
        help="seconds for everything; what no longer fits is named (default 540)")
    add("--ceilings", metavar="FILE", help="JSON of gexec doctor --measure, for the floors")
    add("--flags", default="", help="more flags for gexec run")
    add("--keep", type=result_folder, metavar="DIR",
        help="keep the written models and all messages there")
    add("--commit", metavar="NAME", help="what is measured, for the record")
    add("--json", type=result_file, metavar="FILE", help="raw results, written after each case")
    add("--markdown", type=result_file, metavar="FILE",
        help="the tables; they are printed in any case")
    return parser


def arguments():
    parser = make_parser()
    args = parser.parse_args()
    default = "" if args.random else ",".join(list(cases.WORKLOADS)[:3])
    text = default if args.workloads is None else args.workloads
    args.workloads = words_of(parser, "--workloads", text, cases.WORKLOADS) if text else []
    args.types = words_of(parser, "--types", args.types, cases.TYPES)
    if args.peers is None:
        args.peers = RANDOM_PEERS if args.random and not args.workloads else table.PEERS
        args.peers = list(args.peers)
    else:
        args.peers = words_of(parser, "--peers", args.peers, table.PEERS)
    args.ours = words_of(parser, "--ours", args.ours, table.OURS)
    if "gexec" not in args.ours:
        parser.error("--ours: gexec has to be among them")
    for name, least in (("pairs", 1), ("random", 0), ("first", 0), ("seed", 0), ("many", 2),
                        ("jobs", 0)):
        if getattr(args, name) < least:
            parser.error(f"--{name}: expected {least} or more")
    if args.many > 4096:
        parser.error("--many: expected at most 4096")
    if not args.workloads and not args.random:
        parser.error("--workloads: expected some, or --random")
    try:
        args.ceilings = (None if args.ceilings is None else
                         floors.read_ceilings(args.ceilings))
    except (OSError, ValueError) as error:
        parser.error(f"--ceilings: {error}")
    args.gexec = os.path.abspath(args.gexec)
    if os.sep in args.python:
        args.python = os.path.abspath(args.python)
    return args


# --- one case -------------------------------------------------------------------------


def gexec_lacks(args):
    """Why gexec cannot run many steps a launch, if so."""
    text = subprocess.run([args.gexec, "run", "--help"], capture_output=True, text=True).stdout
    many = [name for name in args.ours if name != "gexec"]
    if args.device == "cpu":
        return {name: "needs a GPU" for name in many}
    needs = {"gexec_many": "--steps-per-launch", "gexec_loop": "--step-loop"}
    return {name: f"this gexec has no {needs[name]}" for name in many
            if needs[name] not in text}


class Prepared:
    """A case with its files in a folder of its own, or the reason why it has none."""

    def __init__(self, args, case, parent):
        self.case, self.files, self.reason = case, {}, None
        self.folder = os.path.join(parent, f"{case.name}_{case.precision}")
        self.model = os.path.join(self.folder, "model.yaml")
        os.mkdir(self.folder)
        try:
            self.files = values.prepare(case, self.folder, args.seed, args.python)
        except Failed as reason:
            self.reason = str(reason)
        if args.keep:
            name = os.path.join(args.keep, f"{case.name}_{case.precision}.yaml")
            with open(name, "w") as file:
                file.write(cases.model_text(case))

    @property
    def path(self):
        """case.json, where the values are there."""
        return None if self.reason else os.path.join(self.folder, "case.json")


def all_ways(args):
    """In the order in which they are made ready: what takes long comes last."""
    return args.ours + sorted(args.peers, key=lambda name: name in ahead.SLOW)


def open_ways(args, prepared, peers, lacking, clock, stack):
    """The ways that are ready, one after the other, for each measures on an idle card."""
    ways, failed = {}, dict(lacking)
    for name in all_ways(args):
        if name in failed:
            continue
        limit = clock.to_be_ready()
        if limit < 1:
            failed[name] = "no time left"
            continue
        begin = time.monotonic()
        try:
            if name.startswith("gexec"):
                log = os.path.join(peers.folder, f"{os.path.basename(prepared.folder)}_{name}.log")
                ways[name] = child.gexec(args, name, prepared.model, prepared.files, log, limit)
                stack.callback(ways[name].child.close)
            else:
                stack.callback(peers.unload, name)
                ways[name] = peers.load(name, prepared.path, limit)
            ways[name].ready["ready_after_s"] = time.monotonic() - begin
        except Failed as reason:
            failed[name] = str(reason)
    return ways, failed


def measure(args, prepared, peers, lacking, clock):
    case = prepared.case
    result = {"workload": case.name, "precision": case.precision, "shape": case.words(),
              "case": {"batch": case.batch, "widths": case.widths,
                       "activation": case.activation, "loss": case.loss},
              "loss_bound": rounds.LOSS_BOUND[case.precision],
              "floor": floors.floor(case, args.ceilings), "block_steps": {}, "orders": [],
              "steady_s": {}, "times_faster": {}, "blocks": {}}
    with contextlib.ExitStack() as stack:
        if prepared.reason:
            ways, failed = {}, {name: prepared.reason for name in all_ways(args)}
        else:
            ways, failed = open_ways(args, prepared, peers, lacking, clock, stack)
        result["ready"] = {name: way.ready for name, way in ways.items()}
        result["losses"] = rounds.curves(ways, failed, clock)
        if args.device == "gpu" and ways:
            try:
                result["block_steps"], result["blocks"], result["orders"] = rounds.alternate(
                    ways, failed, args.pairs, args.seed, clock)
            except Failed as reason:
                for name in ways:
                    failed[name] = str(reason)
    add_figures(result)
    result["failed"] = failed
    return result


def add_figures(result):
    blocks, losses = result["blocks"], result["losses"]
    result["steady_s"] = {name: rounds.steady(found) for name, found in blocks.items()}
    result["loss_difference"] = {}
    for ours in table.OURS:
        if ours in blocks:
            result["times_faster"][ours] = {
                name: rounds.times_faster(blocks[ours], found)
                for name, found in blocks.items() if name in table.PEERS}
        if ours in losses:
            result["loss_difference"][ours] = {
                name: rounds.difference(losses[ours], found, result["precision"])
                for name, found in losses.items() if name in table.PEERS}
    peers = [name for name in losses if name in table.PEERS]
    result["peers_apart"] = {
        name: max((rounds.difference(losses[other], losses[name], result["precision"])
                   for other in peers if other != name), default=0) for name in peers}


# --- all of them ----------------------------------------------------------------------


def driver_version():
    try:
        return subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
            capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None


def environment(args, hello):
    versions = {}
    for name, found in hello.items():
        versions["torch" if name.startswith("torch") else "JAX"] = found["version"]
    return {"card": next((found["card"] for found in hello.values() if "card" in found), None),
            "driver": driver_version(), "toolkit": None, "versions": versions,
            "python": sys.version.split()[0], "cores": os.cpu_count(),
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "commit": args.commit, "command": ["peers.py", *sys.argv[1:]]}


def add_gexec(env, result):
    """The card and the toolkit, as gexec names them."""
    found = result["ready"].get("gexec", {}).get("environment", {})
    env["card"] = found.get("card") or env["card"]
    env["toolkit"] = found.get("toolkit_cuda") or env["toolkit"]
    if found.get("gexec"):
        env["versions"]["gexec"] = found["gexec"]


def finite(node):
    """JSON has no word for what is no number: null."""
    if isinstance(node, float):
        return node if math.isfinite(node) else None
    if isinstance(node, dict):
        return {key: finite(value) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        return [finite(value) for value in node]
    return node


def all_cases(args):
    found = [cases.workload(name, precision) for name in args.workloads
             for precision in args.types]
    return found + cases.random_cases(args.random, args.seed, args.types, args.first)


def status_of(report):
    """3 where gexec or every peer failed or a case was not run, 1 where losses differ, else 0."""
    status = 0
    for result in report["results"]:
        differences = result["loss_difference"].get("gexec", {})
        if not differences:
            return 3
        if not table.losses_agree(result):
            print(f"peers.py: {result['workload']} {result['precision']}: losses differ by "
                  f"{table.worst_loss(result):.1e}, more than {result['loss_bound']:g}",
                  file=sys.stderr)
            status = 1
    return 3 if report["not_run"] else status


def new_report(args, found):
    return {"environment": environment(args, {}), "results": [],
            "not_run": [f"{case.name} {case.precision}" for case in found],
            "steps_per_launch": args.many, "peers": args.peers, "ours": args.ours,
            "block_seconds": rounds.BLOCK_SECONDS, "seed": args.seed,
            "learning_rate": cases.LEARNING_RATE, "ceilings": args.ceilings,
            "random": {"seed": args.seed, "first": args.first, "count": args.random,
                       "range": cases.RANGE_WORDS} if args.random else None}


def write_json(args, report, last=True):
    if args.json:
        write_whole(args.json, json.dumps(finite(report), allow_nan=False) + "\n", last)


def run_cases(args, found, folder, clock, report, stack):
    """Fills the report, case by case, each told and written when it is done."""
    lacking = gexec_lacks(args)
    prepared = [Prepared(args, case, folder) for case in found]
    messages = os.path.join(args.keep or folder, "messages")
    os.makedirs(messages, exist_ok=True)
    peers = child.Peers(args, messages, args.limit)
    stack.callback(peers.close)
    compiling = ahead.Ahead(peers, [one.path for one in prepared], args.peers,
                            args.jobs or max(1, (os.cpu_count() or 1) // 2),
                            args.compile_limit)
    stack.callback(compiling.close)
    lacking.update(peers.start_all(args.peers))
    report["environment"] = environment(args, peers.hello)
    begin = time.monotonic()
    # A card that is measured is idle but for that: all compiling ends before.
    not_compiled = compiling.wait(min(args.compile_limit, clock.left() / 2))
    report["compiled_ahead_s"] = time.monotonic() - begin
    for i, one in enumerate(prepared):
        if clock.to_be_ready() < 1:
            break
        lacks = {name: reason for (case, name), reason in not_compiled.items() if case == i}
        result = measure(args, one, peers, {**lacks, **lacking}, clock)
        add_gexec(report["environment"], result)
        report["results"].append(result)
        report["not_run"].pop(0)
        print(table.case_text(result), flush=True)
        write_json(args, report, last=False)


def main():
    args = arguments()
    need_gexec(args.gexec)
    clock = rounds.Clock(args.budget, args.limit)
    found = all_cases(args)
    report = new_report(args, found)
    status = None
    Stopped.at_signals()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        try:
            run_cases(args, found, folder, clock, report, stack)
        except Stopped as reason:
            print(f"peers.py: {reason}", file=sys.stderr)
            status = reason.status
        # Before processes are ended, for a second signal may leave no time.
        write_json(args, report)
        text = table.markdown(report)
        print("\n" + text, flush=True)
        if args.markdown:
            write_whole(args.markdown, text + "\n")
    sys.exit(status_of(report) if status is None else status)


if __name__ == "__main__":
    main()
