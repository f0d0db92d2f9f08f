"""Fifty steps of each optimizer, with what can stand beside it, against torch.optim.

In f32 and f64. A parameter in bf16 is rounded by as much as a step moves it, so that two
programs drift apart whatever they compute; curves.py bounds what training in it comes to.
"""

import os
import random

import cases
import model

STEPS = 50
ROWS, INNER, OUTER = 24, 9, 5

# Largest difference of an element, over the largest of the tensor, after 50 steps. In f64
# the two orders of summation are all that differs. In f32 PyTorch and gexec both round each
# stored tensor in each of 50 steps (50 * 2^-24 = 3e-6), Adam divides by roots of small
# squares.
ALLOWED = {"f64": 1e-12, "f32": 1e-5}
SCALER = {"initial": 256, "growth_interval": 4, "growth": 4}


def torch_options(torch, name, lr, settings):
    """(class, keywords)"""
    optim = torch.optim
    if name in ("adam", "adamw"):
        keywords = {"lr": lr}
        keywords["betas"] = (settings.get("beta1", 0.9), settings.get("beta2", 0.999))
        for key in ("eps", "weight_decay"):
            if key in settings:
                keywords[key] = settings[key]
        return (optim.Adam if name == "adam" else optim.AdamW), keywords
    keywords = {"lr": lr, "weight_decay": settings.get("weight_decay", 0)}
    if name != "sgd":
        keywords["momentum"] = settings.get("momentum", 0.9)
        keywords["dampening"] = settings.get("dampening", 0)
        keywords["nesterov"] = name == "nesterov"
    return optim.SGD, keywords


def schedule_of(torch, optimizer, lr, schedule):
    """PyTorch's scheduler for the words of a model; None where there is none."""
    if schedule is None:
        return None
    (kind, s), = schedule.items()
    lrs, warmup = torch.optim.lr_scheduler, s.get("warmup", 0)
    rest = s.get("steps", 0) - warmup
    after = {
        "constant": lambda: lrs.LambdaLR(optimizer, lambda epoch: 1),
        "step": lambda: lrs.StepLR(optimizer, s["every"], s["factor"]),
        "cosine": lambda: lrs.CosineAnnealingLR(optimizer, rest,
                                                eta_min=s.get("end", 0) * lr),
        "linear": lambda: lrs.LinearLR(optimizer, 1, s.get("end", 0), rest),
    }[kind]
    if not warmup:
        return after()
    first = lrs.LinearLR(optimizer, 1 / warmup, 1, warmup - 1)
    return lrs.SequentialLR(optimizer, [first, after()], [warmup])


def scaler_of(torch, scale):
    """PyTorch's scaler for the words of a model; it does nothing where there is none."""
    dynamic = isinstance(scale, dict)
    s = scale["dynamic"] if dynamic else {}
    return torch.amp.GradScaler(
        "cpu", enabled=scale is not None, init_scale=s["initial"] if dynamic else scale or 1,
        growth_factor=s.get("growth", 2.0), backoff_factor=s.get("backoff", 0.5),
        growth_interval=s["growth_interval"] if dynamic else 10 * STEPS)


def configurations():
    """(optimizer, lr, settings, what stands beside it)"""
    plain = {"sgd": 0.2, "momentum": 0.05, "nesterov": 0.05, "adam": 0.01, "adamw": 0.01}
    for name, lr in plain.items():
        yield name, lr, {}, {}
        yield name, lr, {"weight_decay": 0.1}, {}
    yield "momentum", 0.05, {"momentum": 0.7, "dampening": 0.3}, {}
    yield "nesterov", 0.05, {"momentum": 0.8, "weight_decay": 0.05}, {}
    yield "adam", 0.01, {"beta1": 0.8, "beta2": 0.9, "eps": 1e-4}, {}
    for name, lr in plain.items():
        yield name, lr, {}, {"clip_norm": 0.1}
        yield name, lr, {}, {"accumulate": 4}
        yield name, lr, {}, {"loss_scale": 1024}
        yield name, lr, {}, {"loss_scale": {"dynamic": SCALER}, "clip_norm": 0.1,
                             "accumulate": 3}
    for schedule in ({"step": {"every": 7, "factor": 0.6}},
                     {"step": {"every": 7, "factor": 0.6, "warmup": 5}},
                     {"constant": {"warmup": 9}},
                     {"cosine": {"steps": 60}},
                     {"cosine": {"steps": 60, "warmup": 10, "end": 0.1}},
                     {"linear": {"steps": 30, "end": 0.25}},
                     {"linear": {"steps": 40, "warmup": 8, "end": 0.5}}):
        yield "sgd", 0.2, {}, {"schedule": schedule}
        yield "adamw", 0.01, {}, {"schedule": schedule}
    for name, lr in plain.items():
        yield name, lr, {}, {"group": {"weight_decay": 0.2, "lr": lr / 3}}
        yield name, lr, {"weight_decay": 0.02}, {
            "clip_norm": 0.05, "accumulate": 3,
            "schedule": {"cosine": {"steps": 20, "warmup": 4, "end": 0.1}},
            "group": {"weight_decay": 0.0, "lr": lr / 2}}


