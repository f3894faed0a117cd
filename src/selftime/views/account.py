"""The account of the step: what its time was spent on, in rows that add up to it."""

from typing import Final, Literal

import polars as pl

from selftime.analysis.account.step_account import account_segments_of_kind, names_of_kinds
from selftime.analysis.account.time_classes import TIME_CLASSES
from selftime.analysis.slice_filters import common_value_expression
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS
from selftime.errors import UsageError
from selftime.schema import Column, NameType
from selftime.trace import Trace
from selftime.views.view_declaration import LINE_EVIDENCE_DOC, RowLimit, view

_GROUPING_COLUMNS_BY_OPTION: Final = {
    "class": ("class",),
    "what": ("class", "what"),
    "line": ("class", *SOURCE_SITE_COLUMNS, "_what_without_line"),
    "step": ("step", "class"),
    "kind": ("kind", "class"),
}
"""Maps each value of the option `by` to the columns by which segments are grouped into rows."""
_COLUMNS_NULL_UNLESS_ALL_EQUAL: Final = ("step", "kind", *SOURCE_SITE_COLUMNS, "module", "thread")
"""Columns that are null in a row unless all its segments have the same value."""


@view(
    Column("class", pl.String, "name", "What the time was spent on, such as compute or launch."),
    Column(
        "kind",
        pl.String,
        "name",
        "The kind of the steps, such as training; null for steps of every kind.",
        True,
    ),
    Column(
        "what",
        NameType,
        "name",
        "The optimizer, operator, frame or kernel that took most of the row's time.",
        True,
    ),
    Column("time", pl.Int64, "ns", "Time of the row in all counted steps."),
    Column("share", pl.Float64, "ratio", "The row's time as a share of the steps' time."),
    Column("per_step", pl.Float64, "ns", "Average time of the row in a step."),
    Column(
        "count", pl.Int64, "count", "The number of separate stretches of time that the row adds up."
    ),
    Column(
        "file",
        pl.String,
        "text",
        "The source file of the work that took the time; null if unknown or several.",
        True,
    ),
    Column(
        "line",
        pl.Int32,
        "id",
        "The source line of the work that took the time; null if unknown or several.",
        True,
    ),
    Column("function", pl.String, "name", "The function that contains the source line.", True),
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column(
        "module",
        pl.String,
        "name",
        "The class of the module that ran or launched the work; null if unknown or several.",
        True,
    ),
    Column(
        "thread",
        pl.String,
        "text",
        "The thread or stream of the work; null if unknown or several.",
        True,
    ),
    Column(
        "inferred",
        pl.Int64,
        "ns",
        "The part of `time` that follows a dependency that is inferred, not recorded.",
    ),
    Column(
        "step",
        pl.Int64,
        "id",
        "The number of the step that the time belongs to; null if several.",
        True,
    ),
    Column(
        "longest",
        pl.UInt32,
        "id",
        "The slice id of the row's longest stretch of time; null if no slice covers it.",
        True,
    ),
    sums=("time", "count", "inferred"),
)
def account(
    trace: Trace,
    *,
    by: Literal["class", "what", "line", "step", "kind"] = "line",
    kind: str = "",
    top: RowLimit = 0,
) -> pl.DataFrame:
    """What the time of the steps was spent on, most first; the rows add up to the steps.

    Each nanosecond of a step belongs to the class of what the step waited for at that moment, along
    the critical path:

    compute, kernels, or operators on the CPU; communication between ranks; copy between host and
    device; data_wait, for a batch; launch, operators and calls that launch device work; python, the
    interpreter between operators; device_wait, calls in which the host waits for the device, and
    launched work that waits for what the device does unrecorded; compile; capture, what is captured
    into a CUDA graph and does not run; garbage_collection; idle, nothing is known to run while
    device work is about to begin; other, the recorder itself and what the trace does not tell.

    Work that is hidden behind other work is in no row: without it the step would be as long. Steps
    that do not count for medians are left out, as in other views, if there are others.

    `by` makes a row for each class, name, source line or step, or for each class of each kind of
    step. `kind` keeps the steps of one kind, with their own mean: `training` steps run a backward
    pass and an optimizer; other kinds are `forward only`, `without optimizer` and `optimizer only`;
    `short` and `long` steps do other work, or take clearly another time; `all` is the kind of steps
    that are alike. `top` keeps the first rows; 0 keeps all.
    """
    kinds = names_of_kinds(trace)
    if kind and kind not in kinds:
        known = ", ".join(f"`{name}`" for name in kinds) or "none"
        raise UsageError(f"no recorded step is of the kind `{kind}`; there are {known}")
    apart = kinds if by == "kind" and not kind else [kind or None]
    parts = [(name, *account_segments_of_kind(trace, name)) for name in apart or [None]]
    tables = [
        found.with_columns(
            kind=pl.lit(name, pl.String), steps=pl.lit(1 if by == "step" else count, pl.Int64)
        )
        for name, found, count in parts
    ]
    table = _rows_of_segments(pl.concat(tables), by)
    return table.head(top) if top else table


def _rows_of_segments(segments: pl.DataFrame, by: str) -> pl.DataFrame:
    keys = _GROUPING_COLUMNS_BY_OPTION[by]
    time = pl.col("end") - pl.col("start")
    rows = segments.with_columns(
        pl.col("class").cast(pl.String),
        time=time,
        inferred=pl.when("inferred").then(time).otherwise(0),
        _what_without_line=pl.when(pl.col("file").is_null()).then("what"),
    )
    names = rows.group_by(*keys, pl.col("what").alias("_name")).agg(pl.col("time").sum())
    largest = names.sort("time", "_name", descending=[True, False]).unique(keys, keep="first")
    longest = pl.col("slice").sort_by("time", "start", descending=[True, False]).first()
    others = [
        common_value_expression(name) for name in _COLUMNS_NULL_UNLESS_ALL_EQUAL if name not in keys
    ]
    table = rows.group_by(keys, maintain_order=True).agg(
        pl.col("time", "inferred").sum(),
        pl.len().alias("count"),
        longest.alias("longest"),
        pl.col("start").min(),
        pl.col("steps").max(),
        *others,
    )
    table = table.join(
        largest.select(*keys, what="_name") if "what" not in keys else largest.select(keys),
        on=keys,
        how="left",
        nulls_equal=True,
    )
    table = table.with_columns(
        share=pl.col("time") / max(int(segments.select(time.sum()).item() or 0), 1),
        per_step=pl.col("time") / pl.col("steps"),
    )
    table = table.sort(
        "time",
        pl.col("class").cast(pl.Enum(TIME_CLASSES)),
        "start",
        descending=[True, False, False],
    )
    return table.select(pl.col(column.name).cast(column.dtype) for column in account.columns)
