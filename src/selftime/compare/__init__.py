"""Compares two recordings of a program: which times changed, by how much, and how certainly."""

from dataclasses import dataclass
from functools import partial

import polars as pl

from selftime.analysis.account.step_account import account_segments
from selftime.analysis.concurrent_calls import concurrent_calls
from selftime.analysis.device.device_work import device_work
from selftime.compare.account import ACCOUNT_TABLE, compared_accounts
from selftime.compare.comparability import recording_differences
from selftime.compare.kernels import KERNELS_TABLE, KernelGrouping, compared_kernels
from selftime.compare.module_operator_tree import TREE_TABLE, Metric, compared_tree
from selftime.compare.runs import (
    RUN_PARTS_TABLE,
    RUN_STEPS_TABLE,
    compared_run_parts,
    compared_run_steps,
)
from selftime.compare.step_times import PARTS_TABLE, STEPS_TABLE, compared_parts, compared_steps
from selftime.schema import Table
from selftime.trace import Trace

__all__ = ["TABLES", "Comparison", "Metric", "compare", "metrics"]

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        STEPS_TABLE,
        ACCOUNT_TABLE,
        PARTS_TABLE,
        TREE_TABLE,
        KERNELS_TABLE,
        RUN_PARTS_TABLE,
        RUN_STEPS_TABLE,
    )
}
"""The tables of a comparison, by name."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Differences per step, and of the run, between two recordings; each is after minus before."""

    before: str
    after: str
    """Paths of the two recordings (`before` and `after`)."""
    metric: Metric
    """Whether the table `tree` compares times of the `device` or of the `host`."""
    notes: tuple[str, ...]
    """Other differences between the recordings, such as devices or versions, one sentence each."""
    steps: pl.DataFrame
    """Step times before and after, with the columns of `STEPS_TABLE`."""
    account: pl.DataFrame
    """What the mean step is spent on, before and after, with the columns of `ACCOUNT_TABLE`."""
    parts: pl.DataFrame
    """Categories of the step time, such as data loading, before and after: columns of
    `PARTS_TABLE`."""
    tree: pl.DataFrame
    """Modules and operators of both recordings, with the columns of `TREE_TABLE`."""
    kernels: pl.DataFrame
    """Kernels and copies on the device before and after: columns of `KERNELS_TABLE`."""
    run_parts: pl.DataFrame
    """Parts of the wall time of both runs, with the columns of `RUN_PARTS_TABLE`.

    It is empty if a recording has no ledger of its run.
    """
    run_steps: pl.DataFrame
    """Steps of both runs by kind, with the columns of `RUN_STEPS_TABLE`; empty unless both have a
    ledger."""

    def tables(self) -> dict[str, pl.DataFrame]:
        """Returns every table of the comparison, by its name in `TABLES`."""
        return {name: getattr(self, name) for name in TABLES}


def compare(
    before: Trace, after: Trace, *, metric: Metric | None = None, kernels: KernelGrouping = "class"
) -> Comparison:
    """Compares two recordings of a program, and returns the differences as tables.

    Args:
        before: The first recording.
        after: The second; differences are its times minus those of the first.
        metric: The time that the tree compares, `host` or `device`; by default `device` if both
            recordings have device work.
        kernels: What one row of kernels is: a `class`, or a `name`.
    """
    metric = metric or metrics(before, after)[0]
    with concurrent_calls(before, after) as begin:
        for trace in (before, after):
            begin(partial(account_segments, trace))  # what takes longest, kept with the trace
        tree = begin(partial(compared_tree, before, after, metric))
        kernel_rows = begin(partial(compared_kernels, before, after, kernels))
        return Comparison(
            before.source,
            after.source,
            metric,
            recording_differences(before, after),
            compared_steps(before, after),
            compared_accounts(before, after),
            compared_parts(before, after),
            tree(),
            kernel_rows(),
            compared_run_parts(before.run, after.run),
            compared_run_steps(before.run, after.run),
        )


def metrics(before: Trace, after: Trace) -> tuple[Metric, ...]:
    """Returns which times the recordings allow to compare: `device` and `host`, or `host` only."""
    used = all(device_work(trace).height for trace in (before, after))
    return ("device", "host") if used else ("host",)
