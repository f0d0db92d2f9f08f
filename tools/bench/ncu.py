#!/usr/bin/env python3
"""What limits the heaviest kernels of a step, as Nsight Compute counts it.

Runs one eager step of a model under ncu, with its plan pinned, and tells for each of the
heaviest kernels how busy the tensor pipe, the multiprocessors, the DRAM and the L2 were.

    tools/bench/ncu.py graphs/examples/deep_narrow.yaml --type bf16 --json ncu.json
    tools/bench/ncu.py graphs/examples/wide.yaml --type tf32 --all
    tools/bench/ncu.py --read ncu.csv            of a log that --log kept

ncu runs a kernel several times, each alone, with what was in the caches before, at the clocks
that it finds: durations are not those of a step, and are there to tell which kernels are heavy.
Only kernels of gexec's own count, unless --all names the libraries' too.

Exit status: 0 done; 2 bad usage; 3 no gexec, no ncu, no GPU, or ncu may not read the
counters.
"""

import argparse
import csv
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from arguments import need_gexec, result_file, seconds
from whole import write_whole

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What the table shows, each under the names that it has on one card or another.
METRICS = {
    "ns": ("gpu__time_duration.sum",),
    "tensor": ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
               "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_elapsed",
               "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_elapsed"),
    "sm": ("sm__throughput.avg.pct_of_peak_sustained_elapsed",),
    "dram": ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
             "dram__throughput.avg.pct_of_peak_sustained_elapsed"),
    "l2": ("lts__throughput.avg.pct_of_peak_sustained_elapsed",),
    "warps": ("sm__warps_active.avg.pct_of_peak_sustained_active",),
    "registers": ("launch__registers_per_thread",),
}
# Where gexec's kernels are, and no library's.
UNNAMED = ("<unnamed>::", "(anonymous namespace)::")
LACK = "n/a"


class Failed(Exception):
    """Why there is no result."""


def run(command, limit_s):
    """The text that a program printed; it and what it started end with the limit."""
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, start_new_session=True)
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}") from error
    try:
        out, errors = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise Failed(f"{os.path.basename(command[0])} took more than {limit_s:g} s") from None
    if process.returncode != 0:
        lines = [line for line in (errors + out).splitlines() if line.strip()]
        raise Failed(f"{os.path.basename(command[0])} ended with status {process.returncode}: "
                     + " / ".join(lines[-3:]))
    return out


# --- before: the model, its plan, the metrics that this card has ---


def copy_model(path, precision, folder):
    """The model in that precision, in a folder of its own beside what it may read."""
    with open(path) as file:
        text = file.read()
    if precision:
        text, n = re.subn(r"(?m)^precision:.*$", f"precision: {precision}", text)
        if n != 1:
            raise Failed(f"{path}: expected one line `precision:`")
    for name in os.listdir(os.path.dirname(os.path.abspath(path))):
        if name.endswith((".npy", ".safetensors")):
            shutil.copy(os.path.join(os.path.dirname(os.path.abspath(path)), name), folder)
    found = os.path.join(folder, os.path.basename(path))
    with open(found, "w") as file:
        file.write(text)
    return found


def chosen_metrics(ncu, limit_s):
    """The first of each row of METRICS that ncu knows here, by column."""
    try:
        known = set(re.findall(r"(?m)^(\w+__\w+)\b", run([ncu, "--query-metrics"], limit_s)))
    except Failed:
        known = set()
    found = {}
    for column, names in METRICS.items():
        has = [name for name in names
               if not known or name.startswith("launch__") or name.split(".")[0] in known]
        if has:
            found[column] = has[0]
    return found


def profile(args, folder):
    """The log of ncu over one step, and what gexec says of card and versions."""
    model = copy_model(args.model, args.type, folder)
    plan, told = os.path.join(folder, "plan"), os.path.join(folder, "told.json")
    command = [args.gexec, "run", model, "--eager", "--steps", "1", "--evaluate", "never", "-q",
               "--plan", plan, *args.flags.split()]
    run([*command, "--no-cache", "--json", told], args.limit)  # makes the plan
    try:
        with open(told) as file:
            environment = json.load(file)["environment"]
    except OSError:
        raise Failed("gexec run wrote no result") from None
    metrics = chosen_metrics(args.ncu, args.limit)
    log = os.path.join(folder, "ncu.csv")  # a new one: an old --log would be taken for its own
    run([args.ncu, "--csv", "--page", "raw", "--print-units", "base", "--nvtx",
         "--profile-from-start", "off", "--clock-control", "none", "--cache-control", "none",
         "--metrics", ",".join(metrics.values()), "--force-overwrite", "--log-file", log,
         *command, "--nsys-window"], args.limit)
    if not os.path.exists(log):
        raise Failed(f"{args.ncu} wrote no log")
    if args.log:
        shutil.copyfile(log, args.log)
    return log, environment


# --- after: the log ---


def number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def read_rows(text):
    """The launches of a log of `ncu --csv --page raw`: dicts by column, with units in base."""
    lines = text.splitlines()
    begins = [i for i, line in enumerate(lines) if line.startswith('"ID"')]
    if not begins:
        errors = [line for line in lines if line.startswith("==ERROR==")]
        raise Failed(errors[0] if errors else "ncu recorded no kernel")
    # Messages of ncu may stand among the rows.
    table = list(csv.reader(line for line in lines[begins[-1]:] if line.startswith('"')))
    head = table[0]
    return [dict(zip(head, row)) for row in table[1:]
            if len(row) == len(head) and row[0].isdigit()]


