"""Amounts per step, such as times and calls: sparse sums, and their mean and variance."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from selftime.analysis.call_tree.forest import levels
from selftime.analysis.steps.steady_steps import counted_windows
from selftime.arrays import Floats, Ints
from selftime.compare.noise import Spread
from selftime.nesting import NONE
from selftime.trace import Trace


@dataclass(frozen=True, slots=True)
class Windows:
    """The steps that are compared; a recording without steps is one window."""

    start: Ints
    end: Ints

    @property
    def count(self) -> int:
        return int(self.start.size)

    def of(self, instants: Ints) -> Ints:
        """Returns the index of the step that contains each time, or NONE."""
        at = np.searchsorted(self.start, instants, side="right") - 1
        return np.where((at >= 0) & (instants < self.end[np.maximum(at, 0)]), at, NONE)


def windows(trace: Trace) -> Windows:
    found = counted_windows(trace)
    if found.height:
        return Windows(found["start"].to_numpy(), found["end"].to_numpy())
    last = trace.slices.select((pl.col("start") + pl.col("duration").fill_null(0)).max()).item()
    return Windows(np.zeros(1, np.int64), np.full(1, (last or 0) + 1, np.int64))


@dataclass(frozen=True, slots=True)
class Amounts:
    """Amounts of things in steps, one entry each; arrays of shape (n,)."""

    thing: Ints
    """The thing's number, from 0."""
    step: Ints
    """The step's index in `Windows`; NONE does not count."""
    much: Ints


def inclusive_amounts(amounts: Amounts, parent: Ints, steps: int) -> Amounts:
    """Returns each thing's amount including all things inside it, once per step.

    Args:
        amounts: Each thing's own amount.
        parent: The thing around each, or NONE; shape (things,).
        steps: The number of steps.
    """
    inside = amounts.step != NONE
    place = amounts.thing[inside] * steps + amounts.step[inside]
    much = amounts.much[inside]
    depth = np.zeros(parent.size, np.int64)
    around = levels(parent)
    for number, level in enumerate(around):
        depth[level] = number
    at = depth[amounts.thing[inside]]
    done: list[tuple[Ints, Ints]] = []
    carried = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for number in reversed(range(len(around))):  # add to the parent, innermost first
        here = at == number
        keys, which = np.unique(np.append(place[here], carried[0]), return_inverse=True)
        sums = np.zeros(keys.size, np.int64)
        np.add.at(sums, which, np.append(much[here], carried[1]))
        done.append((keys, sums))
        above = parent[keys // steps]
        carried = above * steps + keys % steps, sums
    keys, sums = (np.concatenate(part) for part in zip(*done, strict=True))
    return Amounts(keys // steps, keys % steps, sums)


def spread(amounts: Amounts, things: int, steps: int) -> Spread:
    """Returns mean and variance of each thing's amount over the steps; shape (things,).

    Amounts of a thing in a step are summed first; a step without the thing counts as 0.
    """
    inside = amounts.step != NONE
    key = amounts.thing[inside] * steps + amounts.step[inside]
    keys, which = np.unique(key, return_inverse=True)
    each = np.bincount(which, amounts.much[inside].astype(np.float64), keys.size)
    thing = keys // steps
    whole = np.bincount(thing, each, things)
    mean: Floats = whole / steps
    if steps < 2:
        return Spread(mean, np.zeros(things), steps)
    steps_present = np.bincount(thing, minlength=things)
    apart = (
        np.bincount(thing, (each - mean[thing]) ** 2, things) + (steps - steps_present) * mean**2
    )
    return Spread(mean, apart / (steps - 1), steps)
