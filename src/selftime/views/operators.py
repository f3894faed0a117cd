"""Operators by time: what torch's profiler prints, from any trace, and how well they do."""

from collections.abc import Callable
from typing import Annotated, Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_tree.self_times import SelfTimes, outermost, self_times
from selftime.analysis.call_tree.self_times import within as inside_of
from selftime.analysis.device.work import device_durations
from selftime.analysis.grouping import (
    group_numbers,
    input_shapes,
    recoded,
    stacks,
    told,
)
from selftime.analysis.models.efficiency import EFFICIENCY, amounts, rates
from selftime.analysis.models.flops import flops_of
from selftime.analysis.models.modelled import TensorCores, modelled, peaks_in, tensor_cores
from selftime.analysis.sites import SITE, sites
from selftime.analysis.slice_filters import slices_on
from selftime.arrays import Flags
from selftime.errors import UsageError
from selftime.nesting import NONE
from selftime.schema import Column, Name
from selftime.trace import Trace
from selftime.views.base import Joined, Top, view

_BY: Final = ("name", "shape", "type", "stack", "line", "overload")
_KINDS: Final = {"cpu_op": "operator", "user_annotation": "annotation", "python_function": "frame"}
_CALL: Final = "call"
_MEMORY_ROW: Final = "[memory]"

_KEYS: Final = (
    Column("name", Name, "name", "The operator, annotation, runtime call, or kernel."),
    Column(
        "kind", pl.String, "name", "One of operator, annotation, frame, call, kernel, copy, memory."
    ),
    Column("input_shapes", pl.String, "text", "Input sizes, if by shape; `[]` if untold.", True),
    Column("input_types", pl.String, "text", "Dtypes of the inputs, if grouped by type.", True),
    Column(
        "stack",
        pl.String,
        "text",
        "Python frames, innermost first, if by stack; null is the row of those not known.",
        True,
    ),
    Column("file", pl.String, "text", "Source file, if grouped by line.", True),
    Column("line", pl.Int32, "id", "The operator's own source line, if by line.", True),
    Column("function", pl.String, "name", "The function the line is in, if by line.", True),
    Column("how", pl.String, "name", "How the line is known, if grouped by line.", True),
    Column("overload", pl.String, "name", "The overload, if grouped by overload.", True),
)
_TIMES: Final = (
    Column("count", pl.Int64, "count", "How many times it ran."),
    Column(
        "self_cpu_time_total", pl.Int64, "ns", "Host time less that of the slices within.", True
    ),
    Column("self_cpu_share", pl.Float64, "ratio", "Share of the sum of self CPU time.", True),
    Column(
        "self_device_time_total",
        pl.Int64,
        "ns",
        "Device time that it launched itself; of a call, in no operator.",
        True,
    ),
    Column("self_device_share", pl.Float64, "ratio", "Share of the sum of device time.", True),
    Column("cpu_time_total", pl.Int64, "ns", "Host time; within itself it counts once.", True),
    Column(
        "cpu_time", pl.Float64, "ns", "Host time of a run whose end is known, on average.", True
    ),
    Column("device_time_total", pl.Int64, "ns", "Device time launched by it and within.", True),
    Column("device_time", pl.Float64, "ns", "Device time of a run, on average.", True),
    Column("self_cpu_memory_usage", pl.Int64, "bytes", "Host bytes it kept itself.", True),
    Column("cpu_memory_usage", pl.Int64, "bytes", "Host bytes it and those within kept.", True),
    Column("self_device_memory_usage", pl.Int64, "bytes", "Device bytes it kept itself.", True),
    Column("device_memory_usage", pl.Int64, "bytes", "Device bytes kept with those within.", True),
    Column("flops", pl.Int64, "flops", "Operations as torch counts them for its table.", True),
)
_SPREAD: Final = tuple(
    Column(f"{side}_time_{figure}", pl.Float64, "ns", f"{words} {what} of a run.", True)
    for side, what in (("cpu", "host time"), ("device", "device time"))
    for figure, words in (
        ("min", "The least"),
        ("median", "The median of the"),
        ("p95", "The 95th percentile of the"),
        ("max", "The greatest"),
        ("std", "The standard deviation of the"),
    )
)
_COLUMNS: Final = (*_KEYS, *_TIMES, *EFFICIENCY, *_SPREAD)
_ALIASES: Final = {"calls": "count", "total": "cpu_time_total", "self": "self_cpu_time_total"}