def in_the_step(rows):
    """Those within the NVTX range `measured`, or all where no launch has it."""
    found = [row for row in rows
             if any("measured" in value for key, value in row.items()
                    if "Push/Pop" in key or "Start/End" in key)]
    return found or rows


def is_own(name):
    return any(mark in name for mark in UNNAMED)


def short(name):
    """Of a kernel's full name what is in front of its arguments, without namespaces."""
    for mark in UNNAMED:
        name = name.replace(mark, "")
    depth = 0
    for i, letter in enumerate(name):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "(" and depth == 0 and i > 0:
            name = name[:i]
            break
    return re.sub(r"\((?:int|bool|\w*Type)\)", "", name.removeprefix("void "))


def value_of(row, column):
    for name in METRICS[column]:
        if name in row:
            return number(row[name])
    return None


def kernels_of(rows):
    """By kernel, heaviest first: launches, time and means weighed by it."""
    found = {}
    for row in rows:
        kernel = found.setdefault(row["Kernel Name"], {
            "name": short(row["Kernel Name"]), "own": is_own(row["Kernel Name"]),
            "launches": 0, "ns": 0.0, "grid": row.get("Grid Size"),
            "block": row.get("Block Size"), "sums": {}})
        ns = value_of(row, "ns")
        if ns is None:
            raise Failed("the log tells no durations")
        kernel["launches"] += 1
        kernel["ns"] += ns
        for column in METRICS:
            value = value_of(row, column)
            if column != "ns" and value is not None:
                share = kernel["sums"].setdefault(column, [0.0, 0.0])
                share[0] += ns * value
                share[1] += ns
    for kernel in found.values():
        sums = kernel.pop("sums")
        for column in METRICS:
            if column != "ns":
                total, weight = sums.get(column, (0, 0))
                kernel[column] = total / weight if weight else None
    return sorted(found.values(), key=lambda kernel: -kernel["ns"])


def figure(value):
    return LACK if value is None else f"{value:.1f}"


def table(kernels, all_ns, n):
    lines = [f"{'us':>8} {'share':>6} {'launches':>8} {'tensor %':>8} {'SM %':>6} {'DRAM %':>6} "
             f"{'L2 %':>6} {'warps %':>7} {'regs':>5}  grid, block; kernel"]
    for kernel in kernels[:n]:
        registers = kernel["registers"]
        lines.append(
            f"{kernel['ns'] / 1e3:8.2f} {100 * kernel['ns'] / all_ns:5.1f}% "
            f"{kernel['launches']:8d} {figure(kernel['tensor']):>8} {figure(kernel['sm']):>6} "
            f"{figure(kernel['dram']):>6} {figure(kernel['l2']):>6} "
            f"{figure(kernel['warps']):>7} {LACK if registers is None else round(registers):>5}"
            f"  {kernel['grid']}, {kernel['block']}; {kernel['name']}")
    return "\n".join(lines)


def driver():
    try:
        return run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                   20).split()[0]
    except (Failed, IndexError):
        return None


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("model", nargs="?", metavar="MODEL")
    add("--type", choices=("f32", "tf32", "bf16", "f16"), help="instead of the model's own")
    add("--gexec", default=os.path.join(ROOT, "build", "release", "gexec"))
    add("--ncu", default="ncu", help="the profiler (default: ncu on the PATH)")
    add("--kernels", type=int, default=3, metavar="N", help="how many are told (default 3)")
    add("--all", action="store_true", help="those of the libraries too")
    add("--flags", default="", help="more flags for gexec run")
    add("--limit", type=seconds, default=300, metavar="S",
        help="seconds for each program that is run (default 300)")
    add("--log", type=result_file, metavar="FILE", help="keep what ncu wrote there")
    add("--read", metavar="FILE", help="instead of a run: such a file")
    add("--commit", metavar="NAME", help="what is measured, for the record")
    add("--json", type=result_file, metavar="FILE", help="all kernels, as JSON")
    args = parser.parse_args()
    if (args.model is None) == (args.read is None):
        parser.error("expected a model, or --read FILE")
    if args.kernels < 1:
        parser.error("--kernels: expected 1 or more")
    for path in (args.model, args.read):
        if path is not None and not os.path.isfile(path):
            parser.error(f"'{path}': no such file")
    args.gexec = os.path.abspath(args.gexec)
    if args.model:
        need_gexec(args.gexec)
    return args


def main():
    args = arguments()
    environment = None
    try:
        with tempfile.TemporaryDirectory() as folder:
            log = args.read
            if not log:
                log, environment = profile(args, folder)
            with open(log, errors="replace") as file:
                rows = in_the_step(read_rows(file.read()))
        kernels = kernels_of(rows)
    except Failed as reason:
        print(f"ncu.py: {reason}", file=sys.stderr)
        sys.exit(3)
    all_ns = sum(kernel["ns"] for kernel in kernels)
    told = kernels if args.all else [kernel for kernel in kernels if kernel["own"]]
    card = (environment or {}).get("card") or "card not told"
    print(f"{os.path.basename(args.model or args.read)}, {args.type or 'its own type'}: "
          f"{len(rows)} launches, {len(kernels)} kernels, {all_ns / 1e3:.1f} us one by one; {card}")
    if not told:
        print("none of them is known as gexec's own, so these are all:")
        told = kernels
    print(table(told, all_ns, args.kernels))
    if args.json:
        report = {"date": datetime.datetime.now(datetime.timezone.utc)
                  .isoformat(timespec="seconds"), "environment": environment,
                  "driver": driver(), "commit": args.commit,
                  "command": ["ncu.py", *sys.argv[1:]], "model": args.model,
                  "type": args.type, "launches": len(rows), "ns": all_ns,
                  "kernels": kernels}
        write_whole(args.json, json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
