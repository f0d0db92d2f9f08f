"""JAX's process: python -m peer.with_jax FORM DEVICE STEPS_PER_LAUNCH

Forms: jit, a step a call; scan, that many steps in one call, with the loop on the device.
AdamW is written out, in f32 whatever the parameters are, and rounded once on store.
"""

import json
import math
import sys
import time

from . import serve

FORMS = ("jit", "scan")


class Step:
    def __init__(self, jax, form, steps, case):
        import numpy

        jnp = jax.numpy
        # "default" lets products of f32 round their operands to TF32; "highest" does not.
        jax.config.update("jax_default_matmul_precision",
                          "highest" if case["precision"] == "f32" else "default")
        self.jax, self.scan = jax, form == "scan"
        self.steps_per_launch = steps if self.scan else 1
        dtype = jnp.bfloat16 if case["precision"] == "bf16" else jnp.float32
        self.first = [tuple(jnp.asarray(numpy.load(path)).astype(dtype) for path in layer)
                      for layer in case["parameters"]]
        x = jnp.asarray(numpy.load(case["x"])).astype(dtype)
        target = jnp.asarray(numpy.load(case["target"]))
        step = step_of(jax, case)
        if self.scan:
            def launch(state, x, target):
                return jax.lax.scan(lambda kept, _: step(kept, x, target), state, None,
                                    length=steps)
        else:
            def launch(state, x, target):
                return step(state, x, target)
        call = jax.jit(launch, donate_argnums=0)
        self.launch = lambda: call(self.state, x, target)
        self.reset()
        for _ in range(2 if self.scan else 10):
            self.run_one()
        self.reset()

    def reset(self):
        tree, jnp = self.jax.tree_util, self.jax.numpy
        self.state = (tree.tree_map(jnp.copy, self.first),
                      tree.tree_map(jnp.zeros_like, self.first),
                      tree.tree_map(jnp.zeros_like, self.first), jnp.zeros((), jnp.int32))
        self.jax.block_until_ready(self.state)

    def run_one(self):
        self.state, loss = self.launch()
        return loss

    def losses(self, n):
        found = [self.run_one() for _ in range(n // self.steps_per_launch)]
        return [float(loss) for part in found for loss in part.reshape(-1)]

    def block(self, n):
        self.jax.block_until_ready(self.state)
        start = time.perf_counter()
        for _ in range(n // self.steps_per_launch):
            loss = self.run_one()
        self.jax.block_until_ready((self.state, loss))
        return time.perf_counter() - start, None


def step_of(jax, case):
    jnp = jax.numpy
    activation = {
        "relu": jax.nn.relu, "tanh": jnp.tanh, "silu": jax.nn.silu,
        "gelu_tanh": lambda x: jax.nn.gelu(x, approximate=True)}[case["activation"]]
    rate, decay, epsilon = (case[key] for key in ("learning_rate", "weight_decay", "epsilon"))
    beta1, beta2 = case["betas"]

    def loss_of(params, x, target):
        for i, (weight, bias) in enumerate(params):
            x = x @ weight + bias
            if i < len(params) - 1:
                x = activation(x)
        x = x.astype(jnp.float32)
        if case["loss"] == "mse":
            return jnp.mean((x - target) ** 2)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(x), target[:, None], axis=1)
        return -jnp.mean(chosen)

    def step(state, x, target):
        params, first, second, count = state
        loss, gradients = jax.value_and_grad(loss_of)(params, x, target)
        count = count + 1
        time_ = count.astype(jnp.float32)
        rest1, rest2 = (-jnp.expm1(time_ * math.log(beta)) for beta in (beta1, beta2))

        def update(p, m, v, g):
            wide = [t.astype(jnp.float32) for t in (p, m, v, g)]
            m1 = beta1 * wide[1] + (1 - beta1) * wide[3]
            v1 = beta2 * wide[2] + (1 - beta2) * wide[3] ** 2
            p1 = wide[0] * (1 - rate * decay)
            p1 = p1 - rate / rest1 * m1 / (jnp.sqrt(v1) / jnp.sqrt(rest2) + epsilon)
            return tuple(t.astype(p.dtype) for t in (p1, m1, v1))

        found = [[update(*tensors) for tensors in zip(*layer)]
                 for layer in zip(params, first, second, gradients)]
        params, first, second = ([tuple(t[k] for t in layer) for layer in found]
                                 for k in range(3))
        return (params, first, second, count), loss

    return step


def main():
    form, device, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    try:
        import jax
    except ImportError:
        print(json.dumps({"error": "JAX is not installed"}))
        return
    if device == "cpu":
        jax.config.update("jax_platforms", "cpu")
    card = jax.devices()[0]
    if device == "gpu" and card.platform != "gpu":
        print(json.dumps({"error": "JAX sees no GPU"}))
        return
    hello = {"version": jax.__version__}
    if device == "gpu":
        hello["card"] = card.device_kind
    serve.serve(hello,
                lambda case: Step(jax, form, steps, case), jax.clear_caches)


if __name__ == "__main__":
    main()
