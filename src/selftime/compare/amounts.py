"""What things take in each step: sparse amounts, and their mean and variance over the steps."""

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
    """The steps of a recording that count; a recording without steps is one, from end to end."""

    start: Ints
    end: Ints

    @property
    def count(self) -> int:
        return int(self.start.size)

    def of(self, instants: Ints) -> Ints:
        """The number of the step that each instant lies in, or NONE."""
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
    """Amounts of things in steps; arrays of shape (n,)."""

    thing: Ints
    """A number from 0."""
    step: Ints
    """Of `Windows`; what is in none does not count."""
    much: Ints


def with_inner(amounts: Amounts, parent: Ints, steps: int) -> Amounts:
    """What each thing has with all that is within it, once a step.

    Args:
        amounts: Of each by itself.
        parent: The thing around each, or NONE; shape (things,).
        steps: How many there are.
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
    risen = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for number in reversed(range(len(around))):  # each tells the one around it, the innermost first
        here = at == number
        keys, which = np.unique(np.append(place[here], risen[0]), return_inverse=True)
        sums = np.zeros(keys.size, np.int64)
        np.add.at(sums, which, np.append(much[here], risen[1]))
        done.append((keys, sums))
        above = parent[keys // steps]
        risen = above * steps + keys % steps, sums
    keys, sums = (np.concatenate(part) for part in zip(*done, strict=True))
    return Amounts(keys // steps, keys % steps, sums)


def spread(amounts: Amounts, things: int, steps: int) -> Spread:
    """The mean and the variance of each thing's amount over the steps; shape (things,).

    What a thing has in a step is added up first; a step in which it has nothing counts as 0.
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
    there = np.bincount(thing, minlength=things)
    apart = np.bincount(thing, (each - mean[thing]) ** 2, things) + (steps - there) * mean**2
    return Spread(mean, apart / (steps - 1), steps)
