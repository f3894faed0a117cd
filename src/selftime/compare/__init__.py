"""Two recordings of a program held against each other: what changed, by how much, how surely."""

from dataclasses import dataclass

import polars as pl

from selftime.analysis.device.work import device_work
from selftime.compare.comparability import unlike
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
    """What changed from one recording to another, in a step: differences are after less before."""

    before: str
    after: str
    """Where the recordings were read from."""
    metric: Metric
    """What the tree compares: time of the device or of the host."""
    notes: tuple[str, ...]
    """In what the recordings differ besides, one sentence each."""
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
    """Hold two recordings of a program against each other.

    Args:
        before: The first recording.
        after: The second; differences are its times less those of the first.
        metric: What the tree compares, `host` or `device`; by default the device if both used one.
        kernels: What a row of kernels is: a `class`, or a `name`.
    """
    metric = metric or metrics(before, after)[0]
    return Comparison(
        before.source,
        after.source,
        metric,
        unlike(before, after),
        compared_steps(before, after),
        compared_parts(before, after),
        compared_tree(before, after, metric),
        compared_kernels(before, after, kernels),
    )


def metrics(before: Trace, after: Trace) -> tuple[Metric, ...]:
    """Whose time their trees can be compared by, the first unless another is asked for."""
    used = all(device_work(trace).height for trace in (before, after))
    return ("device", "host") if used else ("host",)
