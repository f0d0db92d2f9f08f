"""Models and tensors as files, and gexec over them. Needs nothing but Python."""

import array
import ast
import concurrent.futures
import datetime
import json
import math
import multiprocessing
import os
import struct
import subprocess
import sys
import time
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools", "bench"))

from arguments import result_file, result_folder, seconds  # noqa: E402

# Half a unit in the last place of 1: the largest relative error of one rounding.
ROUNDOFF = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}


class Failed(Exception):
    """gexec ended with an error: this task has no result, others may."""


class OutOfTime(Exception):
    """The budget ended before this task did."""


def stop(status, message):
    print(f"{os.path.basename(sys.argv[0])}: {message}", file=sys.stderr)
    sys.exit(status)


def positive(text):
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def add_arguments(parser):
    """What every script here takes."""
    parser.add_argument("--gexec", default=os.path.join(ROOT, "build", "release", "gexec"),
                        help="the program (default build/release/gexec)")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu",
                        help="where gexec runs; PyTorch is always on the CPU")
    parser.add_argument("--flags", default="", metavar="FLAGS",
                        help="more flags for gexec run, as '--unfused --lanes 2'")
    parser.add_argument("--jobs", type=positive, default=1, metavar="N",
                        help="processes side by side (default 1); the results are the same")
    parser.add_argument("--keep", type=result_folder, metavar="DIR",
                        help="keep models and tensors there")
    parser.add_argument("--budget", type=seconds, metavar="S",
                        help="seconds for everything; what is not done then is named")
    parser.add_argument("--commit", metavar="NAME", help="what is compared, for the record")
    parser.add_argument("--json", type=result_file, metavar="FILE",
                        help="raw results, written again with each that comes")


def start_clock(args):
    """The end of the budget, for every process of this machine; None without one."""
    args.end = time.monotonic() + args.budget if args.budget else None


def left(args):
    """Seconds that are left of the budget; None without one."""
    if args.end is None:
        return None
    seconds = args.end - time.monotonic()
    if seconds <= 0:
        raise OutOfTime
    return seconds


class Report:
    """What the JSON file holds. A list grows by add(), and the file is written anew."""

    def __init__(self, args, **head):
        self.path = args.json
        self.data = {"date": datetime.datetime.now(datetime.timezone.utc)
                     .isoformat(timespec="seconds"), "environment": None,
                     "driver": driver_version(), "commit": args.commit,
                     "command": [os.path.basename(sys.argv[0]), *sys.argv[1:]],
                     "device": args.device, "flags": args.flags, **head, "failed": [],
                     "not_run": []}

    def add(self, key, row):
        self.data[key].append(row)
        if isinstance(row, dict):
            self.data["environment"] = row.pop("environment", self.data["environment"])
        self.write()

    def add_reason(self, title, reason):
        """A task without a result."""
        if isinstance(reason, OutOfTime):
            self.add("not_run", title)
        else:
            print(f"{title}: FAILED: {reason}", flush=True)
            self.add("failed", {"task": title, "reason": str(reason)})

    def write(self):
        if not self.path:
            return
        part = self.path + ".part"
        with open(part, "w") as file:
            json.dump(self.data, file, indent=1)
        os.replace(part, self.path)

    def status(self, n_failed, n_done):
        """1 something failed, or nothing was done; 3 not everything was run; else 0."""
        if self.data["not_run"]:
            print("Not run: " + ", ".join(self.data["not_run"]))
        if n_failed + len(self.data["failed"]):
            return 1
        return 3 if self.data["not_run"] else 0 if n_done else 1


def driver_version():
    try:
        return subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
            capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None


def import_torch():
    try:
        import torch
    except ImportError as error:
        stop(3, f"PyTorch is needed: {error}")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    return torch


def quiet_schedulers():
    """SequentialLR calls schedulers in an order that they warn of."""
    warnings.filterwarnings("ignore", category=UserWarning, module="torch.optim")


def attempt(work, args, task):
    """(result, None), or (None, why there is none)."""
    try:
        left(args)
        return work(args, *task), None
    except (Failed, OutOfTime) as reason:
        return None, reason


def each(args, work, tasks):
    """(task, result, reason) for each task, in the order of the tasks, whichever process is
    done first: what work(args, *task) gives, or why it gives nothing."""
    if args.jobs == 1:
        for task in tasks:
            yield (task, *attempt(work, args, task))
        return
    # PyTorch is imported once: nothing of it runs in threads yet.
    pool = concurrent.futures.ProcessPoolExecutor(
        args.jobs, mp_context=multiprocessing.get_context("fork"))
    try:
        for task, future in [(task, pool.submit(attempt, work, args, task)) for task in tasks]:
            yield (task, *future.result())
    finally:
        pool.shutdown(cancel_futures=True)


# --- numbers ---


