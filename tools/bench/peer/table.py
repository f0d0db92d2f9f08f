"""The results as text and as Markdown."""

from . import cases

PEERS = {
    "torch_eager": "torch eager",
    "torch_graph": "torch CUDAGraph",
    "torch_compile": "torch model compiled, CUDAGraph",
    "torch_compile_all": "torch all compiled, CUDAGraph",
    "jax_jit": "JAX jit",
    "jax_scan": "JAX scan",
}
OURS = ("gexec", "gexec_many", "gexec_loop")
LACK = "n/a"
# Each of ours that has a target, the peers that it stands beside, and the target's place.
BESIDE = {
    "gexec": ([name for name in PEERS if name != "jax_scan"], 0),
    "gexec_many": (list(PEERS), 1),
}


def microseconds(seconds):
    if seconds is None:
        return LACK
    value = seconds * 1e6
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def us(result, way):
    steady = result["steady_s"].get(way)
    return microseconds(steady["median"] if steady else None)


def best_peer(result, ours):
    """The fastest peer of those that `ours` stands beside, None where none was measured."""
    measured = [name for name in BESIDE[ours][0] if name in result["steady_s"]]
    return min(measured, key=lambda name: result["steady_s"][name]["median"], default=None)


def faster(result, ours, peer):
    return result["times_faster"].get(ours, {}).get(peer) if peer else None


def spread(ratio):
    return (f"{ratio['median']:.2f} ({ratio['p5']:.2f} to {ratio['p95']:.2f})" if ratio
            else LACK)


def against_target(result, ours):
    """The target, over which peer, the median of the pairs and whether it meets the target."""
    goals = cases.TARGETS.get((result["workload"], result["precision"]))
    if goals is None:
        return "-"
    peer, goal = goals[BESIDE[ours][1]]
    ratio = faster(result, ours, peer)
    words = f"{goal:g} over {PEERS[peer]}: "
    if not ratio:
        return words + LACK
    return words + f"{ratio['median']:.2f}, {'met' if ratio['median'] >= goal else 'missed'}"


def row(cells):
    return "| " + " | ".join(cells) + " |"


def targets_table(report):
    k = report["steps_per_launch"]
    lines = [row(["workload", "best peer, a step a launch", "gexec, a step a launch",
                  "times faster (p5 to p95)", "target", "best peer, any form",
                  f"gexec, {k} steps a launch", "times faster (p5 to p95)", "target", "pairs",
                  "floor; chain of nodes"]),
             row(["---"] * 11)]
    for result in report["results"]:
        cells = [f"{result['workload']}, {result['precision']}"]
        for ours in BESIDE:
            peer = best_peer(result, ours)
            cells += [f"{PEERS[peer]}: {us(result, peer)}" if peer else LACK,
                      us(result, ours), spread(faster(result, ours, peer)),
                      against_target(result, ours)]
        floor = result["floor"]
        cells += [str(len(result["orders"])),
                  f"{microseconds(floor['floor_s'])}; {microseconds(floor['chain_s'])}"]
        lines.append(row(cells))
    return lines


def worst_loss(result):
    """The largest difference of a curve of ours from a peer's; None where there is none."""
    found = [value for ours in result["loss_difference"].values() for value in ours.values()]
    return max(found, default=None)


def losses_agree(result):
    """Whether our curves are within the bound of every peer's, or no farther from it than
    another peer's is."""
    return all(value <= max(result["loss_bound"], result["peers_apart"][name])
               for ours in result["loss_difference"].values() for name, value in ours.items())


def difference(value):
    return LACK if value is None else f"{value:.1e}"


def forms_table(report):
    k = report["steps_per_launch"]
    head = ["workload", "batch; shape", "type"]
    head += [PEERS[name] + (f" of {k}" if name == "jax_scan" else "")
             for name in report["peers"]]
    names = {"gexec": "gexec", "gexec_many": f"gexec, {k} steps a launch",
             "gexec_loop": f"gexec, a loop of {k}"}
    head += [names[name] for name in report["ours"]]
    head += ["losses within, of their fall (bound; peers from each other)"]
    lines = [row(head), row(["---"] * len(head))]
    for result in report["results"]:
        worst = worst_loss(result)
        lines.append(row(
            [result["workload"], result["shape"], result["precision"]]
            + [us(result, name) for name in report["peers"] + report["ours"]]
            + [f"{difference(worst)} ({result['loss_bound']:g}; "
               f"{difference(max(result['peers_apart'].values(), default=None))})"]))
    return lines


def reasons(report):
    """Why what is n/a is so, a line for each way and reason."""
    where = {}
    for result in report["results"]:
        for way, reason in result["failed"].items():
            where.setdefault((way, reason), []).append(
                f"{result['workload']} {result['precision']}")
    return [f"- {PEERS.get(way, way)}: {LACK} in {', '.join(found)}: {reason}"
            for (way, reason), found in where.items()]


def environment_line(report):
    env = report["environment"]
    words = [env["card"] or "no card", f"driver {env['driver'] or LACK}",
             f"toolkit {env['toolkit'] or LACK}"]
    words += [f"{name} {version}" for name, version in env["versions"].items()]
    words += [env["date"], f"commit {env['commit'] or LACK}"]
    return ", ".join(words)


def markdown(report):
    """Microseconds a step, medians of the rounds."""
    lines = [environment_line(report),
             "us a step, medians of blocks from one start: by events for torch and gexec, by the "
             "clock to synchronized for JAX. Times faster: peer over gexec, median of the pairs.",
             "", *targets_table(report), "", *forms_table(report)]
    lacking = reasons(report)
    if lacking:
        lines += ["", *lacking]
    if report["not_run"]:
        lines += ["", "Not run: " + ", ".join(report["not_run"]) + "."]
    if report["random"]:
        lines += ["", f"Random shapes of seed {report['random']['seed']}, from number "
                  f"{report['random']['first']}: {cases.RANGE_WORDS}."]
    return "\n".join(lines)


def case_text(result):
    """What one case found, for a reader who waits."""
    lines = [f"{result['workload']} {result['precision']} ({result['shape']})"]
    for way in [*PEERS, *OURS]:
        if way in result["failed"]:
            lines.append(f"  {way:18s} {LACK:>10s}     {result['failed'][way]}")
        elif way in result["losses"]:
            line = f"  {way:18s} {us(result, way):>10s} us"
            for ours in OURS:
                ratio = faster(result, ours, way)
                if ratio:
                    line += f"   {ours}: {spread(ratio)} times faster"
            loss = [values[way] for values in result["loss_difference"].values()
                    if way in values]
            if loss:
                line += f"   losses within {max(loss):.1e}"
            lines.append(line)
    return "\n".join(lines)
