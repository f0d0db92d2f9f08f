#!/usr/bin/env python3
"""gexec beside PyTorch on one training step, on one card, in alternating blocks.

Each workload is a model of graphs/examples. PyTorch makes the parameters and the batch, and
gexec gets the same through --in, so all start from one point. gexec runs as a child that
serves timed blocks (gexec run MODEL --graph --blocks); in each pair of blocks every way runs
once, in random order, from an idle device, with inputs resident on it.

    tools/bench/peers.py --gexec build/release/gexec --json results.json
    tools/bench/peers.py --workloads mnist_mlp --precisions f32 --ways graph --pairs 25

Exit status: 0 done; 1 the losses of f32 differ by more than the limit; 2 bad usage;
3 no PyTorch, no GPU, or gexec does not serve.
"""

import argparse
import ctypes
import datetime
import json
import os
import random
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOSS_STEPS = 50
LOSS_LIMIT = 1e-4  # relative, f32
BLOCK_SECONDS = 0.015
# A rate at which 50 steps on one batch do not bring the loss near nothing, where a relative
# difference is float32's own.
LEARNING_RATE, WEIGHT_DECAY = 1e-4, 0.01

WORKLOADS = {
    # batch, widths, activation, loss, names of gexec's weight and bias of layer i of n
    "mnist_mlp": (64, [784, 256, 256, 10], "relu", "cross_entropy",
                  lambda i, n: (f"w{i + 1}", f"b{i + 1}")),
    "deep_narrow": (32, [512] * 17, "gelu", "mse",
                    lambda i, n: ("w_last", "b_last") if i == n - 1
                    else (f"layer.{i}.w", f"layer.{i}.b")),
    "wide": (4096, [4096] * 5, "gelu", "mse",
             lambda i, n: ("w_last", "b_last") if i == n - 1
             else (f"layer.{i}.w", f"layer.{i}.b")),
}
PRECISIONS = ("f32", "tf32", "bf16")
WAYS = ("eager", "graph", "compile", "compile_all")


