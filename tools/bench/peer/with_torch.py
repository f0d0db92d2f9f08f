"""PyTorch's process: python -m peer.with_torch FORM DEVICE STEPS_PER_LAUNCH

Forms: eager; graph, a CUDA graph of it; compile, model and loss compiled together, fused AdamW
beside them, in a CUDA graph; compile_all, the optimizer compiled too, in a CUDA graph. On the
CPU what is compiled runs without a graph.
"""

import json
import sys
import time

from . import serve

FORMS = ("eager", "graph", "compile", "compile_all")


class Step:
    steps_per_launch = 1

    def __init__(self, torch, form, device, case):
        import numpy

        self.torch, self.device = torch, torch.device(device)
        dtype = torch.bfloat16 if case["precision"] == "bf16" else torch.float32
        torch.backends.cuda.matmul.allow_tf32 = case["precision"] == "tf32"

        def read(path):
            return torch.from_numpy(numpy.load(path)).to(self.device)

        # Held for as long as a captured graph may read them. PyTorch's weights are [out, in].
        self.x, self.target = read(case["x"]).to(dtype), read(case["target"])
        if case["loss"] == "cross_entropy":
            self.target = self.target.long()
        self.first = [tensor for weight, bias in case["parameters"]
                      for tensor in (read(weight).t().contiguous().to(dtype),
                                     read(bias).to(dtype))]
        self.params = [tensor.clone().requires_grad_() for tensor in self.first]
        self.optimizer = torch.optim.AdamW(
            self.params, lr=case["learning_rate"], betas=tuple(case["betas"]),
            eps=case["epsilon"], weight_decay=case["weight_decay"],
            capturable=device == "cuda", fused=form != "compile_all")
        self.step = self.make(form, forward_of(torch, case))
        if form != "eager" and device == "cuda":
            self.capture(self.step)
        else:
            for _ in range(3):
                self.step()
        self.reset()

    def make(self, form, forward):
        torch, optimizer = self.torch, self.optimizer
        update = optimizer.step
        if form.startswith("compile"):
            torch._dynamo.reset()
            choose_anew()
            forward = torch.compile(forward)
        if form == "compile_all":
            update = torch.compile(lambda: optimizer.step())

        def step():
            optimizer.zero_grad(set_to_none=True)
            loss = forward(self.x, self.target, *self.params)
            loss.backward()
            update()
            return loss

        return step

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

    def synchronize(self):
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()

    def reset(self):
        """Back to the start, in place: a graph holds the addresses."""
        with self.torch.no_grad():
            for tensor, value in zip(self.params, self.first):
                tensor.copy_(value)
            for state in self.optimizer.state.values():
                for value in state.values():
                    value.zero_()
        self.synchronize()

    def losses(self, n):
        found = self.torch.zeros(n, device=self.device, dtype=self.torch.float64)
        for i in range(n):
            found[i].copy_(self.step().detach())
        return found.tolist()

    def block(self, n):
        if self.device.type != "cuda":
            start = time.perf_counter()
            for _ in range(n):
                self.step()
            return time.perf_counter() - start, None
        cuda = self.torch.cuda
        begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        cuda.synchronize()
        start = time.perf_counter()
        begin.record()
        for _ in range(n):
            self.step()
        end.record()
        cuda.synchronize()
        return time.perf_counter() - start, begin.elapsed_time(end) * 1e-3


def choose_anew():
    """Kernels may come from the cache, but not which of them was fastest: that was measured
    on a busy card."""
    import torch._inductor.config as config

    if hasattr(config, "autotune_local_cache"):  # not in every version
        config.autotune_local_cache = False


def forward_of(torch, case):
    functional = torch.nn.functional
    activation = {
        "relu": torch.relu, "tanh": torch.tanh, "silu": functional.silu,
        "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh")}[case["activation"]]
    loss = (functional.cross_entropy if case["loss"] == "cross_entropy"
            else functional.mse_loss)
    last = len(case["parameters"]) - 1

    def forward(x, target, *params):
        for i in range(last + 1):
            x = functional.linear(x, params[2 * i], params[2 * i + 1])
            if i < last:
                x = activation(x)
        return loss(x.float(), target)

    return forward


def main():
    form, device = sys.argv[1], {"gpu": "cuda", "cpu": "cpu"}[sys.argv[2]]
    try:
        import torch
    except ImportError:
        print(json.dumps({"error": "PyTorch is not installed"}))
        return
    if device == "cuda" and not torch.cuda.is_available():
        print(json.dumps({"error": "PyTorch sees no GPU"}))
        return
    if device == "cpu" and form == "graph":
        print(json.dumps({"error": "needs a GPU"}))
        return
    hello = {"version": torch.__version__, "cuda": torch.version.cuda}
    if device == "cuda":
        hello["card"] = torch.cuda.get_device_name(0)
    serve.serve(hello, lambda case: Step(torch, form, device, case),
                torch.cuda.empty_cache if device == "cuda" else lambda: None)


if __name__ == "__main__":
    main()