def map_words(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {map_words(v)}" for k, v in value.items()) + "}"
    return model.words(value)


def title(name, settings, beside):
    def beside_text(key, value):
        if key == "group":
            return key
        if not isinstance(value, dict):
            return f"{key}={map_words(value)}"
        (kind, fields), = value.items()
        return f"{key}={kind}" if key == "loss_scale" else \
            kind + ("+warmup" if "warmup" in fields else "")

    return " ".join([name, *(f"{k}={v}" for k, v in settings.items()),
                     *(beside_text(k, v) for k, v in beside.items())])


def numbers(dtype):
    """Where both start from."""
    rng = random.Random("optimizers")
    shapes = {"x": (ROWS, INNER), "t": (ROWS, OUTER), "w": (INNER, OUTER), "b": (OUTER,)}
    return {name: (shape, [model.round_to(dtype, x) for x in cases.normal(rng, shape)])
            for name, shape in shapes.items()}


def ours(args, dtype, start, folder, name, lr, settings, beside):
    m = model.Model(folder, "optimizer", dtype)
    for tensor, (shape, values) in start.items():
        m.tensor("params" if tensor in "wb" else "inputs", tensor, shape, values)
    m.op("gemm", "y", a="x", b="w", **{"epilogue.bias": "b", "epilogue.act": "tanh"})
    m.op("mse", "loss", x="y", target="t")
    section = {name: {"lr": lr, **settings}}
    section.update({key: beside[key] for key in ("schedule", "clip_norm", "accumulate",
                                                    "loss_scale") if key in beside})
    if "group" in beside:
        section["groups"] = None
    text = map_words(section)
    if "group" in beside:
        text = text.replace("groups: None",
                            f"groups: [{map_words({'params': 'b', **beside['group']})}]")
    m.rest += ["backward: loss", f"optimizer: {text}", "outputs: [loss]"]
    m.run(args, STEPS, ("w", "b"))
    return {"w": m.result("w"), "b": m.result("b"), "loss": m.curve("loss")}


def theirs(torch, dtype, start, name, lr, settings, beside):
    kind = torch.float32 if dtype == "f32" else torch.float64
    x, t, w, b = (torch.tensor(values, dtype=kind).reshape(shape)
                  for shape, values in start.values())
    w.requires_grad_(), b.requires_grad_()
    make, keywords = torch_options(torch, name, lr, settings)
    groups = [{"params": [w]}, {"params": [b], **beside.get("group", {})}]
    optimizer = make(groups, **keywords)
    factors = beside.get("schedule")
    group_lrs = [g["lr"] for g in optimizer.param_groups]
    scheduler = None
    if factors and "group" in beside:  # eta_min is one number: the factor of each rate
        reference = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        scheduler = schedule_of(torch, reference, 1.0, factors)
    elif factors:
        scheduler = schedule_of(torch, optimizer, lr, factors)
    n, losses = beside.get("accumulate", 1), []
    scaler = scaler_of(torch, beside.get("loss_scale"))
    for step in range(STEPS):
        loss = torch.nn.functional.mse_loss(torch.tanh(x @ w + b), t)
        losses.append(loss.item())
        scaler.scale(loss / n).backward()
        if (step + 1) % n:
            continue
        scaler.unscale_(optimizer)
        if "clip_norm" in beside:
            torch.nn.utils.clip_grad_norm_([w, b], beside["clip_norm"])
        if scheduler and "group" in beside:
            for group, rate in zip(optimizer.param_groups, group_lrs):
                group["lr"] = rate * reference.param_groups[0]["lr"]
            reference.step()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        if scheduler:
            scheduler.step()
    return {"w": w.detach().flatten().tolist(), "b": b.detach().flatten().tolist(),
            "loss": losses}


def numbers_of(dtype, only):
    """The configurations of those optimizers that are bounded in a type."""
    return [i for i, (name, *_) in enumerate(configurations())
            if dtype in ALLOWED and (not only or name in only)]


def name_of(i, dtype):
    """The title of a configuration by its number."""
    name, _, settings, beside = list(configurations())[i]
    return f"{title(name, settings, beside)} {dtype}"


def compare(args, dtype, i, folder):
    """The row of a configuration by its number."""
    torch, start = model.import_torch(), numbers(dtype)
    name, lr, settings, beside = list(configurations())[i]
    model.quiet_schedulers()
    mine = ours(args, dtype, start, os.path.join(folder, f"optimizer{i}-{dtype}"), name, lr,
                settings, beside)
    other = theirs(torch, dtype, start, name, lr, settings, beside)
    error, tensor = max((model.error_of(mine[key], other[key])[0], key) for key in mine)
    return {"name": title(name, settings, beside), "optimizer": name, "lr": lr,
            "settings": settings, "beside": beside, "type": dtype, "error": error,
            "tensor": tensor, "allowed": ALLOWED[dtype], "ok": error <= ALLOWED[dtype]}
