"""Compares kernels and copies of two recordings, grouped by class of kernel or by kernel name."""

from typing import Any, Final, Literal, TypeAlias

import numpy as np
import polars as pl

from selftime.analysis.device.device_work import device_work
from selftime.analysis.device.kernel_attributes import with_kernel_classes
from selftime.compare.amounts_per_step import (
    AmountsPerStep,
    mean_and_variance_over_steps,
    step_windows,
)
from selftime.compare.difference_columns import (
    DIFFERENCE_COLUMNS,
    difference_columns,
    difference_verdicts,
)
from selftime.schema import Column, Table
from selftime.trace import Trace

KernelGrouping: TypeAlias = Literal["class", "name"]

KERNELS_TABLE: Final = Table(
    "kernels",
    "Kernels, collectives, copies and memsets of both recordings; rows add up to all device time.",
    (
        Column(
            "what",
            pl.String,
            "name",
            "Class of kernels, such as `matmul`; kind of copy; or name of a kernel.",
        ),
        *DIFFERENCE_COLUMNS,
        Column(
            "count_before",
            pl.Float64,
            "count",
            "Mean number of kernels or copies per step before the change.",
        ),
        Column(
            "count_after",
            pl.Float64,
            "count",
            "Mean number of kernels or copies per step after the change.",
        ),
    ),
)


def compared_kernels(before: Trace, after: Trace, by: KernelGrouping = "class") -> pl.DataFrame:
    """Returns `KERNELS_TABLE`: a row per kernel class or name, largest time difference first."""
    work = [_labelled_device_work(trace, by) for trace in (before, after)]
    labels = pl.concat([one["what"] for one in work]).unique().sort()
    if not labels.len():
        return KERNELS_TABLE.empty()
    number = {what: at for at, what in enumerate(labels.to_list())}
    spent, counts = [], []
    for trace, one in zip((before, after), work, strict=True):
        steps = step_windows(trace)
        item = one["what"].replace_strict(number, return_dtype=pl.Int64).to_numpy()
        step, time = steps.step_index_at(one["begun"].to_numpy()), one["duration"].to_numpy()
        spent.append(
            mean_and_variance_over_steps(AmountsPerStep(item, step, time), len(number), steps.count)
        )
        occurrences = AmountsPerStep(item, step, np.ones(item.size, np.int64))
        counts.append(mean_and_variance_over_steps(occurrences, len(number), steps.count).mean)
    columns: dict[str, Any] = {
        "what": labels,
        **difference_columns(*spent),
        "verdict": difference_verdicts(*spent, *counts),
        "count_before": counts[0],
        "count_after": counts[1],
    }
    table = pl.DataFrame(columns, schema_overrides=KERNELS_TABLE.dtypes)
    there = (pl.col("count_before") > 0) | (pl.col("count_after") > 0)
    order = pl.col("difference").abs()
    return (
        table.filter(there)
        .sort(order, "what", descending=[True, False])
        .select(*KERNELS_TABLE.dtypes)
    )


def _labelled_device_work(trace: Trace, by: KernelGrouping) -> pl.DataFrame:
    """Returns label, duration (ns) and launch time (ns) of each kernel, collective and copy."""
    work = device_work(trace).select("name", "kind", "start", "duration", "launched")
    what = pl.col("name").cast(pl.String)
    if by == "class":
        work, kind = with_kernel_classes(work), pl.col("kind").cast(pl.String)
        kernel = pl.coalesce("class", pl.lit("other kernels"))
        what = pl.when(kind == "kernel").then(kernel).otherwise(kind)
    return work.select(
        what=what,
        duration=pl.col("duration").fill_null(0),
        begun=pl.coalesce("launched", "start"),
    )