@view(
    *_COLUMNS,
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
    by: Annotated[str, Joined(_BY)] = "name",
    frames: int = 5,
    within: str = "",
    top_level: bool = False,
    python: bool = False,
    sort: str = "",
    top: Top = 0,
) -> pl.DataFrame:
    """Self and total time of every operator, on host and device, with calls, memory, efficiency.

    `by` says what rows are told apart by beyond the name: shape, type (dtypes of the inputs), stack
    (its innermost `frames`), line, overload; several are joined by `+`. By line, device time
    counts to the operator's own line; in `lines` to that of the call within it, should that be
    another. `within` keeps what ran inside slices whose name begins so, `top_level` what ran
    inside no other. `python` adds Python frames, as torch's table has them where stacks were
    recorded. `sort` takes any column, and torch's own sort keys; by default self device time,
    or self CPU time where the trace has no device work. `top` keeps the first rows; 0 keeps
    all.

    Operations and bytes are those of models of operators, from the shapes and dtypes of their
    inputs: each is counted where it is computed, so that the columns `self_` add up. They are
    related to device time, or to host time where the trace has no device work; what no model covers
    makes a rate a lower bound.
    """
    keys = by.split("+")
    if "stack" in keys and frames < 1:
        raise UsageError(f"`frames` is `{frames}`; write 1 or more frames to tell stacks apart by")
    host = self_times(trace, python=python)
    cores = tensor_cores(trace, host)
    inside = inside_of(host, within) if within else None
    rows = _host_rows(
        trace, host, cores, _keys(trace, host, keys, frames), _chosen(host, inside, top_level)
    )
    table = rows if top_level else pl.concat([rows, _device_rows(trace, inside, host)])
    device = trace.device_args.height > 0
    table = rates(_with_shares(table), peaks_in(trace), device=device).select(
        pl.col(column.name).cast(column.dtype) for column in _COLUMNS
    )
    column = _sort_column(sort) if sort else _default_sort(table)
    descending = table.schema[column] not in (pl.String, pl.Categorical)
    table = table.sort(
        column, "name", descending=[descending, False], nulls_last=True, maintain_order=True
    )
    return table.head(top) if top > 0 else table


def _chosen(host: SelfTimes, inside: Flags | None, top_level: bool) -> Flags | None:
    if not top_level:
        return inside
    roots: Flags = host.parent == NONE
    return roots if inside is None else np.logical_and(roots, inside)


def _sort_column(sort: str) -> str:
    name = _ALIASES.get(sort, sort)
    for device in ("cuda", "xpu", "privateuse1", "hip"):
        name = name.replace(device, "device")
    known = [column.name for column in _COLUMNS]
    if name not in known:
        raise UsageError(
            f"`operators` cannot be sorted by `{sort}`; choose one of {', '.join(known)}"
        )
    return name


def _default_sort(table: pl.DataFrame) -> str:
    on_device = table["self_device_time_total"].sum() > 0
    return "self_device_time_total" if on_device else "self_cpu_time_total"


def _keys(trace: Trace, host: SelfTimes, by: list[str], frames: int) -> dict[str, pl.Series]:
    ids = pl.Series("id", host.id, dtype=pl.UInt32)
    keys: dict[str, pl.Series] = {}
    if "shape" in by:
        keys["input_shapes"] = input_shapes(trace, ids)
    if "type" in by:
        keys["input_types"] = told(trace, ids, "input_types")
    if "stack" in by:
        keys["stack"] = stacks(trace, ids, frames)
    if "overload" in by:
        keys["overload"] = told(trace, ids, "overload")
    if "line" in by:
        lines = sites(trace, ids)
        keys |= {name: lines[name] for name in SITE}
    return keys


