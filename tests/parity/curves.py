#!/usr/bin/env python3
"""Loss curves of four models over 100 steps, gexec's against PyTorch's from one start.

    tests/parity/curves.py --gexec build/release/gexec --json curves.json
    tests/parity/curves.py --gexec build/release/gexec --device gpu

    digits     a classifier on the digits of graphs/examples, batches of 64 in order, AdamW
    deep       eight residual gelu layers, mean squared error, momentum
    gates      tanh, sigmoid, products, a mean, a maximum and a sum, Adam, clipped gradients
    attention  one head over 24 tokens: products, softmax, a residual, cross-entropy, AdamW
               under a cosine with a warm-up

Both start from the same numbers and keep every tensor in the same type, parameters and what
an optimizer keeps too (f64 beside gexec run --exact; f32 beside tf32). The figure is the largest difference of the two losses at
any step, over PyTorch's there, or a tenth of its first where that is more. On the CPU tf32 is f32, for nothing rounds operands there.

Exit status: 0 all is within its bounds; 1 something is not, a model did not learn, or gexec
failed; 2 bad usage; 3 no gexec, no PyTorch, no GPU, or time was out before all was compared.
"""

import argparse
import math
import os
import random
import shutil
import tempfile

import model
from arguments import need_gexec, words_of

STEPS = 100
TYPES = {"cpu": ("f64", "f32", "bf16", "f16"), "gpu": ("f32", "tf32", "bf16", "f16")}
# f64 and f32: orders of summation, carried on through 100 steps. tf32: operands of products
# have 11 bits, PyTorch's 24. bf16 and f16: each tensor that is stored has 8 and 11 bits, and
# where two sums in f32 differ in the last place, a store may turn out one way or the other.
ALLOWED = {"f64": 1e-12, "f32": 5e-5, "tf32": 2e-2, "f16": 2e-2, "bf16": 6e-2}
# How f16 is trained: what AdamW keeps leaves the range of f16, in PyTorch too.
LOSS_SCALE = 1024
MIXED = f", master: f32, moments: f32, loss_scale: {LOSS_SCALE}}}"
# What has to be left of the first loss for a curve to say anything.
LEARNT = 0.75


class Curve:
    """A model as YAML, and as a function of PyTorch."""

    def __init__(self, tensors, ops, rest, loss, optimizer):
        self.tensors = tensors  # name: (section, shape, values, dtype)
        self.ops = ops  # lines of YAML
        self.rest = rest
        self.loss = loss  # of torch and a dict of tensors and the step
        self.optimizer = optimizer  # of torch and parameters: optimizer, scheduler
        self.clip = None
        self.data = None


def normal(rng, *shape, std=1.0):
    return shape, [rng.gauss(0, std) for _ in range(math.prod(shape))]


def weight(rng, *shape):
    return ("params", *normal(rng, *shape, std=math.sqrt(1 / shape[0])), None)


def zeros(*shape):
    return "params", shape, [0.0] * math.prod(shape), None


def wide(torch, x):
    """What a loss is computed from: f32 at least, as in gexec."""
    return x if x.dtype == torch.float64 else x.float()


def digits():
    rng, batch, folder = random.Random("digits"), 64, os.path.join(
        model.ROOT, "graphs", "examples")
    read = {name: model.read_npy(os.path.join(folder, f"digits_{name}.npy"))
            for name in ("x", "y", "split")}
    rows = [i for i, held in enumerate(read["split"][1]) if held == 0]
    whole = len(rows) // batch

    def loss(torch, t, step):
        first = step % whole * batch
        x, y = t["all_x"][first:first + batch], t["all_y"][first:first + batch]
        h = torch.relu(x @ t["w1"] + t["b1"])
        return torch.nn.functional.cross_entropy(wide(torch, h @ t["w2"] + t["b2"]), y)

    curve = Curve(
        {"w1": weight(rng, 64, 96), "b1": zeros(96), "w2": weight(rng, 96, 10),
         "b2": zeros(10)},
        ["{op: gemm, name: h, a: x, b: w1, epilogue: {bias: b1, act: relu}}",
         "{op: gemm, name: logits, a: h, b: w2, epilogue: {bias: b2}}",
         "{op: softmax_cross_entropy, name: loss, logits: logits, labels: y}"],
        ["optimizer: {adamw: {lr: 0.002}}", "dims: {batch: 64}"], loss,
        lambda torch, p: (torch.optim.AdamW(p, lr=0.002), None))
    curve.data = {
        "files": {f"digits_{name}.npy": folder for name in read},
        "inputs": ["  x: {shape: [batch, 64]}", "  y: {shape: [batch], dtype: i32}"],
        "data": ["  x: {file: digits_x.npy, scale: 0.0625}", "  y: digits_y.npy",
                 "  split: digits_split.npy", "  drop_last: true"],
        "all_x": ((len(rows), 64), [read["x"][1][64 * i + k] / 16 for i in rows
                                    for k in range(64)]),
        "all_y": ((len(rows),), [read["y"][1][i] for i in rows]),
    }
    return curve


