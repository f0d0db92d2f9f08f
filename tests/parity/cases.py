"""The ops of the catalogue that PyTorch has: how one is drawn, and what PyTorch calls it.

A row is a function of a random generator and of the op's entry in the catalogue; it
returns a Draw. An error is the largest difference of an element over the largest element
of PyTorch's tensor, and bounds count roundings. `forward` and `gradient` are for f32 and
f64, in units of 2^-24 and 2^-53: what order a sum is taken in, and which polynomial a
function is, may differ. bf16 is summed and computed in f32, so there `stored` counts, for
outputs and for gradients, the tensors that are rounded on the way, in units of 2^-8; an
output that is f32 in a bf16 model has the bound of f32.

Operands are about 1 in size. Where a result is a sum that may cancel to near nothing, a
difference counts against 1/4 at least (`cancels`).
"""

from model import ROUNDOFF

SIZES = (1, 2, 3, 5, 7, 8, 13, 16, 17)


class Draw:
    """One op with shapes, numbers and fields."""

    def __init__(self, call, **fields):
        self.call = call  # of a dict of torch tensors by name: the outputs by field
        self.fields = fields  # settings as YAML
        self.operands = {}  # field: (shape, values, kind); kind: param, input, index
        self.lists = {}  # field of a list: names of its operands
        self.outputs = {"out": None}  # field: type, where it is not the model's
        self.loss = False

    def add(self, field, shape, values, kind="param"):
        """kind: param, input, index (i32), or f32 where the model's own type is another."""
        self.operands[field] = (tuple(shape), values, kind)
        return self


ROWS = {}


class Row:
    def __init__(self, make, forward, gradient, stored, cancels, why):
        self.make, self.forward, self.gradient = make, forward, gradient
        self.stored, self.why = stored, why
        self.least = 0.25 if cancels else 0.0

    def allowed(self, dtype, gradient):
        """The bound on an error of a tensor of that type."""
        computed = self.gradient if gradient else self.forward
        if dtype in ("bf16", "f16"):
            return self.stored[gradient] * ROUNDOFF[dtype] + computed * ROUNDOFF["f32"]
        return computed * ROUNDOFF[dtype]


def row(*names, forward, gradient, why, stored=(1, 2), cancels=False):
    """Puts make(rng, entry) into the table under each name."""

    def put(make):
        for name in names:
            ROWS[name] = Row(make, forward, gradient, stored, cancels, why)
        return make

    return put


# --- drawing ---


def shape_of(rng, low=1, high=4, sizes=SIZES):
    shape = []
    for _ in range(rng.randint(low, high)):
        shape.append(rng.choice(sizes))
        if len(shape) > 2:  # some thousand elements at most
            shape[-1] = min(shape[-1], 5)
    return shape


def size_of(shape):
    n = 1
    for size in shape:
        n *= size
    return n


def normal(rng, shape, mean=0.0):
    return [rng.gauss(mean, 1) for _ in range(size_of(shape))]


def off_zero(rng, shape):
    """Numbers that a rounding does not carry over a kink at 0."""
    return [rng.choice((-1, 1)) * rng.uniform(0.1, 2) for _ in range(size_of(shape))]


def has(entry, field):
    return any(item["name"] == field for item in entry["fields"])


def choices(entry, field):
    return next(item["choices"] for item in entry["fields"] if item["name"] == field)


def maybe_reduction(rng, entry, draw):
    """Sets the reduction of a loss where the op has one; its name for PyTorch."""
    if not has(entry, "reduction"):
        return "mean"
    reduction = rng.choice(choices(entry, "reduction"))
    draw.fields["reduction"] = reduction
    return reduction


def activate(torch, act, x):
    functional = torch.nn.functional
    return {"none": lambda: x, "relu": lambda: torch.relu(x),
            "gelu_tanh": lambda: functional.gelu(x, approximate="tanh"),
            "gelu_erf": lambda: functional.gelu(x), "silu": lambda: functional.silu(x),
            "tanh": lambda: torch.tanh(x), "sigmoid": lambda: torch.sigmoid(x)}[act]()


# --- products and activations ---


