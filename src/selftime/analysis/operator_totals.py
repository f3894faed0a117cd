"""Sums the time, memory and modelled work of operators, with statistics of their runs."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_tree.parent_array_forests import is_outermost_of_key
from selftime.analysis.call_tree.self_times import SelfTimes, is_inside_entry_named
from selftime.analysis.device.device_work import slice_durations_without_impossible
from selftime.analysis.models.modelled_operator_work import common_peak_rates_of_devices
from selftime.analysis.models.operator_efficiency import (
    COLUMNS_OF_TOTAL_AMOUNTS,
    rows_with_efficiency_columns,
)
from selftime.analysis.operator_amounts import OperatorAmounts, operator_amounts
from selftime.analysis.operator_run_statistics import (
    EQUAL_ONLY_COLUMNS,
    RUN_TIME_COLUMN_NAMES,
    sum_runs_with_statistics,
    sums_of_known_values,
)
from selftime.analysis.per_trace_cache import cached_per_trace, cached_per_trace_and_options
from selftime.analysis.slice_filters import slices_on
from selftime.analysis.slice_grouping import (
    equal_row_group_numbers,
    input_shapes,
    map_distinct_names,
    python_stacks_of_operators,
    recorded_operator_argument,
)
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.array_types import Flags, Ints
from selftime.nesting import NO_SLICE
from selftime.schema import Column
from selftime.trace import Trace

_OUTSIDE_OPERATORS_ROW_NAME: Final = "[memory]"

_COLUMNS_OF_WORK_NULL_IF_UNKNOWN: Final = (*EQUAL_ONLY_COLUMNS, "flops")
"""Sums of what operators computed that are null, not 0, where nothing is known."""

_FLAG_TEXTS: Final = {True: "yes", False: "no", None: "unknown"}

_COLUMNS_OF_INTERMEDIATE_SUMS: Final = (
    Column("runs_of_known_end", pl.Int64, "count", "Number of runs whose end is recorded."),
    Column(
        "least_time_ps",
        pl.Int64,
        "count",
        "Least time in ps that the operations take at peak rate.",
    ),
    Column("rated_flops", pl.Int64, "count", "Operations of runs whose time is known."),
    Column("rated_bytes", pl.Int64, "count", "Bytes of runs whose time is known."),
    Column("models", pl.Int64, "count", "Runs with a FLOP model, including operators inside."),
    Column("own_models", pl.Int64, "count", "Runs with a FLOP model, without operators inside."),
    Column("modelled_time", pl.Int64, "count", "Time in runs with a FLOP model."),
    Column("rated_time", pl.Int64, "count", "Time by which rates are divided."),
    Column("tensor_core_time", pl.Int64, "count", "Time in kernels that use tensor cores."),
    Column(
        "unknown_core_time", pl.Int64, "count", "Time in kernels with unknown use of tensor cores."
    ),
    Column("matrix_runs", pl.Int64, "count", "Number of runs that multiply matrices."),
    Column("dtype_code", pl.Int64, "id", "Index of the dtype in `MODELLED_DTYPES`.", True),
    Column("peak", pl.Float64, "flops/s", "The device's peak rate in the row's dtype.", True),
)
"""Columns of sums from which rates and averages are computed."""


@dataclass(frozen=True, slots=True)
class OperatorSelection:
    """Which operators and other slices a table of totals counts."""

    within: str
    """Prefix of a slice's name: only that slice and slices inside it count. Empty: all count."""
    top_level: bool
    """Whether only slices inside no other count, and no device work by itself."""
    python: bool
    """Whether Python frames count."""


