"""Compare device work of two recordings, by class of kernel or by name."""

from typing import Any, Final, Literal, TypeAlias

import numpy as np
import polars as pl

from selftime.analysis.device.kernel_attributes import with_meanings
from selftime.analysis.device.work import device_work
from selftime.compare.amounts import Amounts, spread, windows
from selftime.compare.rows import DIFFERENCE, differences, verdicts
from selftime.schema import Column, Table
from selftime.trace import Trace

By: TypeAlias = Literal["class", "name"]

KERNELS: Final = Table(
    "kernels",
    "Kernels, collectives, copies and memsets of both recordings; rows add up to all device time.",
    (
        Column("what", pl.String, "name", "The class of kernels or kind of work, or a name."),
        *DIFFERENCE,
        Column("count_before", pl.Float64, "count", "Occurrences per step before."),
        Column("count_after", pl.Float64, "count", "Occurrences per step after."),
    ),
)


def compared_kernels(before: Trace, after: Trace, by: By = "class") -> pl.DataFrame:
    """Returns `KERNELS`, one row per class or name, the greatest difference first."""
    work = [_work(trace, by) for trace in (before, after)]
    labels = pl.concat([one["what"] for one in work]).unique().sort()
    if not labels.len():
        return KERNELS.empty()
    number = {what: at for at, what in enumerate(labels.to_list())}
    spent, counts = [], []
    for trace, one in zip((before, after), work, strict=True):
        steps = windows(trace)
        thing = one["what"].replace_strict(number, return_dtype=pl.Int64).to_numpy()
        step, time = steps.of(one["begun"].to_numpy()), one["duration"].to_numpy()
        spent.append(spread(Amounts(thing, step, time), len(number), steps.count))
        occurrences = Amounts(thing, step, np.ones(thing.size, np.int64))
        counts.append(spread(occurrences, len(number), steps.count).mean)
    columns: dict[str, Any] = {
        "what": labels,
        **differences(*spent),
        "verdict": verdicts(*spent, *counts),
        "count_before": counts[0],
        "count_after": counts[1],
    }
    table = pl.DataFrame(columns, schema_overrides=KERNELS.dtypes)
    there = (pl.col("count_before") > 0) | (pl.col("count_after") > 0)
    order = pl.col("difference").abs()
    return table.filter(there).sort(order, "what", descending=[True, False]).select(*KERNELS.dtypes)


def _work(trace: Trace, by: By) -> pl.DataFrame:
    """Returns columns what, duration and begun: the launch time, else the start, in ns."""
    work = with_meanings(device_work(trace))
    name = pl.col("name").cast(pl.String)
    kind = pl.col("kind").cast(pl.String)
    kernel = pl.coalesce("class", pl.lit("other kernels"))
    what = name if by == "name" else pl.when(kind == "kernel").then(kernel).otherwise(kind)
    return work.select(
        what=what,
        duration=pl.col("duration").fill_null(0),
        begun=pl.coalesce("launched", "start"),
    )