def whole(rng, shape, off=0.0):
    """Whole numbers, or those plus `off`: sums of them that are not 0 stay off 0 in each
    type, which is where relu bends."""
    return [rng.randint(-2, 2) + off for _ in range(size_of(shape))]


def add_steps(rng, entry, draw, prefix, shape, bias):
    """Scale, bias, residual and activation behind a tensor of that shape, as far as the op
    has them. Returns what PyTorch does: of torch, operands and x, (out, pre)."""
    act = rng.choice(choices(entry, prefix + "act"))
    kink = act == "relu"
    factor, steps = 1.0, ["bias", "residual"]
    if act != "none":
        draw.fields[prefix + "act"] = act
        steps.append("act")
    if has(entry, prefix + "scale") and rng.random() < 0.4:
        factor = draw.fields[prefix + "scale"] = rng.choice((0.5, -2.0))
        steps.insert(0, "scale")
    if bias or rng.random() < 0.5:
        draw.add(prefix + "bias", shape[-1:], whole(rng, shape[-1:], 0.25) if kink else
                 normal(rng, shape[-1:]))
    if has(entry, prefix + "residual") and rng.random() < 0.4:
        draw.add(prefix + "residual", shape,
                 whole(rng, shape) if kink else normal(rng, shape))
    steps = [step for step in steps if step not in ("bias", "residual")
             or prefix + step in draw.operands]
    if has(entry, prefix + "order") and steps and rng.random() < 0.5:
        rng.shuffle(steps)
        draw.fields[prefix + "order"] = list(steps)

    def apply(torch, x, y):
        pre = None
        for step in steps:
            if step == "act":
                pre, y = y, activate(torch, act, y)
            else:
                y = factor * y if step == "scale" else y + x[prefix + step]
        return y, y if pre is None else pre

    return apply


def add_rows(rng, entry, draw, sizes, ta, tb, has_c):
    """Rows that are wider than what is used of them, by how much: of a, b, c and out. Sizes
    that no operand says are written, and now and then all of them."""
    m, n, k = sizes
    used = {"a": m if ta else k, "b": k if tb else n, "c": n, "out": n}
    wider = dict.fromkeys(used, 0)
    if has(entry, "ld.a") and rng.random() < 0.5:
        for name in used:
            if rng.random() < 0.6 and (name != "c" or has_c):
                wider[name] = rng.choice((1, 2, 3, 8))
                draw.fields["ld." + name] = used[name] + wider[name]
    hidden = {"m": ta and wider["a"], "n": not tb and wider["b"],
              "k": not ta and tb and wider["a"] and wider["b"]}
    say_all = has(entry, "m") and rng.random() < 0.2
    for name, size in zip("mnk", sizes):
        if say_all or hidden[name]:
            draw.fields[name] = size
    return wider


@row("gemm", forward=64, gradient=192, stored=(4, 12), cancels=True,
     why="sums of up to 120 products, each rounded once in torch's order and once in ours; "
         "bf16 rounds the product, then what each step behind it makes of it, and the "
         "gradient once a step before it is summed up")