def operator_totals(
    trace: Trace,
    columns: tuple[Column, ...],
    keys: list[str],
    frames: int,
    selection: OperatorSelection,
) -> pl.DataFrame:
    """Returns self and total time of operators, calls, annotations, kernels and copies.

    Args:
        trace: The trace.
        columns: The columns of totals to return.
        keys: What operators are grouped by beyond their name: shape, type, stack, line, overload.
        frames: The number of innermost frames by which stacks are compared.
        selection: Which slices count.
    """
    amounts = operator_amounts(trace, with_python_frames=selection.python)
    host = amounts.host
    inside = is_inside_entry_named(host, selection.within) if selection.within else None
    key_values = _group_keys(trace, amounts.ids, keys, frames)
    is_listed = _is_row_listed(host, inside, selection.top_level)
    parts = [_host_slice_rows_by_keys(trace, selection, key_values, is_listed)]
    if trace.memory.height and is_listed is None:
        parts.append(_row_outside_operators(host, key_values))
    if not selection.top_level:
        parts.append(_device_rows(trace, amounts, inside))
    table = pl.concat(_with_all_columns(part, columns) for part in parts)
    return rows_with_efficiency_columns(
        _with_time_share_columns(table),
        common_peak_rates_of_devices(trace),
        is_device_time=trace.device_args.height > 0,
    )


def _is_row_listed(host: SelfTimes, is_inside: Flags | None, top_level: bool) -> Flags | None:
    if not top_level:
        return is_inside
    roots: Flags = host.parent == NO_SLICE
    return roots if is_inside is None else np.logical_and(roots, is_inside)


def _group_keys(trace: Trace, ids: pl.Series, by: list[str], frames: int) -> dict[str, pl.Series]:
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


def _host_slice_rows_by_keys(
    trace: Trace,
    selection: OperatorSelection,
    keys: dict[str, pl.Series],
    is_listed: Flags | None,
) -> pl.DataFrame:
    """Returns the rows of host slices; a key that is the same in all of them makes no more rows.

    Such are the shapes and stacks of a recording without them.
    """
    same = {name: values for name, values in keys.items() if values.n_unique() == 1}
    others = {name: values for name, values in keys.items() if name not in same}
    if others or is_listed is not None:
        amounts = operator_amounts(trace, with_python_frames=selection.python)
        rows = _host_slice_rows(trace, amounts, others, is_listed)
    else:
        rows = _host_slice_rows_by_name(trace, selection)
    return rows.with_columns(
        values.new_from_index(0, rows.height).alias(name) for name, values in same.items()
    )


@cached_per_trace_and_options
def _host_slice_rows_by_name(trace: Trace, selection: OperatorSelection) -> pl.DataFrame:
    """Returns the rows of all host slices by their name and kind alone."""
    amounts = operator_amounts(trace, with_python_frames=selection.python)
    return _host_slice_rows(trace, amounts, {}, None)


def _host_slice_rows(
    trace: Trace,
    amounts: OperatorAmounts,
    keys: dict[str, pl.Series],
    is_listed: Flags | None,
) -> pl.DataFrame:
    host = amounts.host
    told_apart = pl.DataFrame({"name": host.name, "kind": amounts.kind, **keys})
    group = equal_row_group_numbers(told_apart)
    outer = is_outermost_of_key(host.parent, group)
    unknown = ~amounts.is_ended
    device = trace.device_args.height > 0
    sums: dict[str, Any] = {
        "runs_of_known_end": amounts.is_ended,
        "self_cpu_time_total": pl.Series(host.self_cpu).set(unknown, None),
        "cpu_time_total": pl.Series(np.where(outer, host.cpu, 0)).set(unknown, None),
        "self_device_time_total": host.self_device,
        "device_time_total": np.where(outer, host.device, 0),
        **(_operator_memory_columns(host, outer) if trace.memory.height else {}),
    }
    runs = {"cpu": pl.Series(host.cpu).set(unknown, None)}
    if device:
        runs["device"] = pl.Series(host.device)
    some = {name: much for name, much in sums.items() if not _are_all_zero(much)}
    events = told_apart.with_columns(group=group, **some, **runs)
    if is_listed is not None:
        events = events.filter(pl.Series(is_listed))
    rows = sum_runs_with_statistics(events, told_apart.columns, list(some), list(runs))
    zeros = [pl.lit(0, pl.Int64).alias(name) for name in sums if name not in some]
    work = _work_of_groups(amounts, group, outer, is_listed)
    filled = [name for name in work.columns if name not in _COLUMNS_OF_WORK_NULL_IF_UNKNOWN]
    return (
        rows.with_columns(zeros)
        .join(work, on="group", how="left", maintain_order="left")
        .with_columns(
            pl.col(filled).fill_null(0),
            rated_time=pl.col("device_time_total" if device else "cpu_time_total").fill_null(0),
        )
    )


