"""Alternating blocks of one case, the ratios of their pairs, and the losses."""

import math
import random
import time

from .child import Failed, round_up

LOSS_STEPS = 50
BLOCK_SECONDS = 0.015
WARM_STEPS = 5
FEWEST, MOST = 5, 5000  # steps of a block
FEWEST_ROUNDS = 3
RESERVE_SECONDS = 15  # for the rounds, when the ways of a case take all the time
# The figure is the largest difference of two losses at a step, over what the peer's curve
# falls by and, for curves that hardly fall, half a unit in the last place of what products
# take (RESOLUTION) of its first loss. f32: orders of summation. tf32: operands of products
# have 11 bits, and not every product of a way needs to take them. bf16: each tensor that is
# stored has 8 bits, parameters and moments too, and a store may turn out one way or the other.
LOSS_BOUND = {"f32": 1e-3, "tf32": 2e-2, "bf16": 5e-2}
RESOLUTION = {"f32": 2**-24, "tf32": 2**-12, "bf16": 2**-9}


class Clock:
    """What is left of the time that the whole call may take."""

    def __init__(self, seconds, limit_s):
        self.end = time.monotonic() + seconds
        self.longest_s = limit_s

    def left(self):
        return self.end - time.monotonic()

    def to_be_ready(self):
        """For a way to be ready in: time for the rounds has to remain."""
        return min(self.longest_s, self.left() - RESERVE_SECONDS)

    def limit(self):
        """For one answer: as long as any may take, and little beyond the end."""
        return min(self.longest_s, max(0, self.left()) + RESERVE_SECONDS)


def quantile(values, share):
    values = sorted(values)
    place = share * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (place - below) * (values[above] - values[below])


def summary(values):
    if not values:
        return None
    return {"median": quantile(values, 0.5), "p5": quantile(values, 0.05),
            "p95": quantile(values, 0.95), "count": len(values), "raw": values}


def difference(ours, theirs, precision):
    """How far two curves part, as LOSS_BOUND counts it; infinite where one holds what is no
    number, or the peer's does not fall."""
    if len(ours) != len(theirs) or not all(map(math.isfinite, [*ours, *theirs])):
        return math.inf
    fall = theirs[0] - min(theirs)
    scale = fall + RESOLUTION[precision] * abs(theirs[0])
    return max(abs(a - b) for a, b in zip(ours, theirs)) / scale if fall > 0 else math.inf


def block_steps(way, clock):
    """As many steps as take about BLOCK_SECONDS, in whole launches."""
    n = round_up(10, way.multiple)
    way.block(n, clock.limit())
    pace = way.block(n, clock.limit())["wall_s"] / n
    return round_up(max(FEWEST, min(MOST, round(BLOCK_SECONDS / max(pace, 1e-9)))),
                    way.multiple)


def each(ways, failed, act):
    """act(way) for every way; one that fails is put away with its reason."""
    found = {}
    for name in list(ways):
        try:
            found[name] = act(ways[name])
        except Failed as reason:
            failed[name] = str(reason)
            del ways[name]
    return found


def curves(ways, failed, clock):
    return each(ways, failed, lambda way: way.losses(LOSS_STEPS, clock.limit()))


def timed_block(way, steps, clock):
    way.reset(clock.limit())
    # Another process held the card.
    way.block(round_up(WARM_STEPS, way.multiple), clock.limit())
    answer = way.block(steps, clock.limit())
    return {key: answer[key] / steps if answer[key] is not None else None
            for key in ("wall_s", "device_s")}


def alternate(ways, failed, pairs, seed, clock):
    """In each round every way runs a block, in random order: blocks by way, and the orders.

    What fails in a round is no result. The first round finds low clocks and does not count.
    Rounds end early where the time of the call does, and say so by their count.
    """
    steps = each(ways, failed, lambda way: block_steps(way, clock))
    chance = random.Random(seed)
    blocks, orders, longest = {name: [] for name in ways}, [], 0.0
    for round_ in range(pairs + 1):
        begin = time.monotonic()
        if clock.left() < 1.5 * longest:
            break
        order = list(ways)
        chance.shuffle(order)
        found = each({name: ways[name] for name in order}, failed,
                     lambda way: timed_block(way, steps[way.name], clock))
        for name in order:
            if name not in found:
                del ways[name]
        longest = max(longest, time.monotonic() - begin)
        if round_ > 0:
            orders.append(order)
            for name in found:
                blocks[name].append(found[name])
    if len(orders) < min(pairs, FEWEST_ROUNDS):
        raise Failed(f"no time left for {FEWEST_ROUNDS} rounds")
    return {name: steps[name] for name in ways}, {name: blocks[name] for name in ways}, orders


def column(blocks, key):
    return [block[key] for block in blocks]


def has_events(blocks):
    return all(block["device_s"] is not None for block in blocks)


def steady(blocks):
    """Seconds a step: by events where the way takes them, else by the clock."""
    key = "device_s" if has_events(blocks) else "wall_s"
    return {"by": key, **summary(column(blocks, key))}


def times_faster(ours, theirs):
    """Their time over ours, round by round, both by events or else both by the clock."""
    key = "device_s" if has_events(ours) and has_events(theirs) else "wall_s"
    return {"by": key, **summary([b / a for a, b in zip(column(ours, key),
                                                       column(theirs, key))])}