def gemm(rng, entry):
    m, n, k = (rng.choice(SIZES + (40,)) for _ in range(3))
    ta, tb = rng.random() < 0.5, rng.random() < 0.5
    batch, of_a, of_b, summed = [], True, True, False
    if has(entry, "sum_batch") and rng.random() < 0.5:
        batch = [rng.choice((1, 2, 3)) for _ in range(rng.randint(1, 2))]
        one = rng.choice("ab--")
        of_a, of_b = one != "a", one != "b"
        summed = one == "-" and rng.random() < 0.5
    alpha = beta = 1.0
    out = ([] if summed else batch) + [m, n]
    draw = Draw(None, trans_a=ta, trans_b=tb)
    if summed:
        draw.fields["sum_batch"] = True
    if has(entry, "alpha") and rng.random() < 0.4:
        alpha = draw.fields["alpha"] = rng.choice((0.5, -2.0))
    has_c = has(entry, "c") and rng.random() < 0.4
    wider = add_rows(rng, entry, draw, (m, n, k), ta, tb, has_c)
    if has_c:
        shape = out[:-1] + [n + wider["c"]]
        draw.add("c", shape, whole(rng, shape))
        if rng.random() < 0.5:
            beta = draw.fields["beta"] = rng.choice((0.5, 2.0))
    apply = add_steps(rng, entry, draw, "epilogue.", out, bias=True)
    kink = draw.fields.get("epilogue.act") == "relu"
    for name, own, shape in (("a", of_a, [k, m] if ta else [m, k]),
                             ("b", of_b, [n, k] if tb else [k, n])):
        shape = (batch if own else []) + shape
        shape[-1] += wider[name]
        draw.add(name, shape, whole(rng, shape) if kink else normal(rng, shape))

    def call(torch, x):
        a, b = x["a"][..., :m if ta else k], x["b"][..., :k if tb else n]
        y = (a.mT if ta else a) @ (b.mT if tb else b)
        if summed:
            y = y.sum(tuple(range(len(batch))))
        y = alpha * y + (beta * x["c"][..., :n] if "c" in x else 0)
        y = apply(torch, x, y)[0]
        return {"out": torch.nn.functional.pad(y, (0, wider["out"]))}

    draw.call = call
    return draw


@row("epilogue", forward=64, gradient=192, stored=(3, 4), cancels=True,
     why="a few sums, a function of a few roundings; the bias's gradient sums up to some "
         "thousand elements of either sign")
def epilogue(rng, entry):
    shape = shape_of(rng)
    draw = Draw(None)
    apply = add_steps(rng, entry, draw, "", shape, bias=False)
    kink = draw.fields.get("act") == "relu"
    draw.add("x", shape, whole(rng, shape, 0.125) if kink else normal(rng, shape))
    if rng.random() < 0.3:
        draw.outputs["pre"] = None
    draw.call = lambda torch, x: dict(zip(("out", "pre"), apply(torch, x, x["x"])))
    return draw


@row("relu", "gelu_tanh", "gelu_erf", "silu", "tanh", "sigmoid", forward=32, gradient=32,
     stored=(1, 4),
     why="a function of a few roundings, whose f32 forms differ by units in the last place")
def activation(rng, entry):
    act = entry["name"]
    shape = shape_of(rng)
    return Draw(lambda torch, x: {"out": activate(torch, act, x["x"])}).add(
        "x", shape, off_zero(rng, shape) if act == "relu" else normal(rng, shape, 0.3))


# --- element by element ---


def broadcasting(rng):
    """Two shapes that broadcast with each other."""
    full = shape_of(rng, 0, 4)

    def part():
        shape = [1 if rng.random() < 0.3 else size for size in full]
        return shape[rng.randint(0, len(shape)) if rng.random() < 0.3 else 0:]

    a, b = part(), part()
    return a, b


@row("add", "sub", "mul", forward=4, gradient=192, stored=(1, 3), cancels=True,
     why="one rounding; a gradient is summed over what was broadcast, up to some thousand "
         "elements of either sign")
def binary(rng, entry):
    function = {"add": "__add__", "sub": "__sub__", "mul": "__mul__"}[entry["name"]]
    a, b = broadcasting(rng)
    return Draw(lambda torch, x: {"out": getattr(x["a"], function)(x["b"])}).add(
        "a", a, normal(rng, a, 1)).add("b", b, normal(rng, b, 1))


@row("scale", forward=4, gradient=4, stored=(1, 1), why="one rounding")
def scale(rng, entry):
    shape, factor = shape_of(rng, 0), rng.uniform(-3, 3)
    return Draw(lambda torch, x: {"out": factor * x["x"]}, factor=factor).add(
        "x", shape, normal(rng, shape))


# --- reductions ---


@row("sum", "mean", "max", forward=64, gradient=8, cancels=True,
     why="sums of up to some thousand elements of a mean of 1, in pairs or blocks")