def deep():
    rng, layers, width = random.Random("deep"), 8, 32
    tensors = {"x": ("inputs", *normal(rng, 48, width), None)}
    teacher = [rng.gauss(0, 1 / math.sqrt(width)) for _ in range(width * 4)]
    x = tensors["x"][2]
    tensors["t"] = ("inputs", (48, 4), [
        math.tanh(sum(x[i * width + k] * teacher[k * 4 + j] for k in range(width)))
        for i in range(48) for j in range(4)], None)
    ops, before = [], "x"
    for i in range(layers):
        tensors[f"w{i}"], tensors[f"b{i}"] = weight(rng, width, width), zeros(width)
        ops += [f"{{op: gemm, name: f{i}, a: {before}, b: w{i}, epilogue: {{bias: b{i}, "
                "act: gelu_tanh}}", f"{{op: add, name: h{i}, a: {before}, b: f{i}}}"]
        before = f"h{i}"
    tensors["w"] = ("params", *normal(rng, width, 4, std=0.01), None)
    tensors["b"] = zeros(4)
    ops += [f"{{op: gemm, name: y, a: {before}, b: w, epilogue: {{bias: b}}}}",
            "{op: mse, name: loss, x: y, target: t}"]

    def loss(torch, t, step):
        functional, h = torch.nn.functional, t["x"]
        for i in range(layers):
            h = h + functional.gelu(h @ t[f"w{i}"] + t[f"b{i}"], approximate="tanh")
        return functional.mse_loss(wide(torch, h @ t["w"] + t["b"]), wide(torch, t["t"]))

    return Curve(tensors, ops, ["optimizer: {momentum: {lr: 0.001}}"], loss,
                 lambda torch, p: (torch.optim.SGD(p, lr=0.001, momentum=0.9), None))


def gates():
    rng = random.Random("gates")
    tensors = {"x": ("inputs", *normal(rng, 40, 12), None),
               "t": ("inputs", *normal(rng, 40), None), "wa": weight(rng, 12, 24),
               "wb": weight(rng, 12, 24), "ba": zeros(24), "bb": zeros(24),
               "gain": ("params", (24,), [1.0] * 24, None), "shift": zeros(40, 1)}

    def loss(torch, t, step):
        a = torch.tanh(t["x"] @ t["wa"] + t["ba"])
        b = torch.sigmoid(t["x"] @ t["wb"] + t["bb"])
        h = a * b * t["gain"] - t["shift"]
        y = 3 * h.mean(1) + torch.amax(a, 1) - 0.1 * (b * b).sum(1)
        return torch.nn.functional.mse_loss(wide(torch, y), wide(torch, t["t"]))

    curve = Curve(
        tensors,
        ["{op: gemm, name: a, a: x, b: wa, epilogue: {bias: ba, act: tanh}}",
         "{op: gemm, name: pre, a: x, b: wb, epilogue: {bias: bb}}",
         "{op: sigmoid, name: b, x: pre}", "{op: mul, name: ab, a: a, b: b}",
         "{op: mul, name: g, a: ab, b: gain}", "{op: sub, name: h, a: g, b: shift}",
         "{op: mean, name: m, x: h, axis: 1}", "{op: scale, name: m3, x: m, factor: 3}",
         "{op: max, name: top, x: a, axis: 1}", "{op: mul, name: bb2, a: b, b: b}",
         "{op: sum, name: s, x: bb2, axis: -1}",
         "{op: scale, name: s1, x: s, factor: -0.1}", "{op: add, name: mt, a: m3, b: top}",
         "{op: add, name: y, a: mt, b: s1}", "{op: mse, name: loss, x: y, target: t}"],
        ["optimizer: {adam: {lr: 0.003}, clip_norm: 0.5}"], loss,
        lambda torch, p: (torch.optim.Adam(p, lr=0.003), None))
    curve.clip = 0.5
    return curve


