"""Sums amounts, such as times and numbers of calls, per step; computes their mean and variance."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from selftime.analysis.call_tree.parent_array_forests import nodes_by_level
from selftime.analysis.steps.steady_steps import counted_step_windows
from selftime.array_types import Floats, Ints
from selftime.compare.statistical_significance import MeanAndVariance
from selftime.nesting import NO_SLICE
from selftime.trace import Trace


@dataclass(frozen=True, slots=True)
class StepWindows:
    """Start and end of each compared step in ns; of the whole recording if it has no steps."""

    start: Ints
    end: Ints

    @property
    def count(self) -> int:
        return int(self.start.size)

    def step_index_at(self, times: Ints) -> Ints:
        """Returns the index of the step that contains each time; -1 for times outside the steps."""
        at = np.searchsorted(self.start, times, side="right") - 1
        return np.where((at >= 0) & (times < self.end[np.maximum(at, 0)]), at, NO_SLICE)


def step_windows(trace: Trace) -> StepWindows:
    """Returns when each steady step ran, in ns; if there are no steps, the whole recording."""
    found = counted_step_windows(trace)
    if found.height:
        return StepWindows(found["start"].to_numpy(), found["end"].to_numpy())
    last = trace.slices.select((pl.col("start") + pl.col("duration").fill_null(0)).max()).item()
    return StepWindows(np.zeros(1, np.int64), np.full(1, (last or 0) + 1, np.int64))


@dataclass(frozen=True, slots=True)
class AmountsPerStep:
    """n amounts, such as times in ns, each of one item in one step; arrays of shape (n,)."""

    item: Ints
    """Number of the item that the amount belongs to, from 0: a tree node, for example, or a kernel
    name."""
    step: Ints
    """Index in `StepWindows` of the step that the amount belongs to; -1 for an amount outside all
    steps."""
    amount: Ints
    """The amount, for example a time in ns."""


def inclusive_amounts(amounts: AmountsPerStep, parent: Ints, step_count: int) -> AmountsPerStep:
    """Returns each tree node's amount in each step, with the amounts of all nodes below it.

    Args:
        amounts: Each node's own amount.
        parent: The node around each, or NONE; shape (nodes,).
        step_count: The number of steps.
    """
    inside = amounts.step != NO_SLICE
    place = amounts.item[inside] * step_count + amounts.step[inside]
    amount = amounts.amount[inside]
    depth = np.zeros(parent.size, np.int64)
    around = nodes_by_level(parent)
    for number, level in enumerate(around):
        depth[level] = number
    at = depth[amounts.item[inside]]
    done: list[tuple[Ints, Ints]] = []
    carried = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for number in reversed(range(len(around))):  # add to the parent, innermost first
        here = at == number
        keys, which = np.unique(np.append(place[here], carried[0]), return_inverse=True)
        sums = np.zeros(keys.size, np.int64)
        np.add.at(sums, which, np.append(amount[here], carried[1]))
        done.append((keys, sums))
        above = parent[keys // step_count]
        carried = above * step_count + keys % step_count, sums
    keys, sums = (np.concatenate(part) for part in zip(*done, strict=True))
    return AmountsPerStep(keys // step_count, keys % step_count, sums)


def mean_and_variance_over_steps(
    amounts: AmountsPerStep, item_count: int, step_count: int
) -> MeanAndVariance:
    """Returns mean and variance over steps of each item's amount; arrays of shape (item_count,).

    Amounts of an item in a step are summed first; a step without the item counts as 0.
    """
    inside = amounts.step != NO_SLICE
    key = amounts.item[inside] * step_count + amounts.step[inside]
    keys, which = np.unique(key, return_inverse=True)
    each = np.bincount(which, amounts.amount[inside].astype(np.float64), keys.size)
    item = keys // step_count
    whole = np.bincount(item, each, item_count)
    mean: Floats = whole / step_count
    if step_count < 2:
        return MeanAndVariance(mean, np.zeros(item_count), step_count)
    steps_present = np.bincount(item, minlength=item_count)
    apart = (
        np.bincount(item, (each - mean[item]) ** 2, item_count)
        + (step_count - steps_present) * mean**2
    )
    return MeanAndVariance(mean, apart / (step_count - 1), step_count)