def reduction(rng, entry):
    shape = shape_of(rng, 0, 4)
    some = [i for i in range(len(shape)) if rng.random() < 0.5]
    keepdim = rng.random() < 0.5
    axis = None if not some else [i - len(shape) if rng.random() < 0.5 else i for i in some]

    def call(torch, x):
        dim = tuple(range(x["x"].dim())) if axis is None else tuple(axis)
        if x["x"].dim() == 0:
            return {"out": x["x"] * 1}
        function = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax}[entry["name"]]
        return {"out": function(x["x"], dim=dim, keepdim=keepdim)}

    draw = Draw(call, keepdim=keepdim).add("x", shape, normal(rng, shape, 1))
    if axis is not None:
        draw.fields["axis"] = axis[0] if len(axis) == 1 and rng.random() < 0.5 else axis
    if has(entry, "dtype") and rng.random() < 0.3:
        draw.fields["dtype"] = "f32"
        draw.outputs["out"] = "f32"
    return draw


def smaller(rng, full):
    """A shape that broadcasts to `full`."""
    shape = [1 if rng.random() < 0.4 else size for size in full]
    return shape[rng.randint(0, len(shape)) if rng.random() < 0.4 else 0:]


@row("sum_to", forward=64, gradient=4, cancels=True,
     why="sums of up to some thousand elements")
def sum_to(rng, entry):
    full = shape_of(rng, 0, 4)
    shape = smaller(rng, full)
    return Draw(lambda torch, x: {"out": x["x"].sum_to_size(shape)}, shape=shape).add(
        "x", full, normal(rng, full, 1))


@row("broadcast_to", forward=0, gradient=192, stored=(0, 2), cancels=True,
     why="a copy; its gradient sums up to some thousand elements of either sign")
def broadcast_to(rng, entry):
    full = shape_of(rng, 0, 4)
    shape = smaller(rng, full)
    return Draw(lambda torch, x: {"out": torch.broadcast_to(x["x"], full)},
                shape=full).add("x", shape, normal(rng, shape))


@row("softmax", forward=24, gradient=96, stored=(1, 5), cancels=True,
     why="an exponential and a sum; the gradient is a difference of near equals")
def softmax(rng, entry):
    shape = shape_of(rng, 1)
    axis = rng.randint(-len(shape), len(shape) - 1)
    return Draw(lambda torch, x: {"out": torch.softmax(x["x"], dim=axis)}, axis=axis).add(
        "x", shape, normal(rng, shape))


@row("layer_norm", forward=64, gradient=256, stored=(2, 3), cancels=True,
     why="a mean, a variance and a root; the gradient is what two means leave of dy")
def layer_norm(rng, entry):
    shape = shape_of(rng, 1, 3, sizes=(3, 5, 8, 13, 16, 40))
    draw = Draw(None).add("x", shape, normal(rng, shape))
    eps = draw.fields["eps"] = rng.choice((1e-5, 1e-3))
    if rng.random() < 0.7:
        draw.add("weight", shape[-1:], normal(rng, shape[-1:], 1))
        if rng.random() < 0.7:
            draw.add("bias", shape[-1:], normal(rng, shape[-1:]))
    draw.call = lambda torch, x: {"out": torch.nn.functional.layer_norm(
        x["x"], shape[-1:], x.get("weight"), x.get("bias"), eps)}
    return draw


@row("rms_norm", forward=48, gradient=192, stored=(2, 3), cancels=True,
     why="a mean of squares and a root; the gradient is what a mean leaves of dy")
def rms_norm(rng, entry):
    shape = shape_of(rng, 1, 3, sizes=(3, 5, 8, 13, 16, 40))
    draw = Draw(None).add("x", shape, normal(rng, shape))
    eps = draw.fields["eps"] = rng.choice((1e-6, 1e-3))
    if rng.random() < 0.7:
        draw.add("weight", shape[-1:], normal(rng, shape[-1:], 1))
    draw.call = lambda torch, x: {"out": torch.nn.functional.rms_norm(
        x["x"], shape[-1:], x.get("weight"), eps)}
    return draw


# --- moving ---


@row("transpose", forward=0, gradient=0, stored=(0, 0), why="a copy")
def transpose(rng, entry):
    shape = shape_of(rng, 2, 4)
    perm = list(range(len(shape)))
    rng.shuffle(perm)
    if rng.random() < 0.3:
        return Draw(lambda torch, x: {"out": x["x"].transpose(-1, -2) * 1}).add(
            "x", shape, normal(rng, shape))
    return Draw(lambda torch, x: {"out": x["x"].permute(perm) * 1}, perm=perm).add(
        "x", shape, normal(rng, shape))