def attention():
    rng, tokens, width, kinds = random.Random("attention"), 24, 16, 6
    tensors = {"x": ("inputs", *normal(rng, tokens, width), None),
               "y": ("inputs", (tokens,), [rng.randrange(kinds) for _ in range(tokens)],
                     "i32")}
    for name in ("wq", "wk", "wv", "wo"):
        tensors[name] = weight(rng, width, width)
    tensors["head"], tensors["b"] = weight(rng, width, kinds), zeros(kinds)
    rate, warmup, steps = 0.005, 10, 100

    def loss(torch, t, step):
        q, k, v = (t["x"] @ t[name] for name in ("wq", "wk", "wv"))
        p = torch.softmax(0.25 * (q @ k.T), dim=-1)
        h = t["x"] + (p @ v) @ t["wo"]
        return torch.nn.functional.cross_entropy(wide(torch, h @ t["head"] + t["b"]), t["y"])

    def optimizer(torch, params):
        made = torch.optim.AdamW(params, lr=rate)
        lrs = torch.optim.lr_scheduler
        return made, lrs.SequentialLR(
            made, [lrs.LinearLR(made, 1 / warmup, 1, warmup - 1),
                   lrs.CosineAnnealingLR(made, steps - warmup, eta_min=0.1 * rate)], [warmup])

    return Curve(
        tensors,
        ["{op: gemm, name: q, a: x, b: wq}", "{op: gemm, name: k, a: x, b: wk}",
         "{op: gemm, name: v, a: x, b: wv}", "{op: gemm, name: qk, a: q, b: k, trans_b: true}",
         "{op: scale, name: s, x: qk, factor: 0.25}", "{op: softmax, name: p, x: s}",
         "{op: gemm, name: pv, a: p, b: v}", "{op: gemm, name: o, a: pv, b: wo}",
         "{op: add, name: h, a: x, b: o}",
         "{op: gemm, name: logits, a: h, b: head, epilogue: {bias: b}}",
         "{op: softmax_cross_entropy, name: loss, logits: logits, labels: y}"],
        [f"optimizer: {{adamw: {{lr: {rate}}}, schedule: {{cosine: {{steps: {steps}, warmup: "
         f"{warmup}, end: 0.1}}}}}}"], loss, optimizer)


CURVES = {"digits": digits, "deep": deep, "gates": gates, "attention": attention}


def ours(args, name, curve, dtype, folder):
    m = model.Model(folder, name, dtype)
    for tensor, (section, shape, values, own) in curve.tensors.items():
        m.tensor(section, tensor, shape, held(values, own, dtype), own)
    if curve.data:
        for file, source in curve.data["files"].items():
            shutil.copy(os.path.join(source, file), folder)
        m.sections["inputs"] += curve.data["inputs"]
        m.sections["data"] += curve.data["data"]
    m.sections["ops"] = [f"  - {line}" for line in curve.ops]
    rest = [line[:-1] + MIXED if dtype == "f16" and line.startswith("optimizer:") else line
            for line in curve.rest]
    m.rest = [*rest, "backward: loss", "outputs: [loss]"]
    m.run(args, STEPS)
    return m.curve("loss"), m.environment()


def held(values, own, dtype):
    return values if own == "i32" else [model.round_to(dtype, x) for x in values]


