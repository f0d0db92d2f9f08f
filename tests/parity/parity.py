#!/usr/bin/env python3
"""gexec's ops and optimizers against PyTorch on the CPU.

Every op of `gexec ops` that PyTorch has is drawn 20 times, with random shapes and fields,
and its outputs and gradients are held against PyTorch's in the same type; every optimizer
takes 50 steps beside torch.optim. An op that is neither in the table of cases.py nor named
there as missing in PyTorch is a failure.

    tests/parity/parity.py --gexec build/release/gexec --json parity.json
    tests/parity/parity.py --gexec build/release/gexec --device gpu

On the CPU the types are f32 and f64, in which gexec keeps every tensor in double
(gexec run --exact). On a GPU they are f32, without TF32, bf16 and f16; PyTorch computes the
latter two in double from the same numbers, so that its own roundings are not ours.

Exit status: 0 all is within its bounds; 1 something is not, or gexec failed; 2 bad usage; 3 no
gexec, no PyTorch, no GPU, or time was out before all was compared.
"""

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import tempfile

import cases
import model
import optimizers
from arguments import need_gexec, words_of

TYPES = {"cpu": ("f32", "f64"), "gpu": ("f32", "bf16", "f16")}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    model.add_arguments(parser)
    parser.add_argument("--only", metavar="LIST", help="these ops or optimizers alone")
    parser.add_argument("--draws", type=model.positive, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--types", metavar="LIST", help="of f32, f64 (CPU), bf16 and f16")
    args = parser.parse_args()
    if args.only is not None:
        names = {name: None for name, *_ in optimizers.configurations()}
        args.only = words_of(parser, "--only", args.only, [*cases.ROWS, *names])
    args.types = TYPES[args.device] if args.types is None else \
        words_of(parser, "--types", args.types, model.ROUNDOFF)
    if "f64" in args.types and args.device == "gpu":
        parser.error("only the CPU keeps f64")
    need_gexec(args.gexec)
    return args


def catalogue(args):
    result = subprocess.run([args.gexec, "ops", "--json", "-"], capture_output=True,
                            text=True)
    if result.returncode != 0:
        model.stop(2, result.stderr)
    return {entry["name"]: entry for entry in json.loads(result.stdout)}


# --- one op in one type: all draws stand in one model ---


class Drawn:
    """A draw with its numbers as the type holds them."""

    def __init__(self, draw, prefix, dtype, rng):
        self.draw, self.prefix = draw, prefix
        f32 = "f64" if dtype == "f64" else "f32"
        self.operands = {
            field: (shape, values if kind == "index" else
                    [model.round_to(f32 if kind == "f32" else dtype, x) for x in values],
                    kind)
            for field, (shape, values, kind) in draw.operands.items()}
        self.rng = rng
        self.dy = {}

    def put(self, m):
        """Adds tensors and the op to the model."""
        fields = {}
        for field, (shape, values, kind) in self.operands.items():
            name = f"{self.prefix}.{field}"
            m.tensor("params" if kind == "param" else "inputs", name, shape, values,
                     {"index": "i32", "f32": "f32"}.get(kind))
            if not any(field in names for names in self.draw.lists.values()):
                fields[field] = name
        for field, names in self.draw.lists.items():
            fields[field] = [f"{self.prefix}.{name}" for name in names]
        for field in self.draw.outputs:
            fields[field] = f"{self.prefix}.{field}"
        m.op(self.op, self.prefix, **fields, **self.draw.fields)

    def put_loss(self, m, shapes):
        """Scalars whose derivative gives the outputs their gradients; their names."""
        if self.draw.loss:
            return [f"{self.prefix}.out"]
        names = []
        for field, dtype in self.draw.outputs.items():
            base = f"{self.prefix}.{field}"
            # Mostly of one sign, so that sums over many rows are no differences.
            dy = [self.rng.choice((-1, *7 * (1,))) * self.rng.uniform(0.5, 1.5)
                  for _ in range(cases.size_of(shapes[field]))]
            self.dy[field] = [model.round_to(m.dtype, x) for x in dy]
            m.tensor("inputs", f"{base}.dy", shapes[field], self.dy[field], dtype)
            m.op("mul", f"{base}.weighed", a=base, b=f"{base}.dy")
            m.op("sum", f"{base}.loss", x=f"{base}.weighed", dtype="f32")
            names.append(f"{base}.loss")
        return names

    def gradients(self):
        return [field for field, (_, _, kind) in self.operands.items() if kind == "param"]

    def torch_forward(self, torch, dtype):
        self.x = {}
        for field, (shape, values, kind) in self.operands.items():
            x = torch.tensor(values, dtype=torch.int64 if kind == "index" else dtype)
            self.x[field] = x.reshape(shape).requires_grad_(kind == "param")
        self.y = self.draw.call(torch, self.x)

    def torch_backward(self, torch, dtype):
        outputs = [self.y[field] for field in self.draw.outputs]
        dys = [torch.ones_like(y) if self.draw.loss else
               torch.tensor(self.dy[field], dtype=dtype).reshape(y.shape)
               for field, y in zip(self.draw.outputs, outputs)]
        torch.autograd.backward(outputs, dys)


class Worst:
    """Of many tensors the one whose error is the largest share of what is allowed."""

    def __init__(self):
        self.error = self.allowed = self.where = None
        self.share = -1.0

    def take(self, ours, theirs, where, allowed, least):
        error, at = model.error_of(ours, theirs.detach().double().flatten().tolist(), least)
        share = error / allowed if allowed else math.inf if error else 0.0
        if share > self.share:
            self.share, self.error, self.allowed = share, error, allowed
            self.where = f"{where}[{at}]"


def compare_op(args, entry, dtype, folder):
    torch, name = model.import_torch(), entry["name"]
    row = cases.ROWS[name]
    kind = torch.float32 if dtype == "f32" else torch.float64
    m = model.Model(folder, name, dtype)
    drawn, losses, outputs = [], [], []
    for i in range(args.draws):
        rng = random.Random(f"{args.seed}/{name}/{i}")
        one = Drawn(row.make(rng, entry), f"d{i}", dtype, rng)
        one.op = name
        one.torch_forward(torch, kind)
        one.put(m)
        if entry["differentiable"]:
            losses += one.put_loss(m, {field: list(y.shape) for field, y in one.y.items()})
            one.torch_backward(torch, kind)
            outputs += [f"d{i}.{field}.grad" for field in one.gradients()]
        outputs += [f"d{i}.{field}" for field in one.draw.outputs]
        drawn.append(one)
    for i, loss in enumerate(losses[1:]):
        m.op("add", f"total{i}", a=f"total{i - 1}" if i else losses[0], b=loss)
    if losses:
        m.rest.append(f"backward: {f'total{len(losses) - 2}' if losses[1:] else losses[0]}")
    m.run(args, 1, outputs)

    forward, gradient = Worst(), Worst()
    for one in drawn:
        for field, own in one.draw.outputs.items():
            at = f"{one.prefix}.{field}"
            stored = own if own and dtype != "f64" else dtype
            forward.take(m.result(at), one.y[field], at, row.allowed(stored, False),
                         row.least)
        for field in one.gradients() if losses else []:
            at = f"{one.prefix}.{field}.grad"
            gradient.take(m.result(at), one.x[field].grad, at, row.allowed(dtype, True),
                          row.least)
    fields = sorted({field for one in drawn for field in (*one.operands, *one.draw.fields,
                                                          *one.draw.lists,
                                                          *one.draw.outputs)})
    return {
        "op": name, "type": dtype, "draws": len(drawn), "fields": fields,
        "forward": forward.error, "forward_at": forward.where,
        "forward_allowed": forward.allowed,
        "gradient": gradient.error, "gradient_at": gradient.where,
        "gradient_allowed": gradient.allowed, "why": row.why,
        "environment": m.environment(),
        "ok": max(forward.share, gradient.share) <= 1,
    }


def undrawn(entry, rows):
    """Fields that no draw of any type had, named so that a new one is not overlooked."""
    seen = {field.split(".")[0] for row in rows for field in row["fields"]}
    seen |= {field for row in rows for field in row["fields"]}
    return [field["name"] for field in entry["fields"]
            if field["name"] not in seen and field["name"].split(".")[0] not in seen]


# --- the tables ---


def figure(x):
    return "-" if x is None else f"{x:.1e}"


OPS_HEAD = (f"{'op':24}{'type':6}{'draws':>5}  {'forward':>8} {'allowed':>8}  "
            f"{'gradient':>8} {'allowed':>8}  worst at")
OPTIMIZERS_HEAD = f"\n{'optimizer, 50 steps':72}{'type':6}{'error':>8} {'allowed':>8}  tensor"


def print_op(row):
    worst = row["gradient_at"] if row["gradient"] else row["forward_at"]
    print(f"{row['op']:24}{row['type']:6}{row['draws']:5}  {figure(row['forward']):>8} "
          f"{figure(row['forward_allowed']):>8}  {figure(row['gradient']):>8} "
          f"{figure(row['gradient_allowed']):>8}  {worst}"
          f"{'' if row['ok'] else '  FAILED'}", flush=True)


def print_optimizer(row):
    print(f"{row['name']:72}{row['type']:6}{figure(row['error']):>8} "
          f"{figure(row['allowed']):>8}  {row['tensor']}"
          f"{'' if row['ok'] else '  FAILED'}", flush=True)


def compare_all(args, report, key, work, tasks, head, show, title):
    """Compares, tells and keeps each task as it comes."""
    if tasks:
        print(head)
    for task, row, reason in model.each(args, work, tasks):
        if reason:
            report.add_reason(title(*task), reason)
        else:
            show(row)
            report.add(key, row)


def main():
    args = arguments()
    model.start_clock(args)
    torch = model.import_torch()
    folder = args.keep or tempfile.mkdtemp()
    entries = catalogue(args)
    not_drawn = {name: cases.reason(name) for name in entries if name not in cases.ROWS}
    report = model.Report(args, torch=torch.__version__, seed=args.seed, ops=[], optimizers=[],
                          not_drawn=not_drawn, fields_not_drawn=[])
    rows, of_optimizers = report.data["ops"], report.data["optimizers"]
    drawn = [entry for name, entry in entries.items()
             if name in cases.ROWS and (not args.only or name in args.only)]
    try:
        compare_all(args, report, "ops", compare_op,
                    [(entry, dtype, os.path.join(folder, f"{entry['name']}-{dtype}"))
                     for entry in drawn for dtype in args.types], OPS_HEAD, print_op,
                    lambda entry, dtype, folder: f"{entry['name']} {dtype}")
        compare_all(args, report, "optimizers", optimizers.compare,
                    [(dtype, i, folder) for dtype in args.types
                     for i in optimizers.numbers_of(dtype, args.only)], OPTIMIZERS_HEAD,
                    print_optimizer, lambda dtype, i, folder: optimizers.name_of(i, dtype))
    finally:
        if not args.keep:
            shutil.rmtree(folder)
    if not args.only:
        print("\nNot drawn:")
        for name, reason in not_drawn.items():
            print(f"  {name}: {reason or 'NO REASON IS GIVEN: FAILED'}")
    for entry in drawn:
        of_op = [row for row in rows if row["op"] == entry["name"]]
        if of_op:
            report.data["fields_not_drawn"] += [f"{entry['name']}: {field}"
                                                for field in undrawn(entry, of_op)]
    if report.data["fields_not_drawn"]:
        print("Fields that no draw had: " + ", ".join(report.data["fields_not_drawn"]))
    failed = sum(not row["ok"] for row in rows + of_optimizers)
    failed += sum(reason is None for reason in not_drawn.values())
    print(f"\n{len(rows)} ops in a type, {sum(row['draws'] for row in rows)} draws, "
          f"{len(of_optimizers)} optimizers, PyTorch {torch.__version__}: "
          f"{failed + len(report.data['failed'])} failed")
    report.write()
    return report.status(failed, len(rows) + len(of_optimizers))


if __name__ == "__main__":
    raise SystemExit(main())