@row("reshape", forward=0, gradient=0, stored=(0, 0),
     why="a copy or a view")
def reshape(rng, entry):
    shape = shape_of(rng, 1, 4)
    to = [size_of(shape)] if rng.random() < 0.3 else \
        [size_of(shape[:1]), -1] if rng.random() < 0.5 else shape[::-1]
    return Draw(lambda torch, x: {"out": x["x"].reshape(to)}, shape=to).add(
        "x", shape, normal(rng, shape))


@row("slice", forward=0, gradient=0, stored=(0, 0), why="a copy")
def slice_(rng, entry):
    shape = shape_of(rng, 1, 4)
    axis = rng.randrange(len(shape))
    start, step = rng.randrange(shape[axis]), rng.randint(1, 3)
    stop = rng.randint(start + 1, shape[axis])

    def call(torch, x):
        index = [slice(None)] * len(shape)
        index[axis] = slice(start, stop, step)
        return {"out": x["x"][tuple(index)] * 1}

    return Draw(call, axis=axis - len(shape) if rng.random() < 0.5 else axis, start=start,
                stop=stop, step=step).add("x", shape, normal(rng, shape))


@row("concat", forward=0, gradient=0, stored=(0, 0), why="a copy")
def concat(rng, entry):
    shape = shape_of(rng, 1, 3)
    axis, n = rng.randrange(len(shape)), rng.randint(1, 5)
    names = [f"x.{i}" for i in range(n)]
    draw = Draw(lambda torch, x: {"out": torch.cat([x[name] for name in names], axis)},
                axis=axis)
    draw.lists["x"] = names
    for name in names:
        part = list(shape)
        part[axis] = rng.choice((1, 2, 3, 5))
        draw.add(name, part, normal(rng, part))
    return draw


@row("cast", forward=1, gradient=1, stored=(0, 1), why="one rounding at most")
def cast(rng, entry):
    shape = shape_of(rng)
    draw = Draw(lambda torch, x: {"out": x["x"] * 1}, dtype="f32")
    draw.outputs["out"] = "f32"
    return draw.add("x", shape, normal(rng, shape))


@row("embedding", forward=0, gradient=48, stored=(0, 2), cancels=True,
     why="a copy; its gradient sums equal indexes")
def embedding(rng, entry):
    rows, columns = rng.choice(SIZES), rng.choice(SIZES)
    shape = shape_of(rng, 1, 2)
    return Draw(lambda torch, x: {"out": torch.nn.functional.embedding(
        x["index"], x["table"])}).add("table", [rows, columns],
                                      normal(rng, [rows, columns])).add(
        "index", shape, [rng.randrange(rows) for _ in range(size_of(shape))], "index")


# --- losses and metrics ---


@row("softmax_cross_entropy", forward=48, gradient=96,
     why="a logarithm of a sum, averaged over rows; softmax less 1 in the gradient")
def softmax_cross_entropy(rng, entry):
    rows, classes = rng.choice(SIZES), rng.choice(SIZES[1:] + (40,))
    labels = [rng.randrange(classes) for _ in range(rows)]
    draw = Draw(None)
    settings = {"reduction": maybe_reduction(rng, entry, draw)}
    if has(entry, "ignore_index") and rng.random() < 0.5:
        settings["ignore_index"] = draw.fields["ignore_index"] = rng.choice((-100, 0))
        labels = [settings["ignore_index"] if rng.random() < 0.3 else x for x in labels]
        labels[0] = classes - 1  # one counts: the mean over none is NaN
    if has(entry, "label_smoothing") and rng.random() < 0.5:
        settings["label_smoothing"] = draw.fields["label_smoothing"] = 0.1
    draw.call = lambda torch, x: {"out": torch.nn.functional.cross_entropy(
        x["logits"], x["labels"], **settings)}
    draw.loss = True
    draw.outputs["out"] = "f32"
    return draw.add("logits", [rows, classes], normal(rng, [rows, classes])).add(
        "labels", [rows], labels, "index")