def _work_of_groups(
    amounts: OperatorAmounts, group: Ints, is_outermost: Flags, is_listed: Flags | None
) -> pl.DataFrame:
    """Returns the sums of what the entries of each group computed, one row per group with any."""
    at = amounts.entry.to_numpy()
    counts = pl.Series(is_outermost[at])
    work = amounts.work.with_columns(
        pl.when(counts).then(name).otherwise(0).alias(name) for name in COLUMNS_OF_TOTAL_AMOUNTS
    ).with_columns(group=group[at])
    if is_listed is not None:
        work = work.filter(pl.Series(is_listed[at]))
    return work.group_by("group").agg(sums_of_known_values(amounts.work.columns))


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
    lost = host.memory_outside_slices
    if not lost.height:
        return pl.DataFrame()
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
    return pl.DataFrame(row)


def _device_rows(trace: Trace, amounts: OperatorAmounts, is_inside: Flags | None) -> pl.DataFrame:
    if is_inside is None:
        return _rows_of_all_device_work(trace)
    launchers = amounts.ids.filter(pl.Series(is_inside))
    return _rows_of_device_work(trace, _device_work_launched_by(trace, launchers))


@cached_per_trace
def _rows_of_all_device_work(trace: Trace) -> pl.DataFrame:
    return _rows_of_device_work(trace, slices_on(trace, "device"))


def _device_work_launched_by(trace: Trace, launchers: pl.Series) -> pl.DataFrame:
    launched = trace.device_args
    mine = launched["id"].filter(launched["operator"].is_in(launchers.implode()))
    return slices_on(trace, "device").filter(pl.col("id").is_in(mine.implode()))


def _rows_of_device_work(trace: Trace, work: pl.DataFrame) -> pl.DataFrame:
    """Returns one row for each name of a kernel or copy; device-side annotations are left out."""
    time = slice_durations_without_impossible(trace).gather(work["id"])
    kind = map_distinct_names(
        work["category"], lambda category: "copy" if category in names.COPY_CATEGORIES else "kernel"
    )
    uses = map_distinct_names(work["name"], lambda n: _FLAG_TEXTS[names.uses_tensor_cores(n)])
    is_kernel = kind == "kernel"
    told_apart = pl.DataFrame({"name": work["name"], "kind": kind})
    sums = {
        "runs_of_known_end": time.is_not_null(),
        "self_device_time_total": time,
        "device_time_total": time,
        "tensor_core_time": time * (is_kernel & (uses == "yes")),
        "unknown_core_time": time * (is_kernel & (uses == "unknown")),
    }
    events = told_apart.with_columns(group=equal_row_group_numbers(told_apart), **sums, device=time)
    return sum_runs_with_statistics(events, told_apart.columns, list(sums), ["device"])


def _with_all_columns(rows: pl.DataFrame, columns: tuple[Column, ...]) -> pl.DataFrame:
    """Returns the rows with all columns of totals; missing times become 0, other values null."""
    filled = []
    for column in (*columns, *_COLUMNS_OF_INTERMEDIATE_SUMS):
        if column.name in rows.columns:
            filled.append(rows[column.name].cast(column.dtype))
        else:
            applies = column.nullable and (
                column.unit != "ns" or column.name in RUN_TIME_COLUMN_NAMES
            )
            value = None if applies or not rows.height else 0
            missing = pl.repeat(value, rows.height, dtype=column.dtype, eager=True)
            filled.append(missing.alias(column.name))
    return pl.DataFrame(filled)


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
    return pl.col(total_column) / pl.when(pl.col("runs_of_known_end") > 0).then(
        "runs_of_known_end"
    ).otherwise("count")