def theirs(torch, curve, dtype):
    kind = {"f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16}.get(
        dtype, torch.float32)
    mixed = dtype == "f16"

    def put(shape, values, own):
        values = held(values, own, dtype)
        return torch.tensor(values, dtype=torch.int64 if own == "i32" else kind).reshape(shape)

    tensors = {name: put(shape, values, own)
               for name, (_, shape, values, own) in curve.tensors.items()}
    if curve.data:
        tensors["all_x"] = put(*curve.data["all_x"], None)
        tensors["all_y"] = put(*curve.data["all_y"], "i32")
    names = [name for name, (section, *_) in curve.tensors.items() if section == "params"]
    params = [(tensors[name].float() if mixed else tensors[name]).requires_grad_()
              for name in names]
    optimizer, scheduler = curve.optimizer(torch, params)
    scaler = torch.amp.GradScaler("cpu", enabled=mixed, init_scale=LOSS_SCALE,
                                  growth_interval=10 * STEPS)
    losses = []
    for step in range(STEPS):
        tensors.update((name, p.to(kind)) for name, p in zip(names, params))
        loss = curve.loss(torch, tensors, step)
        losses.append(loss.item())
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        if curve.clip:
            torch.nn.utils.clip_grad_norm_(params, curve.clip)
        scaler.step(optimizer)
        scaler.update()
        if scheduler:
            scheduler.step()
    return losses


def compare(args, name, dtype, folder):
    torch, curve = model.import_torch(), CURVES[name]()
    mine, environment = ours(args, name, curve, dtype,
                             os.path.join(folder, f"{name}-{dtype}"))
    other = theirs(torch, curve, dtype)
    off = [abs(a - b) / max(b, 0.1 * other[0]) for a, b in zip(mine, other)]
    error = max(off) if all(x == x for x in off) and len(mine) == STEPS else math.inf
    # Batches differ in how hard they are.
    ends = sum(other[-10:]) / sum(other[:10])
    return {"model": name, "type": dtype, "first": other[0], "last": other[-1],
            "last_gexec": mine[-1], "error": error, "step": off.index(max(off)),
            "allowed": ALLOWED[dtype], "learnt": ends, "gexec": mine, "torch": other,
            "environment": environment,
            "ok": error <= ALLOWED[dtype] and ends <= LEARNT}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    model.add_arguments(parser)
    parser.add_argument("--only", metavar="LIST", help="of " + ", ".join(CURVES))
    parser.add_argument("--types", metavar="LIST", help="of " + ", ".join(ALLOWED))
    args = parser.parse_args()
    names = list(CURVES) if args.only is None else \
        words_of(parser, "--only", args.only, CURVES)
    types = TYPES[args.device] if args.types is None else \
        words_of(parser, "--types", args.types, ALLOWED)
    if "f64" in types and args.device == "gpu":
        parser.error("--types f64: not a type of this device")
    need_gexec(args.gexec)
    model.start_clock(args)
    torch = model.import_torch()
    model.quiet_schedulers()
    folder = args.keep or tempfile.mkdtemp()
    report = model.Report(args, torch=torch.__version__, curves=[])
    rows = report.data["curves"]
    print(f"{'model':12}{'type':6}{'first':>9}{'last':>9}{'gexec':>9}  {'difference':>10} "
          f"{'allowed':>8}  at step")
    try:
        tasks = [(name, dtype, folder) for name in names for dtype in types]
        for (name, dtype, _), row, reason in model.each(args, compare, tasks):
            if reason:
                report.add_reason(f"{name} {dtype}", reason)
                continue
            report.add("curves", row)
            print(f"{row['model']:12}{row['type']:6}{row['first']:9.4f}{row['last']:9.4f}"
                  f"{row['last_gexec']:9.4f}  {row['error']:10.1e} "
                  f"{row['allowed']:8.1e}  {row['step']}"
                  f"{'' if row['ok'] else '  FAILED'}", flush=True)
    finally:
        if not args.keep:
            shutil.rmtree(folder)
    failed = sum(not row["ok"] for row in rows)
    print(f"\n{len(rows)} curves of {STEPS} steps, PyTorch {torch.__version__}: "
          f"{failed + len(report.data['failed'])} failed")
    report.write()
    return report.status(failed, len(rows))


if __name__ == "__main__":
    raise SystemExit(main())
