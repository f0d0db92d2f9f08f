"""What is trained: the workloads, shapes drawn at random, their models as YAML, the targets."""

import dataclasses
import math
import os
import random
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
TYPES = ("f32", "tf32", "bf16")
ACTIVATIONS = ("relu", "gelu_tanh", "silu", "tanh")
LOSSES = ("cross_entropy", "mse")
# A rate at which 50 steps on one batch do not bring the loss near nothing, where a relative
# difference is float32's own, and forms of one peer differ by more than the bound.
LEARNING_RATE, WEIGHT_DECAY = 1e-4, 0.01
BETAS, EPSILON = (0.9, 0.999), 1e-8


@dataclasses.dataclass(frozen=True)
class Case:
    """A stack of layers, each a product, a bias and, but for the last, an activation."""

    name: str
    batch: int
    widths: tuple
    activation: str
    loss: str
    precision: str
    example: str = ""  # of graphs/examples; otherwise the model is written
    repeated: bool = False  # the example's layers but the last are turns of `layer`

    @property
    def layers(self):
        return list(zip(self.widths, self.widths[1:]))

    def parameters(self, i):
        """gexec's names of the weight and the bias of layer i."""
        if self.repeated:
            return (("w_last", "b_last") if i == len(self.layers) - 1
                    else (f"layer.{i}.w", f"layer.{i}.b"))
        return f"w{i + 1}", f"b{i + 1}"

    @property
    def target(self):
        return "y" if self.loss == "cross_entropy" else "target"

    def words(self):
        """The shape in a few words."""
        widths = "-".join(map(str, self.widths))
        if len(set(self.widths)) == 1:
            widths = f"{len(self.layers)} layers of {self.widths[0]}"
        return f"{self.batch}; {widths}, {self.activation}, {self.loss}"

    def flops(self):
        """Of the products: output, weight gradient, and data gradient but for the first."""
        return [2 * self.batch * a * b * (2 if i == 0 else 3)
                for i, (a, b) in enumerate(self.layers)]

    def n_parameters(self):
        return sum((a + 1) * b for a, b in self.layers)


WORKLOADS = {
    "mnist_mlp": dict(batch=64, widths=(784, 256, 256, 10), activation="relu",
                      loss="cross_entropy", example="mnist_mlp"),
    "deep_narrow": dict(batch=32, widths=(512,) * 17, activation="gelu_tanh", loss="mse",
                        example="deep_narrow", repeated=True),
    "wide": dict(batch=4096, widths=(4096,) * 5, activation="gelu_tanh", loss="mse",
                 example="wide", repeated=True),
    # Small enough for every peer's CPU: to try the script.
    "tiny": dict(batch=12, widths=(24, 16, 10), activation="tanh", loss="cross_entropy"),
}

# How many times faster than which peer: at one step a launch, at many.
TARGETS = {
    ("mnist_mlp", "tf32"): (("torch_compile_all", 3.0), ("jax_scan", 2.0)),
    ("mnist_mlp", "bf16"): (("torch_compile_all", 2.7), ("jax_scan", 2.0)),
    ("deep_narrow", "tf32"): (("torch_compile", 3.0), ("jax_scan", 2.0)),
    ("deep_narrow", "bf16"): (("torch_compile", 3.0), ("jax_scan", 2.3)),
    ("wide", "tf32"): (("jax_jit", 1.15), ("jax_scan", 1.13)),
    ("wide", "bf16"): (("jax_jit", 1.05), ("jax_scan", 1.03)),
}


def workload(name, precision):
    return Case(name=name, precision=precision, **WORKLOADS[name])


# --- random shapes --------------------------------------------------------------------

RANGE = {"layers": (2, 24), "widths": (64, 1024), "batch": (8, 256), "multiple_of": 8}
RANGE_WORDS = ("layers 2 to 24, widths 64 to 1024 and batch 8 to 256 (multiples of 8, even in "
               "the logarithm), half of them of one width; activation "
               + ", ".join(ACTIVATIONS) + "; loss " + " or ".join(LOSSES))


def draw(rng, bounds):
    """A multiple of 8 within bounds, even in the logarithm."""
    low, high = bounds
    step = RANGE["multiple_of"]
    value = math.exp(rng.uniform(math.log(low), math.log(high)))
    return min(high, max(low, step * round(value / step)))


def random_cases(count, seed, precisions, first=0):
    """Shapes of the seed from the one numbered `first`, the types in turn. A longer list
    begins with the shorter one."""
    found = []
    for i in range(first, first + count):
        rng = random.Random(f"{seed}.{i}")
        layers = rng.randint(*RANGE["layers"])
        if rng.random() < 0.5:
            widths = (draw(rng, RANGE["widths"]),) * (layers + 1)
        else:
            widths = tuple(draw(rng, RANGE["widths"]) for _ in range(layers + 1))
        found.append(Case(name=f"random_{seed}_{i}", batch=draw(rng, RANGE["batch"]),
                          widths=widths, activation=rng.choice(ACTIVATIONS),
                          loss=rng.choice(LOSSES), precision=precisions[i % len(precisions)]))
    return found


# --- models ---------------------------------------------------------------------------


def example_text(case):
    """The example with this precision."""
    with open(os.path.join(ROOT, "graphs", "examples", case.example + ".yaml")) as file:
        text, n = re.subn(r"(?m)^precision:.*$", f"precision: {case.precision}", file.read())
    if n != 1:
        raise ValueError(f"{case.example}.yaml: expected one line `precision:`")
    return text


def model_text(case):
    if case.example:
        return example_text(case)
    lines = ["gexec: 1", f"name: {case.name.replace('_', '-')}",
             f"dims: {{batch: {case.batch}}}", f"precision: {case.precision}", "inputs:",
             f"  x: {{shape: [batch, {case.widths[0]}], init: normal}}"]
    if case.loss == "cross_entropy":
        lines += ["  y: {shape: [batch], dtype: i32, "
                  f"init: {{integers: [0, {case.widths[-1]}]}}}}"]
    else:
        lines += [f"  target: {{shape: [batch, {case.widths[-1]}], dtype: f32, init: normal}}"]
    lines += ["params:"]
    for i, (fan_in, fan_out) in enumerate(case.layers):
        weight, bias = case.parameters(i)
        lines += [f"  {weight}: {{shape: [{fan_in}, {fan_out}], init: torch_linear}}",
                  f"  {bias}: {{shape: [{fan_out}], init: {{torch_linear: "
                  f"{{fan_in: {fan_in}}}}}}}"]
    lines += ["ops:"]
    before = "x"
    for i in range(len(case.layers)):
        weight, bias = case.parameters(i)
        last = i == len(case.layers) - 1
        act = "" if last else f", act: {case.activation}"
        out = "output" if last else f"h{i + 1}"
        lines += [f"  - {{op: gemm, name: fc{i + 1}, a: {before}, b: {weight}, "
                  f"epilogue: {{bias: {bias}{act}}}, out: {out}}}"]
        before = out
    lines += ["  - {op: softmax_cross_entropy, name: loss, logits: output, labels: y}"
              if case.loss == "cross_entropy" else
              "  - {op: mse, name: loss, x: output, target: target}",
              "backward: loss",
              f"optimizer: {{adamw: {{lr: {LEARNING_RATE}, weight_decay: {WEIGHT_DECAY}}}}}",
              "outputs: [loss]"]
    return "\n".join([*lines, ""])