def stop(status, message):
    print(f"peers.py: {message}", file=sys.stderr)
    sys.exit(status)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gexec", default=os.path.join(ROOT, "build", "release", "gexec"))
    parser.add_argument("--workloads", default="mnist_mlp,deep_narrow", metavar="LIST",
                        help="of " + ", ".join(WORKLOADS))
    parser.add_argument("--precisions", default="f32,tf32,bf16", metavar="LIST")
    parser.add_argument("--ways", default="eager,graph,compile", metavar="LIST",
                        help="of PyTorch: eager; graph: a CUDA graph of it; compile: model and "
                             "loss compiled, in a CUDA graph; compile_all: the optimizer too")
    parser.add_argument("--pairs", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--flags", default="", help="more flags for gexec run")
    parser.add_argument("--json", metavar="FILE", help="raw results")
    args = parser.parse_args()
    for name, known in (("workloads", WORKLOADS), ("precisions", PRECISIONS), ("ways", WAYS)):
        chosen = [word for word in getattr(args, name).split(",") if word]
        for word in chosen:
            if word not in known:
                parser.error(f"--{name}: '{word}' is none of {', '.join(known)}")
        setattr(args, name, chosen)
    if args.pairs < 1:
        parser.error("--pairs: expected 1 or more")
    return args


# --- one workload ---------------------------------------------------------------------


def write_npy(path, tensor, descr):
    """A contiguous tensor of 4-byte elements on the host as .npy, without numpy."""
    shape = "".join(f"{size}, " for size in tensor.shape)
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
        file.write(ctypes.string_at(tensor.data_ptr(), 4 * tensor.numel()))


class Start:
    """Parameters and batch that every way starts from, in the type of the run."""

    def __init__(self, torch, name, precision, seed):
        batch, self.widths, self.activation, self.loss, self.names = WORKLOADS[name]
        self.dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        torch.manual_seed(seed)
        self.layers = []
        for fan_in, fan_out in zip(self.widths, self.widths[1:]):
            layer = torch.nn.Linear(fan_in, fan_out)
            self.layers.append((layer.weight.detach().to(self.dtype),
                                layer.bias.detach().to(self.dtype)))
        self.x = torch.randn(batch, self.widths[0]).to(self.dtype)
        if self.loss == "cross_entropy":
            self.target = torch.randint(0, self.widths[-1], (batch,))
        else:
            self.target = torch.randn(batch, self.widths[-1])

    def files(self, torch, folder):
        """Writes what gexec reads; returns its --in flags. gexec stores weights [in, out]."""
        tensors = {"x": self.x}
        tensors["y" if self.loss == "cross_entropy" else "target"] = self.target
        for i, (weight, bias) in enumerate(self.layers):
            names = self.names(i, len(self.layers))
            tensors[names[0]], tensors[names[1]] = weight.t(), bias
        tensors["gexec.lr"] = torch.tensor([LEARNING_RATE])
        flags = []
        for name, tensor in tensors.items():
            path = os.path.join(folder, name + ".npy")
            real = tensor.is_floating_point()
            write_npy(path, (tensor.float() if real else tensor.int()).contiguous(),
                      "<f4" if real else "<i4")
            flags += ["--in", f"{name}={path}"]
        return flags


class Torch:
    """One way in which PyTorch runs the step."""

    def __init__(self, torch, start, way):
        self.torch = torch
        functional = torch.nn.functional
        device = torch.device("cuda")
        self.first = [tensor for layer in start.layers for tensor in layer]
        self.params = [tensor.to(device).clone().requires_grad_() for tensor in self.first]
        # Held for as long as a captured graph may read them.
        self.x, self.target = x, target = start.x.to(device), start.target.to(device)
        self.optimizer = torch.optim.AdamW(self.params, lr=LEARNING_RATE,
                                           weight_decay=WEIGHT_DECAY, capturable=True,
                                           fused=way != "compile_all")
        last = len(self.params) // 2 - 1

        def forward(x, target, *params):
            for i in range(last + 1):
                x = functional.linear(x, params[2 * i], params[2 * i + 1])
                if i < last:
                    x = torch.relu(x) if start.activation == "relu" else functional.gelu(
                        x, approximate="tanh")
            if start.loss == "cross_entropy":
                return functional.cross_entropy(x.float(), target)
            return functional.mse_loss(x.float(), target)

        update = self.optimizer.step
        if way.startswith("compile"):
            torch._dynamo.reset()
            forward = torch.compile(forward)
        if way == "compile_all":
            update = torch.compile(lambda: self.optimizer.step())

        def step():
            self.optimizer.zero_grad(set_to_none=True)
            loss = forward(x, target, *self.params)
            loss.backward()
            update()
            return loss

        self.step = step
        if way != "eager":
            self.capture(step)
        else:
            for _ in range(3):
                step()
        self.reset()

    def capture(self, step):
        torch = self.torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(4):
                step()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            kept = step()

        def replay():
            self.graph.replay()
            return kept

        self.step = replay

    def reset(self):
        """Back to the start, in place: a graph holds the addresses."""
        with self.torch.no_grad():
            for tensor, value in zip(self.params, self.first):
                tensor.copy_(value)
            for state in self.optimizer.state.values():
                for value in state.values():
                    value.zero_()
        self.torch.cuda.synchronize()

    def losses(self, n):
        found = self.torch.zeros(n, device="cuda", dtype=self.torch.float64)
        for i in range(n):
            found[i].copy_(self.step().detach())
        return found.tolist()

    def block(self, n):
        """Seconds of the device for n steps back to back, the device idle before."""
        cuda = self.torch.cuda
        begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        cuda.synchronize()
        begin.record()
        for _ in range(n):
            self.step()
        end.record()
        cuda.synchronize()
        return begin.elapsed_time(end) * 1e-3


class Gexec:
    """A child that serves timed blocks."""

    def __init__(self, args, model, flags):
        self.command = [args.gexec, "run", model, "--graph", "--blocks", "-q", *flags,
                        *args.flags.split()]
        try:
            self.child = subprocess.Popen(self.command, stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, text=True)
        except OSError as error:
            stop(3, f"{args.gexec}: {error.strerror}; build it or name it with --gexec")
        self.ready = self.answer()

    def answer(self):
        line = self.child.stdout.readline()
        if not line:
            stop(3, f"gexec ended with status {self.child.wait()}: {' '.join(self.command)}")
        answer = json.loads(line)
        if "error" in answer:
            stop(3, f"gexec: {answer['error']}")
        return answer

    def ask(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        return self.answer()

    def reset(self):
        self.ask("reset")

    def losses(self, n):
        self.ask(f"time {n}")
        return self.ask(f"losses {n}")["losses"]

    def block(self, n):
        return self.ask(f"time {n}")["device_s"]

    def close(self):
        self.child.stdin.write("quit\n")
        self.child.stdin.close()
        self.child.wait()


# --- measuring ------------------------------------------------------------------------


def quantile(values, share):
    values = sorted(values)
    place = share * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (place - below) * (values[above] - values[below])


def summary(values):
    return {"median": quantile(values, 0.5), "p5": quantile(values, 0.05),
            "p95": quantile(values, 0.95), "count": len(values), "raw": values}


def write_model(name, precision, folder):
    """The example with this precision, in a folder of its own."""
    with open(os.path.join(ROOT, "graphs", "examples", name + ".yaml")) as file:
        text = file.read()
    text, n = re.subn(r"(?m)^precision:.*$", f"precision: {precision}", text)
    if n != 1:
        stop(2, f"{name}.yaml: expected one line `precision:`")
    path = os.path.join(folder, name + ".yaml")
    with open(path, "w") as file:
        file.write(text)
    return path


def measure(args, torch, name, precision):
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    start = Start(torch, name, precision, args.seed)
    with tempfile.TemporaryDirectory() as folder:
        flags = start.files(torch, folder)
        gexec = Gexec(args, write_model(name, precision, folder), flags)
        ways = {"gexec": gexec}
        failed = {}
        for way in args.ways:
            try:
                ways[way] = Torch(torch, start, way)
            except Exception as error:  # a compiler that is missing must not end the rest
                failed[way] = repr(error)[:500]
        losses = {way: runner.losses(LOSS_STEPS) for way, runner in ways.items()}
        steps = max(5, min(2000, round(BLOCK_SECONDS / (gexec.block(20) / 20))))
        k = gexec.ready["steps_per_launch"]
        steps = -(-steps // k) * k
        blocks = {way: [] for way in ways}
        orders = []
        chance = random.Random(args.seed)
        for pair in range(args.pairs + 1):
            order = list(ways)
            chance.shuffle(order)
            for way in order:
                ways[way].reset()
                ways[way].block(k * max(1, 5 // k))  # the other process held the card
                seconds = ways[way].block(steps)
                if pair > 0:  # the first pair finds low clocks
                    blocks[way].append(seconds / steps)
            if pair > 0:
                orders.append(order)
        ready = gexec.ready
        gexec.close()
    return {"workload": name, "precision": precision, "block_steps": steps, "orders": orders,
            "steady_s": {way: summary(values) for way, values in blocks.items()},
            "ratio_gexec_over": {
                way: summary([a / b for a, b in zip(blocks["gexec"], values)])
                for way, values in blocks.items() if way != "gexec"},
            "losses": losses, "failed": failed, "gexec": ready}


def loss_difference(result, way):
    """The largest relative difference of a step's loss from that of `way`."""
    pairs = zip(result["losses"]["gexec"], result["losses"][way])
    worst = [abs(a - b) / abs(b) if b else abs(a) for a, b in pairs]
    return max(worst) if all(value == value for value in worst) else float("inf")


def tell(result):
    print(f"{result['workload']} {result['precision']}, blocks of {result['block_steps']} steps")
    for way, steady in result["steady_s"].items():
        line = f"  {way:12s} {steady['median'] * 1e6:10.2f} us a step"
        if way != "gexec":
            ratio = result["ratio_gexec_over"][way]
            line += (f"   gexec / {way}: {ratio['median']:.3f}"
                     f" (p5 {ratio['p5']:.3f}, p95 {ratio['p95']:.3f}, {ratio['count']} pairs)"
                     f"   losses within {result['loss_difference'][way]:.1e}")
        print(line, flush=True)
    for way, reason in result["failed"].items():
        print(f"  {way:12s} failed: {reason}")


def environment(torch):
    def driver():
        try:
            return subprocess.run(
                ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                capture_output=True, text=True, check=True).stdout.split()[0]
        except (OSError, subprocess.CalledProcessError, IndexError):
            return None

    return {"card": torch.cuda.get_device_name(0), "driver": driver(),
            "torch": torch.__version__, "torch_cuda": torch.version.cuda,
            "python": sys.version.split()[0], "cores": os.cpu_count(),
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "command": [os.path.basename(sys.argv[0]), *sys.argv[1:]]}


def main():
    args = arguments()
    try:
        import torch
    except ImportError:
        stop(3, "PyTorch is not installed here")
    if not torch.cuda.is_available():
        stop(3, "PyTorch sees no GPU")
    report = {"environment": environment(torch), "loss_limit_f32": LOSS_LIMIT, "results": []}
    status = 0
    print(f"{report['environment']['card']}, torch {torch.__version__}")
    for name in args.workloads:
        for precision in args.precisions:
            result = measure(args, torch, name, precision)
            result["loss_difference"] = {way: loss_difference(result, way)
                                         for way in result["losses"] if way != "gexec"}
            tell(result)
            report["results"].append(result)
            if precision == "f32" and not all(value <= LOSS_LIMIT for value
                                              in result["loss_difference"].values()):
                print(f"  losses differ by more than {LOSS_LIMIT}")
                status = 1
    if args.json:
        part = args.json + ".part"
        with open(part, "w") as file:
            json.dump(report, file, indent=1)
            file.write("\n")
        os.replace(part, args.json)
    sys.exit(status)


if __name__ == "__main__":
    main()