def _host_rows(
    trace: Trace,
    host: SelfTimes,
    cores: TensorCores,
    keys: dict[str, pl.Series],
    chosen: Flags | None,
) -> pl.DataFrame:
    kind = recoded(host.category, lambda category: _KINDS.get(category, _CALL))
    told_apart = pl.DataFrame({"name": host.name, "kind": kind, **keys})
    group = group_numbers(told_apart)
    outer = outermost(host.parent, group)
    ids = pl.Series("id", host.id, dtype=pl.UInt32)
    unknown = trace.slices["duration"].gather(ids).is_null()
    device = trace.device_args.height > 0
    sums: dict[str, Any] = {
        "timed": ~unknown,
        "self_cpu_time_total": pl.Series(host.self_cpu).set(unknown, None),
        "cpu_time_total": pl.Series(np.where(outer, host.cpu, 0)).set(unknown, None),
        "self_device_time_total": host.self_device,
        "device_time_total": np.where(outer, host.device, 0),
        "flops": flops_of(trace, host.name, ids),
        **(_memory(host, outer) if trace.memory.height else {}),
        **amounts(host, modelled(trace, host, cores), cores, outer, device=device),
    }
    runs = {
        "cpu": pl.Series(host.cpu).set(unknown, None),
        **({"device": pl.Series(host.device)} if device else {}),
    }
    some = {name: much for name, much in sums.items() if not _is_nothing(much)}
    events = told_apart.with_columns(group=group, **some, **runs)
    if chosen is not None:
        events = events.filter(pl.Series(chosen))
    rows = _grouped(events, told_apart.columns, list(some), list(runs))
    rows = rows.with_columns(pl.lit(0, pl.Int64).alias(name) for name in sums if name not in some)
    rows = _declared(rows)
    lost = _unclaimed(host, keys) if trace.memory.height and chosen is None else None
    return rows if lost is None else pl.concat([rows, lost])


def _is_nothing(amounts: Any) -> bool:
    """Whether amounts are known, and all are zero: so is every sum of them."""
    return isinstance(amounts, np.ndarray) and not amounts.any()


def _memory(host: SelfTimes, outer: Flags) -> dict[str, Any]:
    return {
        "self_cpu_memory_usage": host.memory["self_cpu"],
        "cpu_memory_usage": np.where(outer, host.memory["cpu"], 0),
        "self_device_memory_usage": host.memory["self_device"],
        "device_memory_usage": np.where(outer, host.memory["device"], 0),
    }


def _unclaimed(host: SelfTimes, keys: dict[str, pl.Series]) -> pl.DataFrame:
    """Memory that no operator allocated or released, as one row."""
    lost = host.unclaimed
    if not lost.height:
        return _declared(pl.DataFrame())
    row = {
        "name": [_MEMORY_ROW],
        "kind": ["memory"],
        "count": [lost.height],
        **({"input_shapes": ["[]"]} if "input_shapes" in keys else {}),
        **{
            f"{own}{side}_memory_usage": [int(lost[side].sum())]
            for own in ("self_", "")
            for side in ("cpu", "device")
        },
    }
    return _declared(pl.DataFrame(row))


def _device_rows(trace: Trace, inside: Flags | None, host: SelfTimes) -> pl.DataFrame:
    """Kernels and copies under their own names; device-side annotations are no work."""
    work = slices_on(trace, "device")
    if inside is not None:
        launchers = pl.Series(host.id[inside], dtype=pl.UInt32)
        mine = trace.device_args["id"].filter(
            trace.device_args["operator"].is_in(launchers.implode())
        )
        work = work.filter(pl.col("id").is_in(mine.implode()))
    time = device_durations(trace).gather(work["id"])
    kind = recoded(
        work["category"], lambda category: "copy" if category in names.COPIES else "kernel"
    )
    uses = recoded(work["name"], lambda name: _ANSWERS[names.uses_tensor_cores(name)])
    is_kernel = kind == "kernel"
    told_apart = pl.DataFrame({"name": work["name"], "kind": kind})
    sums = {
        "timed": time.is_not_null(),
        "self_device_time_total": time,
        "device_time_total": time,
        "tensor": time * (is_kernel & (uses == "yes")),
        "untold": time * (is_kernel & (uses == "unknown")),
    }
    events = told_apart.with_columns(group=group_numbers(told_apart), **sums, device=time)
    return _declared(_grouped(events, told_apart.columns, list(sums), ["device"]))