@row("mse", "l1", "bce_with_logits", forward=48, gradient=32,
     why="a mean or sum of up to some thousand elements")
def pointwise(rng, entry):
    name = {"mse": "mse_loss", "l1": "l1_loss",
            "bce_with_logits": "binary_cross_entropy_with_logits"}[entry["name"]]
    shape = shape_of(rng, 0, 3)
    draw = Draw(None)
    reduction = maybe_reduction(rng, entry, draw)
    draw.call = lambda torch, x: {"out": getattr(torch.nn.functional, name)(
        x["x"], x["target"], reduction=reduction)}
    draw.loss = True
    draw.outputs["out"] = "f32"
    draw.add("x", shape, normal(rng, shape))
    if entry["name"] == "bce_with_logits":
        target = [rng.choice((0.0, 1.0, 0.25)) for _ in range(size_of(shape))]
        return draw.add("target", shape, target, "input")
    # The difference of l1 stays off 0, where it bends.
    target = [x + d for x, d in zip(draw.operands["x"][1], off_zero(rng, shape))]
    trained = entry["name"] == "mse" and rng.random() < 0.5
    return draw.add("target", shape, target, "param" if trained else "input")


@row("accuracy", forward=1, gradient=0, why="a whole number of rows over their number")
def accuracy(rng, entry):
    rows, classes = rng.choice(SIZES), rng.choice(SIZES[1:])

    def call(torch, x):
        return {"out": (x["logits"].argmax(1) == x["labels"]).to(x["logits"].dtype).mean()}

    draw = Draw(call)
    draw.outputs["out"] = "f32"
    return draw.add("logits", [rows, classes], normal(rng, [rows, classes]), "input").add(
        "labels", [rows], [rng.randrange(classes) for _ in range(rows)], "index")


@row("topk", forward=1, gradient=0, why="a whole number of rows over their number")
def topk(rng, entry):
    rows, classes = rng.choice(SIZES), rng.choice(SIZES[1:])
    k = rng.randint(1, classes)

    def call(torch, x):
        found = x["logits"].topk(k, dim=1).indices == x["labels"][:, None]
        return {"out": found.any(1).to(x["logits"].dtype).mean()}

    draw = Draw(call, k=k)
    draw.outputs["out"] = "f32"
    return draw.add("logits", [rows, classes], normal(rng, [rows, classes]), "input").add(
        "labels", [rows], [rng.randrange(classes) for _ in range(rows)], "index")


@row("perplexity", forward=8, gradient=0, why="an exponential of a number below 4")
def perplexity(rng, entry):
    draw = Draw(lambda torch, x: {"out": torch.exp(x["loss"])})
    draw.outputs["out"] = "f32"
    return draw.add("loss", [], [rng.uniform(0, 4)], "f32")


# --- what is left to others ---

# Compared over 50 steps against torch.optim, by optimizers.py.
OPTIMIZERS = {"sgd", "momentum", "nesterov", "adam", "adamw"}

NOT_IN_TORCH = {
    "accumulate": "part of optimizers with `accumulate`, which optimizers.py compares",
    "grad_norm": "part of optimizers with `clip_norm`, which optimizers.py compares",
    "schedule": "part of optimizers with `schedule`, which optimizers.py compares",
    "loss_scale": "part of optimizers with `loss_scale`, which optimizers.py compares",
    "gather": "a batch of a data set under gexec's own shuffle; curves.py compares what "
              "training on one gives",
    "step.end": "gexec's counters and log",
    "dropout": "a random sequence of gexec's own, which no other program draws; its mask "
               "is held against the CPU's by tests",
}


def reason(name):
    """Why a row of the catalogue is not drawn; None where there is no reason."""
    if name in NOT_IN_TORCH:
        return NOT_IN_TORCH[name]
    if name in OPTIMIZERS:
        return "compared over 50 steps with torch.optim, below"
    if name.endswith(".bwd") and name[:-4] in ROWS:
        return f"the derivative of {name[:-4]}, compared as its gradients"
    return None
