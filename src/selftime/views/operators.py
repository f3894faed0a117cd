"""Operators by time, with the columns of torch's `key_averages`, and with their efficiency."""

import math
from collections.abc import Callable
from typing import Annotated, Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_tree.parent_array_forests import is_outermost_of_key
from selftime.analysis.call_tree.self_times import SelfTimes, is_inside_entry_named, self_times
from selftime.analysis.device.device_work import slice_durations_without_impossible
from selftime.analysis.models.modelled_operator_work import (
    TensorCoreTimesByOperator,
    common_peak_rates_of_devices,
    modelled_work_of_operators,
    tensor_core_times_by_operator,
)
from selftime.analysis.models.operator_efficiency import (
    OPERATOR_EFFICIENCY_COLUMNS,
    operator_efficiency_amounts,
    rows_with_efficiency_columns,
)
from selftime.analysis.models.operator_flops import recorded_or_modelled_flops
from selftime.analysis.slice_filters import slices_on
from selftime.analysis.slice_grouping import (
    equal_row_group_numbers,
    input_shapes,
    map_distinct_names,
    python_stacks_of_operators,
    recorded_operator_argument,
)
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.array_types import Flags
from selftime.errors import UsageError
from selftime.nesting import NO_SLICE
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
_KIND_BY_SLICE_CATEGORY: Final = {
    "cpu_op": "operator",
    "user_annotation": "annotation",
    "python_function": "frame",
}
_OUTSIDE_OPERATORS_ROW_NAME: Final = "[memory]"

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
    Column("input_types", pl.String, "text", "Dtypes of the inputs; null if not by type.", True),
    Column(
        "stack", pl.String, "text", "Python frames, innermost first; null if not by stack.", True
    ),
    Column("file", pl.String, "text", "Source file; null if unknown or not by line.", True),
    Column("line", pl.Int32, "id", "The operator's own source line; null if not by line.", True),
    Column("function", pl.String, "name", "The line's function; null if not by line.", True),
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column("overload", pl.String, "name", "The overload; null if not by overload.", True),
)
_COST_COLUMNS: Final = (
    Column("count", pl.Int64, "count", "The number of runs of the operator."),
    Column("self_cpu_time_total", pl.Int64, "ns", "Host time, without that of inner slices.", True),
    Column("self_cpu_share", pl.Float64, "ratio", "Share of the sum of self CPU time.", True),
    Column("self_device_time_total", pl.Int64, "ns", "Device time of its own launches.", True),
    Column("self_device_share", pl.Float64, "ratio", "Share of the sum of device time.", True),
    Column("cpu_time_total", pl.Int64, "ns", "Host time, with inner slices.", True),
    Column("cpu_time", pl.Float64, "ns", "Mean `cpu_time_total` of runs of known end.", True),
    Column(
        "device_time_total", pl.Int64, "ns", "Device time that it and slices within launched.", True
    ),
    Column("device_time", pl.Float64, "ns", "Mean `device_time_total` of a run.", True),
    Column("self_cpu_memory_usage", pl.Int64, "bytes", "Host bytes allocated less released.", True),
    Column("cpu_memory_usage", pl.Int64, "bytes", "Net host bytes, with inner slices.", True),
    Column(
        "self_device_memory_usage", pl.Int64, "bytes", "Device bytes allocated less released.", True
    ),
    Column("device_memory_usage", pl.Int64, "bytes", "Net device bytes, with inner slices.", True),
    Column("flops", pl.Int64, "flops", "FLOPs as in torch's table; null if unknown.", True),
)
_RUN_TIME_COLUMNS: Final = tuple(
    Column(f"{side}_time_{figure}", pl.Float64, "ns", f"{words} {what} of a run.", True)
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
    host = self_times(trace, with_python_frames=python)
    cores = tensor_core_times_by_operator(trace, host)
    inside = is_inside_entry_named(host, within) if within else None
    key_values = _group_keys(trace, host, keys, frames)
    rows = _host_slice_rows(trace, host, cores, key_values, _is_row_listed(host, inside, top_level))
    table = rows if top_level else pl.concat([rows, _device_work_rows(trace, inside, host)])
    device = trace.device_args.height > 0
    table = rows_with_efficiency_columns(
        _with_time_share_columns(table), common_peak_rates_of_devices(trace), is_device_time=device
    ).select(pl.col(column.name).cast(column.dtype) for column in _ALL_COLUMNS)
    column = _column_to_sort_by(sort) if sort else _default_sort_column(table)
    descending = [table.schema[column] not in (pl.String, pl.Categorical), False]
    table = table.sort(column, "name", descending=descending, nulls_last=True, maintain_order=True)
    return table.head(top) if top > 0 else table


def _is_row_listed(host: SelfTimes, is_inside: Flags | None, top_level: bool) -> Flags | None:
    if not top_level:
        return is_inside
    roots: Flags = host.parent == NO_SLICE
    return roots if is_inside is None else np.logical_and(roots, is_inside)


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


def _group_keys(trace: Trace, host: SelfTimes, by: list[str], frames: int) -> dict[str, pl.Series]:
    ids = pl.Series("id", host.id, dtype=pl.UInt32)
    keys: dict[str, pl.Series] = {}
    if "shape" in by:
        keys["input_shapes"] = input_shapes(trace, ids)
    if "type" in by:
        keys["input_types"] = recorded_operator_argument(trace, ids, "input_types")
    if "stack" in by:
        keys["stack"] = python_stacks_of_operators(trace, ids, frames)
    if "overload" in by:
        keys["overload"] = recorded_operator_argument(trace, ids, "overload")
    if "line" in by:
        keys |= source_sites_of_slices(trace, ids).select(SOURCE_SITE_COLUMNS).to_dict()
    return keys


def _host_slice_rows(
    trace: Trace,
    host: SelfTimes,
    core_times: TensorCoreTimesByOperator,
    keys: dict[str, pl.Series],
    is_listed: Flags | None,
) -> pl.DataFrame:
    kind = map_distinct_names(host.category, lambda c: _KIND_BY_SLICE_CATEGORY.get(c, "call"))
    told_apart = pl.DataFrame({"name": host.name, "kind": kind, **keys})
    group = equal_row_group_numbers(told_apart)
    outer = is_outermost_of_key(host.parent, group)
    ids = pl.Series("id", host.id, dtype=pl.UInt32)
    unknown = trace.slices["duration"].gather(ids).is_null()
    device = trace.device_args.height > 0
    sums: dict[str, Any] = {
        "timed": ~unknown,
        "self_cpu_time_total": pl.Series(host.self_cpu).set(unknown, None),
        "cpu_time_total": pl.Series(np.where(outer, host.cpu, 0)).set(unknown, None),
        "self_device_time_total": host.self_device,
        "device_time_total": np.where(outer, host.device, 0),
        "flops": recorded_or_modelled_flops(trace, host.name, ids),
        **(_operator_memory_columns(host, outer) if trace.memory.height else {}),
        **operator_efficiency_amounts(
            host,
            modelled_work_of_operators(trace, host, core_times),
            core_times,
            outer,
            is_device_time=device,
        ),
    }
    runs = {"cpu": pl.Series(host.cpu).set(unknown, None)}
    if device:
        runs["device"] = pl.Series(host.device)
    some = {name: much for name, much in sums.items() if not _are_all_zero(much)}
    events = told_apart.with_columns(group=group, **some, **runs)
    if is_listed is not None:
        events = events.filter(pl.Series(is_listed))
    rows = _sum_runs_with_statistics(events, told_apart.columns, list(some), list(runs))
    rows = rows.with_columns(pl.lit(0, pl.Int64).alias(name) for name in sums if name not in some)
    rows = _with_all_view_columns(rows)
    lost = _row_outside_operators(host, keys) if trace.memory.height and is_listed is None else None
    return rows if lost is None else pl.concat([rows, lost])


def _are_all_zero(amounts: Any) -> bool:
    """Returns whether all amounts are known and zero."""
    return isinstance(amounts, np.ndarray) and not amounts.any()


def _operator_memory_columns(host: SelfTimes, is_outer: Flags) -> dict[str, Any]:
    return {
        "self_cpu_memory_usage": host.memory["self_cpu"],
        "cpu_memory_usage": np.where(is_outer, host.memory["cpu"], 0),
        "self_device_memory_usage": host.memory["self_device"],
        "device_memory_usage": np.where(is_outer, host.memory["device"], 0),
    }


def _row_outside_operators(host: SelfTimes, keys: dict[str, pl.Series]) -> pl.DataFrame:
    """Returns one row for memory allocated or released outside all operators."""
    lost = host.unclaimed
    if not lost.height:
        return _with_all_view_columns(pl.DataFrame())
    row = {
        "name": [_OUTSIDE_OPERATORS_ROW_NAME],
        "kind": ["memory"],
        "count": [lost.height],
        **({"input_shapes": ["[]"]} if "input_shapes" in keys else {}),
        **{
            f"{own}{side}_memory_usage": [int(lost[side].sum())]
            for own in ("self_", "")
            for side in ("cpu", "device")
        },
    }
    return _with_all_view_columns(pl.DataFrame(row))


def _device_work_rows(trace: Trace, is_inside: Flags | None, host: SelfTimes) -> pl.DataFrame:
    """Returns one row for each name of a kernel or copy; device-side annotations are left out."""
    work = slices_on(trace, "device")
    if is_inside is not None:
        launchers = pl.Series(host.id[is_inside], dtype=pl.UInt32)
        launched = trace.device_args
        mine = launched["id"].filter(launched["operator"].is_in(launchers.implode()))
        work = work.filter(pl.col("id").is_in(mine.implode()))
    time = slice_durations_without_impossible(trace).gather(work["id"])
    kind = map_distinct_names(
        work["category"], lambda category: "copy" if category in names.COPY_CATEGORIES else "kernel"
    )
    uses = map_distinct_names(work["name"], lambda n: _FLAG_TEXTS[names.uses_tensor_cores(n)])
    is_kernel = kind == "kernel"
    told_apart = pl.DataFrame({"name": work["name"], "kind": kind})
    sums = {
        "timed": time.is_not_null(),
        "self_device_time_total": time,
        "device_time_total": time,
        "tensor": time * (is_kernel & (uses == "yes")),
        "untold": time * (is_kernel & (uses == "unknown")),
    }
    events = told_apart.with_columns(group=equal_row_group_numbers(told_apart), **sums, device=time)
    rows = _sum_runs_with_statistics(events, told_apart.columns, list(sums), ["device"])
    return _with_all_view_columns(rows)


_FLAG_TEXTS: Final = {True: "yes", False: "no", None: "unknown"}
_EQUAL_ONLY_COLUMNS: Final = ("dtype_place", "peak")
"""Columns that are null in a row unless all its runs have the same value."""
_RUN_TIME_STATISTICS: Final[dict[str, Callable[[pl.Expr], pl.Expr]]] = {
    "min": pl.Expr.min,
    "median": pl.Expr.median,
    "p95": lambda runs: runs.quantile(0.95, "linear"),
    "max": pl.Expr.max,
    "std": lambda runs: runs.std(ddof=0),
}


def _sum_runs_with_statistics(
    events: pl.DataFrame, keys: list[str], sum_columns: list[str], run_columns: list[str]
) -> pl.DataFrame:
    """Returns for each group of runs the sums of known values, and statistics of the run times."""
    return events.group_by("group", maintain_order=True).agg(
        pl.col(keys).first(),
        pl.len().alias("count"),
        *(_sum_of_known_values(name) for name in sum_columns if name not in _EQUAL_ONLY_COLUMNS),
        *(_value_if_all_equal(name) for name in sum_columns if name in _EQUAL_ONLY_COLUMNS),
        *(
            spread(pl.col(run)).alias(f"{run}_time_{figure}")
            for run in run_columns
            for figure, spread in _RUN_TIME_STATISTICS.items()
        ),
    )


def _sum_of_known_values(column_name: str) -> pl.Expr:
    column = pl.col(column_name)
    return pl.when(column.count() > 0).then(column.sum()).alias(column_name)


def _value_if_all_equal(column_name: str) -> pl.Expr:
    column = pl.col(column_name)
    return pl.when(column.min() == column.max()).then(column.min()).alias(column_name)


_COLUMNS_OF_INTERMEDIATE_SUMS: Final = (
    Column("timed", pl.Int64, "count", "The number of runs of known end."),
    Column("least", pl.Int64, "count", "Least time by operations, in ps."),
    Column("rated_flops", pl.Int64, "count", "Operations whose time is known."),
    Column("rated_bytes", pl.Int64, "count", "Bytes whose time is known."),
    Column("models", pl.Int64, "count", "Operators with a model, including those within."),
    Column("own_models", pl.Int64, "count", "Own runs with a model."),
    Column("covered", pl.Int64, "count", "Time with a model."),
    Column("time", pl.Int64, "count", "Time that rates relate to."),
    Column("tensor", pl.Int64, "count", "Time on tensor cores."),
    Column("untold", pl.Int64, "count", "Time in kernels with unknown use of tensor cores."),
    Column("matrix", pl.Int64, "count", "Runs that multiply matrices."),
    Column("dtype_place", pl.Int64, "id", "The dtype's index.", True),
    Column("peak", pl.Float64, "flops/s", "The peak of its operations.", True),
)
"""Columns of sums from which rates and averages are computed; the view does not show them."""


def _with_all_view_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows with all columns of the view; missing times become 0, other values null."""
    columns = []
    for column in (*_ALL_COLUMNS, *_COLUMNS_OF_INTERMEDIATE_SUMS):
        if column.name in rows.columns:
            columns.append(rows[column.name].cast(column.dtype))
        else:
            applies = column.nullable and (column.unit != "ns" or column in _RUN_TIME_COLUMNS)
            value = None if applies or not rows.height else 0
            filled = pl.repeat(value, rows.height, dtype=column.dtype, eager=True)
            columns.append(filled.alias(column.name))
    return pl.DataFrame(columns)


def _with_time_share_columns(table: pl.DataFrame) -> pl.DataFrame:
    work = table.filter(pl.col("kind").is_in(["kernel", "copy"]))["device_time_total"].sum()
    return table.with_columns(
        self_cpu_share=pl.col("self_cpu_time_total") / max(table["self_cpu_time_total"].sum(), 1),
        self_device_share=pl.col("self_device_time_total") / work if work else None,
        cpu_time=_average_per_run("cpu_time_total"),
        device_time=_average_per_run("device_time_total"),
    )


def _average_per_run(total_column: str) -> pl.Expr:
    """Returns a Polars expression: the total divided by the number of runs of known time."""
    return pl.col(total_column) / pl.when(pl.col("timed") > 0).then("timed").otherwise("count")
