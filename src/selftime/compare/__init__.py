"""Compare two recordings of a program: what changed, by how much, and how certainly."""

from dataclasses import dataclass

import polars as pl

from selftime.analysis.device.work import device_work
from selftime.compare.comparability import recording_differences
from selftime.compare.kernels import KERNELS, By, compared_kernels
from selftime.compare.times import PARTS, STEPS, compared_parts, compared_steps
from selftime.compare.trees import TREE, Metric, compared_tree
from selftime.schema import Table
from selftime.trace import Trace

__all__ = ["TABLES", "Comparison", "Metric", "compare", "metrics"]

TABLES: dict[str, Table] = {table.name: table for table in (STEPS, PARTS, TREE, KERNELS)}
"""The tables of a comparison, by name."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """What changed per step from one recording to another; differences are after minus before."""

    before: str
    after: str
    """The paths of the recordings."""
    metric: Metric
    """The time that the tree compares: `device` or `host`."""
    notes: tuple[str, ...]
    """Other differences between the recordings, such as devices or versions, one sentence each."""
    steps: pl.DataFrame
    """`STEPS`."""
    parts: pl.DataFrame
    """`PARTS`."""
    tree: pl.DataFrame
    """`TREE`."""
    kernels: pl.DataFrame
    """`KERNELS`."""

    def tables(self) -> dict[str, pl.DataFrame]:
        """Every table by its name in `TABLES`."""
        return {name: getattr(self, name) for name in TABLES}


def compare(
    before: Trace, after: Trace, *, metric: Metric | None = None, kernels: By = "class"
) -> Comparison:
    """Returns the comparison of two recordings of a program.

    Args:
        before: The first recording.
        after: The second; differences are its times minus those of the first.
        metric: The time that the tree compares, `host` or `device`; by default `device` if both
            recordings have device work.
        kernels: What one row of kernels is: a `class`, or a `name`.
    """
    metric = metric or metrics(before, after)[0]
    return Comparison(
        before.source,
        after.source,
        metric,
        recording_differences(before, after),
        compared_steps(before, after),
        compared_parts(before, after),
        compared_tree(before, after, metric),
        compared_kernels(before, after, kernels),
    )


def metrics(before: Trace, after: Trace) -> tuple[Metric, ...]:
    """Returns the times that the trees can be compared by, the default first."""
    used = all(device_work(trace).height for trace in (before, after))
    return ("device", "host") if used else ("host",)