_ANSWERS: Final = {True: "yes", False: "no", None: "unknown"}
_ONE: Final = ("dtype_place", "peak")
"""What is of the row if it is the same for all that tell it, else of none."""
_SPREADS: Final[dict[str, Callable[[pl.Expr], pl.Expr]]] = {
    "min": pl.Expr.min,
    "median": pl.Expr.median,
    "p95": lambda runs: runs.quantile(0.95, "linear"),
    "max": pl.Expr.max,
    "std": lambda runs: runs.std(ddof=0),
}


def _grouped(
    events: pl.DataFrame, keys: list[str], sums: list[str], runs: list[str]
) -> pl.DataFrame:
    """Sums over what is known, unknown where nothing is; and how the runs are spread."""
    return events.group_by("group", maintain_order=True).agg(
        pl.col(keys).first(),
        pl.len().alias("count"),
        *(_sum(name) for name in sums if name not in _ONE),
        *(_same(name) for name in sums if name in _ONE),
        *(
            spread(pl.col(run)).alias(f"{run}_time_{figure}")
            for run in runs
            for figure, spread in _SPREADS.items()
        ),
    )


def _sum(name: str) -> pl.Expr:
    column = pl.col(name)
    return pl.when(column.count() > 0).then(column.sum()).alias(name)


def _same(name: str) -> pl.Expr:
    column = pl.col(name)
    return pl.when(column.min() == column.max()).then(column.min()).alias(name)


_HELPERS: Final = (
    Column("timed", pl.Int64, "count", "Runs whose end is known."),
    Column("least", pl.Int64, "count", "Least time by operations, in ps."),
    Column("rated_flops", pl.Int64, "count", "Operations whose time is known."),
    Column("rated_bytes", pl.Int64, "count", "Bytes whose time is known."),
    Column("models", pl.Int64, "count", "Operators with a model, it and within."),
    Column("own_models", pl.Int64, "count", "Operators with a model, itself."),
    Column("covered", pl.Int64, "count", "Time with a model."),
    Column("time", pl.Int64, "count", "Time that rates relate to."),
    Column("tensor", pl.Int64, "count", "Time on tensor cores."),
    Column("untold", pl.Int64, "count", "Time in kernels that do not tell of tensor cores."),
    Column("matrix", pl.Int64, "count", "Runs that multiply matrices."),
    Column("dtype_place", pl.Int64, "id", "The dtype's place.", True),
    Column("peak", pl.Float64, "flops/s", "The peak of its operations.", True),
)
"""Sums that rates and averages are made of."""


def _declared(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with every declared column: times that do not apply are 0, the rest unknown."""
    columns = []
    for column in (*_KEYS, *_TIMES, *EFFICIENCY, *_SPREAD, *_HELPERS):
        if column.name in rows.columns:
            columns.append(rows[column.name].cast(column.dtype))
        else:
            applies = column.nullable and (column.unit != "ns" or column in _SPREAD)
            value = None if applies or not rows.height else 0
            columns.append(
                pl.repeat(value, rows.height, dtype=column.dtype, eager=True).alias(column.name)
            )
    return pl.DataFrame(columns)


def _with_shares(table: pl.DataFrame) -> pl.DataFrame:
    work = table.filter(pl.col("kind").is_in(["kernel", "copy"]))["device_time_total"].sum()
    host = table["self_cpu_time_total"].sum()
    return table.with_columns(
        self_cpu_share=pl.col("self_cpu_time_total") / max(host, 1),
        self_device_share=pl.col("self_device_time_total") / work if work else None,
        cpu_time=_average("cpu_time_total"),
        device_time=_average("device_time_total"),
    )


def _average(total: str) -> pl.Expr:
    """A total by the runs whose time is known."""
    runs = pl.when(pl.col("timed") > 0).then("timed").otherwise("count")
    return pl.col(total) / runs
