"""Models and tensors as files, and gexec over them. Needs nothing but Python."""

import array
import ast
import concurrent.futures
import json
import math
import multiprocessing
import os
import struct
import subprocess
import sys
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Half a unit in the last place of 1: the largest relative error of one rounding.
ROUNDOFF = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}


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
    parser.add_argument("--keep", metavar="DIR", help="keep models and tensors there")
    parser.add_argument("--json", metavar="FILE", help="raw results")


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


def each(jobs, work, tasks):
    """What work(*task) gives for each task, in the order of the tasks, whichever process
    is done first. The first that fails ends all."""
    if jobs == 1:
        yield from (work(*task) for task in tasks)
        return
    # PyTorch is imported once: nothing of it runs in threads yet.
    pool = concurrent.futures.ProcessPoolExecutor(
        jobs, mp_context=multiprocessing.get_context("fork"))
    try:
        for future in [pool.submit(work, *task) for task in tasks]:
            yield future.result()
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
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            messages = "\n".join(result.stderr.splitlines()[:12])
            stop(result.returncode, f"{' '.join(command)[:300]} ...\n{messages}")

    def out_path(self, name):
        return os.path.join(self.folder, f"out.{name}.npy")

    def result(self, name):
        """Values of a tensor after run."""
        return read_npy(self.out_path(name))[1]

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
