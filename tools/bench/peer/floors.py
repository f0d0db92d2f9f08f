"""What a step must cost on a card whose ceilings gexec doctor --measure found."""

import json

SIZE = {"f32": 4, "tf32": 4, "bf16": 2}


def read_ceilings(path):
    """The ceilings in the JSON of gexec doctor --measure, or of gexec profile."""
    with open(path) as file:
        found = find(json.load(file))
    if not found:
        raise ValueError("no measured ceilings in it; gexec doctor --measure --json FILE "
                         "writes them")
    return found


def find(node):
    if isinstance(node, dict):
        inner = node.get("ceilings")
        if isinstance(inner, dict) and "flops_per_s" in inner:
            return inner
        node = list(node.values())
    if isinstance(node, list):
        for value in node:
            found = find(value)
            if found:
                return found
    return None


def copy_rate(ceilings, n_bytes):
    """Of the smallest measured working set that holds as many bytes, else of the largest."""
    rows = sorted((row["bytes"], row["bytes_per_s"]) for row in ceilings["copy"]
                  if row["bytes_per_s"])
    for size, rate in rows:
        if size >= n_bytes:
            return rate
    return rows[-1][1] if rows else None


def floor(case, ceilings):
    """Seconds: of the products at the best rate; of parameters and both moments, read and
    written once; and of a chain of dependent empty kernels, one a layer forward, one a layer
    backward, the loss and the optimizer. The larger of the first two is the floor; the chain
    stands apart, for many ways launch more and one persistent kernel would launch less."""
    size = SIZE[case.precision]
    flops = sum(case.flops())
    n_bytes = 6 * size * case.n_parameters() + size * case.batch * case.widths[0]
    nodes = 2 * len(case.layers) + 2
    found = {"flops": flops, "bytes": n_bytes, "nodes": nodes, "products_s": None,
             "bytes_s": None, "floor_s": None, "chain_s": None}
    if not ceilings:
        return found
    rate = ceilings["flops_per_s"].get(case.precision)
    copies = copy_rate(ceilings, n_bytes)
    node = ceilings.get("programmatic_node_s") or ceilings.get("node_s")
    found["products_s"] = flops / rate if rate else None
    found["bytes_s"] = n_bytes / copies if copies else None
    if rate and copies:
        found["floor_s"] = max(found["products_s"], found["bytes_s"])
    found["chain_s"] = nodes * node if node else None
    return found