def round_to(dtype, x):
    """x as a tensor of that type holds it."""
    if dtype == "f64":
        return x
    if dtype == "f16":
        return struct.unpack("<e", struct.pack("<e", x))[0]
    single = struct.unpack("<f", struct.pack("<f", x))[0]
    if dtype != "bf16":
        return single
    bits = struct.unpack("<I", struct.pack("<f", single))[0]
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def count(shape):
    return math.prod(shape)


def error_of(ours, theirs, least=0.0):
    """The largest difference, over the largest element of theirs, or `least`; where."""
    if len(ours) != len(theirs):
        return math.inf, 0
    largest = max([least, *(abs(x) for x in theirs)])
    worst, at = 0.0, 0
    for i, (a, b) in enumerate(zip(ours, theirs)):
        off = abs(a - b)
        if not off <= worst:
            worst, at = off if off == off else math.inf, i
    if worst == 0:
        return 0.0, 0
    return worst / largest if largest > 0 else math.inf, at


# --- .npy ---


def write_npy(path, shape, values, kind):
    """kind: f8, f4 or i4."""
    data = array.array({"f8": "d", "f4": "f", "i4": "i"}[kind], values)
    dims = "".join(f"{size}, " for size in shape)
    head = f"{{'descr': '<{kind}', 'fortran_order': False, 'shape': ({dims}), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    if sys.byteorder != "little":
        data.byteswap()
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        file.write(data.tobytes())


def read_npy(path):
    """(shape, values)"""
    with open(path, "rb") as file:
        raw = file.read()
    size = struct.unpack("<H", raw[8:10])[0]
    head = ast.literal_eval(raw[10:10 + size].decode())
    if head["descr"] == "<f2":
        return head["shape"], [x for x, in struct.iter_unpack("<e", raw[10 + size:])]
    kind = {"<f8": "d", "<f4": "f", "<i4": "i", "|u1": "B"}[head["descr"]]
    data = array.array(kind, raw[10 + size:])
    if sys.byteorder != "little":
        data.byteswap()
    return head["shape"], data.tolist()


# --- models ---


class Model:
    """A model that is written line by line into a folder, with its tensors beside it."""

    def __init__(self, folder, name, dtype):
        self.folder, self.name, self.dtype = folder, name, dtype
        self.sections = {key: [] for key in ("data", "inputs", "params", "ops")}
        self.rest = []
        os.makedirs(folder, exist_ok=True)

    def tensor(self, section, name, shape, values, dtype=None, more=""):
        """An input or parameter that starts from a file. dtype: i32, or f32 where the
        model's own type is another."""
        kind = "i4" if dtype == "i32" else "f8" if self.dtype == "f64" else "f4"
        write_npy(os.path.join(self.folder, name + ".npy"), shape, values, kind)
        dtype = f", dtype: {dtype}" if dtype else ""
        self.sections[section].append(
            f"  {name}: {{shape: {list(shape)}, from: {name}.npy{dtype}{more}}}")

    def op(self, op, name, **fields):
        text = "".join(f", {key}: {words(value)}" for key, value in fields.items())
        self.sections["ops"].append(f"  - {{op: {op}, name: {name}{text}}}")

    def write(self):
        lines = ["gexec: 1", f"name: {self.name}",
                 f"precision: {'f32' if self.dtype == 'f64' else self.dtype}"]
        for key, items in self.sections.items():
            if items:
                lines += [f"{key}:", *items]
        path = os.path.join(self.folder, "model.yaml")
        with open(path, "w") as file:
            file.write("\n".join(lines + self.rest) + "\n")
        return path

    def run(self, args, steps, outs=()):
        """Runs it, with each stored tensor of f64 kept in double; `outs` can be read by
        result then."""
        command = [args.gexec, "run", self.write(), "--device", args.device, "-q",
                   "--steps", str(steps), "--json",
                   os.path.join(self.folder, "run.json"), *args.flags.split()]
        for name in outs:
            command += ["--out", f"{name}={self.out_path(name)}"]
        if self.dtype == "f64":
            command.append("--exact")
        try:
            result = subprocess.run(command, capture_output=True, text=True,
                                    timeout=left(args))
        except subprocess.TimeoutExpired:
            raise OutOfTime from None
        if result.returncode == 3:  # no GPU: no other task would do better
            stop(3, result.stderr.strip())
        if result.returncode != 0:
            messages = " / ".join(result.stderr.splitlines()[:12])
            raise Failed(f"gexec ended with status {result.returncode}: {messages}")

    def out_path(self, name):
        return os.path.join(self.folder, f"out.{name}.npy")

    def result(self, name):
        """Values of a tensor after run."""
        return read_npy(self.out_path(name))[1]

    def environment(self):
        """Card and versions, as gexec tells them."""
        with open(os.path.join(self.folder, "run.json")) as file:
            return json.load(file)["environment"]

    def curve(self, name):
        with open(os.path.join(self.folder, "run.json")) as file:
            return json.load(file)["curves"][name]


def words(value):
    """A field's value as YAML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(words(item) for item in value) + "]"
    return str(value)
