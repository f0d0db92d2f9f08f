"""The files of a case: gexec's model and, as .npy, what every way starts from.

python -m peer.values CASE.json SEED writes the values, under the peers' interpreter, for it
takes numpy.
"""

import json
import math
import os
import subprocess
import sys
import zlib

from . import cases
from .child import BENCH, Failed


def prepare(case, folder, seed, python):
    """Writes model.yaml, case.json and the values; returns their paths by gexec's names."""
    names = ["x", case.target, "gexec.lr"]
    names += [name for i in range(len(case.layers)) for name in case.parameters(i)]
    files = {name: os.path.join(folder, name + ".npy") for name in names}
    with open(os.path.join(folder, "model.yaml"), "w") as file:
        file.write(cases.model_text(case))
    path = os.path.join(folder, "case.json")
    with open(path, "w") as file:
        json.dump({
            "name": case.name, "batch": case.batch, "widths": case.widths,
            "activation": case.activation, "loss": case.loss, "precision": case.precision,
            "x": files["x"], "target": files[case.target], "rate": files["gexec.lr"],
            "parameters": [[files[name] for name in case.parameters(i)]
                           for i in range(len(case.layers))],
            "learning_rate": cases.LEARNING_RATE, "weight_decay": cases.WEIGHT_DECAY,
            "betas": cases.BETAS, "epsilon": cases.EPSILON}, file)
    try:
        subprocess.run([python, "-m", "peer.values", path, str(seed)], cwd=BENCH, check=True,
                       capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines() or ["no message"]
        raise Failed(f"the values were not written: {lines[-1]}") from error
    except OSError as error:
        raise Failed(f"{python}: {error.strerror}") from error
    return files


def write(case, seed):
    """Values are f4; each way rounds them to the type of the run, to nearest even. Weights
    are [in, out]. The same case and seed give the same bytes, in every type."""
    import numpy

    rng = numpy.random.default_rng([seed, zlib.crc32(case["name"].encode())])
    batch, widths = case["batch"], case["widths"]
    numpy.save(case["x"], rng.standard_normal((batch, widths[0]), dtype=numpy.float32))
    if case["loss"] == "cross_entropy":
        target = rng.integers(0, widths[-1], batch, dtype=numpy.int32)
    else:
        target = rng.standard_normal((batch, widths[-1]), dtype=numpy.float32)
    numpy.save(case["target"], target)
    for (weight, bias), fan_in, fan_out in zip(case["parameters"], widths, widths[1:]):
        bound = numpy.float32(1 / math.sqrt(fan_in))  # as torch.nn.Linear
        for path, shape in ((weight, (fan_in, fan_out)), (bias, (fan_out,))):
            numpy.save(path, (2 * rng.random(shape, dtype=numpy.float32) - 1) * bound)
    numpy.save(case["rate"], numpy.array([case["learning_rate"]], dtype=numpy.float32))


def main():
    with open(sys.argv[1]) as file:
        write(json.load(file), int(sys.argv[2]))


if __name__ == "__main__":
    main()
