"""Operators by time, with the columns of torch's `key_averages`, and with their efficiency."""

import math
from typing import Annotated, Final

import polars as pl

from selftime.analysis.models.operator_efficiency import OPERATOR_EFFICIENCY_COLUMNS
from selftime.analysis.operator_totals import OperatorSelection, operator_totals
from selftime.errors import UsageError
from selftime.schema import Column, NameType
from selftime.trace import Trace
from selftime.views.view_declaration import (
    LINE_EVIDENCE_DOC,
    NumberRange,
    PlusJoinedWords,
    RowLimit,
    view,
)

_GROUPING_OPTIONS: Final = ("name", "shape", "type", "stack", "line", "overload")

_KEY_COLUMNS: Final = (
    Column("name", NameType, "name", "The operator, annotation, runtime call, or kernel."),
    Column(
        "kind", pl.String, "name", "One of operator, annotation, frame, call, kernel, copy, memory."
    ),
    Column(
        "input_shapes",
        pl.String,
        "text",
        "Input sizes; `[]` if unknown, null if not by shape.",
        True,
    ),
    Column(
        "input_types", pl.String, "text", "Data types of the inputs; null if not by type.", True
    ),
    Column(
        "stack", pl.String, "text", "Python frames, innermost first; null if not by stack.", True
    ),
    Column(
        "file",
        pl.String,
        "text",
        "Source file that ran the operator; null if unknown or not by line.",
        True,
    ),
    Column("line", pl.Int32, "id", "Source line that ran the operator; null if not by line.", True),
    Column(
        "function",
        pl.String,
        "name",
        "Function that contains the source line; null if not by line.",
        True,
    ),
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column(
        "overload", pl.String, "name", "The operator's overload; null if not by overload.", True
    ),
)

_COST_COLUMNS: Final = (
    Column("count", pl.Int64, "count", "The number of runs of the operator."),
    Column(
        "self_cpu_time_total",
        pl.Int64,
        "ns",
        "Host time in the operator, without slices inside it.",
        True,
    ),
    Column(
        "self_cpu_share",
        pl.Float64,
        "ratio",
        "The row's share of the summed `self_cpu_time_total`.",
        True,
    ),
    Column(
        "self_device_time_total",
        pl.Int64,
        "ns",
        "Device time of work that the operator itself launched.",
        True,
    ),
    Column(
        "self_device_share",
        pl.Float64,
        "ratio",
        "The row's share of the summed `self_device_time_total`.",
        True,
    ),
    Column(
        "cpu_time_total",
        pl.Int64,
        "ns",
        "Host time in the operator, including slices inside it.",
        True,
    ),
    Column("cpu_time", pl.Float64, "ns", "Mean host time of a run, over runs of known end.", True),
    Column(
        "device_time_total",
        pl.Int64,
        "ns",
        "Device time launched by the operator and slices inside it.",
        True,
    ),
    Column(
        "device_time", pl.Float64, "ns", "Mean `device_time_total` of a run of the operator.", True
    ),
    Column(
        "self_cpu_memory_usage",
        pl.Int64,
        "bytes",
        "Host bytes that the operator itself allocated, minus bytes it released.",
        True,
    ),
    Column(
        "cpu_memory_usage",
        pl.Int64,
        "bytes",
        "Host bytes allocated minus bytes released, including slices inside the operator.",
        True,
    ),
    Column(
        "self_device_memory_usage",
        pl.Int64,
        "bytes",
        "Device bytes that the operator itself allocated, minus bytes it released.",
        True,
    ),
    Column(
        "device_memory_usage",
        pl.Int64,
        "bytes",
        "Device bytes allocated minus bytes released, including slices inside the operator.",
        True,
    ),
    Column("flops", pl.Int64, "flops", "FLOPs as in torch's table; null if unknown.", True),
)

_RUN_TIME_COLUMNS: Final = tuple(
    Column(
        f"{side}_time_{figure}", pl.Float64, "ns", f"{words} {what} of a run of the operator.", True
    )
    for side, what in (("cpu", "host time"), ("device", "device time"))
    for figure, words in (
        ("min", "The lowest"),
        ("median", "The median of the"),
        ("p95", "The 95th percentile of the"),
        ("max", "The highest"),
        ("std", "The standard deviation of the"),
    )
)

_ALL_COLUMNS: Final = (
    *_KEY_COLUMNS,
    *_COST_COLUMNS,
    *OPERATOR_EFFICIENCY_COLUMNS,
    *_RUN_TIME_COLUMNS,
)

_SORT_COLUMN_BY_ALIAS: Final = {
    "calls": "count",
    "total": "cpu_time_total",
    "self": "self_cpu_time_total",
}


@view(
    *_ALL_COLUMNS,
    needs=("operators",),
    sums=(
        "count",
        "self_cpu_time_total",
        "self_cpu_memory_usage",
        "self_device_memory_usage",
        "self_model_flops",
        "self_model_bytes",
    ),
)
def operators(  # noqa: PLR0913 - keyword-only options of the command
    trace: Trace,
    *,
    by: Annotated[str, PlusJoinedWords(_GROUPING_OPTIONS)] = "name",
    frames: Annotated[int, NumberRange(1, math.inf, "1 or more frames to compare")] = 5,
    within: str = "",
    top_level: bool = False,
    python: bool = False,
    sort: str = "",
    top: RowLimit = 0,
) -> pl.DataFrame:
    """Self and total time of every operator, on host and device, with calls, memory, efficiency.

    `by` adds columns to group by beyond the name: shape, type (dtypes of the inputs), stack (its
    innermost `frames`), line, overload; several are joined by `+`. By line, device time counts to
    the operator's own line; in `lines` to that of the call within it, if it differs. A call has the
    device time that it launched outside operators. `within` keeps slices inside one whose name has
    that prefix, and that one itself; `top_level` keeps slices inside no other. `python` adds Python
    frames, as in torch's table where stacks were recorded. `sort` takes any column, and torch's own
    sort keys; by default self device time, or self CPU time where the trace has no device work.
    `top` keeps the first rows; 0 keeps all.

    Operations and bytes come from models of operators, by the shapes and dtypes of their inputs.
    Each is counted where it is computed, so that the columns `self_` add up. Rates are relative to
    device time, or to host time where the trace has no device work; a rate is a lower bound where
    operators have no model.
    """
    keys = by.split("+")
    selection = OperatorSelection(within=within, top_level=top_level, python=python)
    table = operator_totals(trace, _ALL_COLUMNS, keys, frames, selection)
    table = operators.table_of(table)
    column = _column_to_sort_by(sort) if sort else _default_sort_column(table)
    descending = [table.schema[column] not in (pl.String, pl.Categorical), False]
    table = table.sort(column, "name", descending=descending, nulls_last=True, maintain_order=True)
    return table.head(top) if top > 0 else table


def _column_to_sort_by(sort_key: str) -> str:
    name = _SORT_COLUMN_BY_ALIAS.get(sort_key, sort_key)
    for device in ("cuda", "xpu", "privateuse1", "hip"):
        name = name.replace(device, "device")
    known = [column.name for column in _ALL_COLUMNS]
    if name not in known:
        raise UsageError(
            f"`operators` cannot be sorted by `{sort_key}`; choose one of {', '.join(known)}"
        )
    return name


def _default_sort_column(table: pl.DataFrame) -> str:
    on_device = table["self_device_time_total"].sum() > 0
    return "self_device_time_total" if on_device else "self_cpu_time_total"
