"""Finds work that a program does only once, such as compiling and loading kernels."""

from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import slices_with_arguments
from selftime.analysis.slice_filters import filter_by_name, matches_name, slices_on, with_known_end
from selftime.analysis.slice_grouping import group_and_first_row_of_rows
from selftime.analysis.steps.steady_steps import is_instant_in_windows, steps_with_counted_flags
from selftime.array_types import Flags, Ints
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

MIN_FIRST_CALL_SLOWDOWN: Final = 10.0
"""Ratio to later calls from which a slow first call counts as first-time work; cold caches alone
make a call only two or three times as long."""

MIN_LATER_CALLS_FOR_USUAL_DURATION: Final = 3
"""Smallest number of later calls whose median is taken as the usual duration of a call."""

MAX_COMPILING_STEPS: Final = 2
"""Largest number of steps that compile for compilation to count as first-time work: one step for
the first sizes, one for all other sizes."""

MIN_LAUNCHES_IN_FULL_QUEUE: Final = 512
"""Number of queued launches from which the next launch may have to wait for the device's queue."""

_SLOW_CALL_COLUMNS: Final = ("id", "name", "start", "extra", "first")
"""Columns of the table of slow first calls; `extra` is the time in ns beyond a usual call."""


def first_time_work_ns(trace: Trace) -> int:
    """Returns the time in ns that steps spent on work done only once; 0 if it may be noise.

    A pause of the system may fall into a first call: the excess of later calls is subtracted.
    """
    rows = _unusually_slow_slices(trace)
    first = int(rows.filter("first")["extra"].sum())
    chance = int(rows.filter(~pl.col("first"))["extra"].sum())
    return max(first - chance, 0)


def first_time_work_slices(trace: Trace) -> pl.DataFrame:
    """Returns slices of work done only once within steps, with their extra time in ns.

    Columns: id, name, start, extra: the time in ns beyond that of later calls. No time of a thread
    is in two rows.
    """
    return _unusually_slow_slices(trace).filter("first").drop("first")


@cached_per_trace
def _unusually_slow_slices(trace: Trace) -> pl.DataFrame:
    """Returns slices far slower than equal ones, with a flag for the first slice of its name."""
    steps = steps_with_counted_flags(trace).select("start", "end").sort("start")
    told = _compilation_and_kernel_loading_slices(trace, steps)
    start = slices_on(trace, "host", ended=True)["start"].to_numpy()
    windows = told.select("start", end=pl.col("start") + pl.col("extra"))
    asked = is_instant_in_windows(start, steps) & ~is_instant_in_windows(start, windows)
    parts = [told, _slow_runtime_calls(trace, asked), _slow_operators(trace, asked)]
    return pl.concat([part.select(_SLOW_CALL_COLUMNS) for part in parts]).sort("start", "id")


def _compilation_and_kernel_loading_slices(trace: Trace, steps: pl.DataFrame) -> pl.DataFrame:
    """Returns the outermost slices of compilation and of kernel loading in the steps."""
    ended = with_known_end(trace.slices)
    compiling = _outermost_slices(filter_by_name(ended, names.is_compilation))
    at = np.searchsorted(steps["start"].to_numpy(), compiling["start"].to_numpy(), side="right")
    if max(np.unique(at).size, _compiling_steps_of_run(trace)) > MAX_COMPILING_STEPS:
        compiling = compiling.clear()  # again and again is not for the first time
    both = _outermost_slices(pl.concat([compiling, filter_by_name(ended, names.is_kernel_loading)]))
    mine = is_instant_in_windows(both["start"].to_numpy(), steps)
    return both.filter(pl.Series(mine, dtype=pl.Boolean)).with_columns(
        extra="duration", first=pl.lit(value=True)
    )


def may_compile_in_later_steps(trace: Trace) -> bool:
    """Returns whether all recorded steps compile, and nothing tells of others."""
    steps = steps_with_counted_flags(trace).select("start", "end").sort("start")
    compiling = filter_by_name(trace.slices, names.is_compilation)
    compiled = np.searchsorted(steps["start"].to_numpy(), compiling["start"].to_numpy(), "right")
    is_all = np.isin(np.arange(1, steps.height + 1), compiled).all()
    is_told = trace.run.segments["kind"].drop_nulls().len() > steps.height
    return bool(is_all and not is_told and steps.height <= MAX_COMPILING_STEPS)


def _compiling_steps_of_run(trace: Trace) -> int:
    """Returns in how many steps the run compiled, by its ledger; 0 without one."""
    steps = trace.run.segments
    return steps.filter(pl.col("kind").is_not_null() & (pl.col("compile") > 0)).height


def _outermost_slices(slices: pl.DataFrame) -> pl.DataFrame:
    """Returns the slices that began after all earlier slices had ended."""
    ordered = slices.sort("start", pl.col("duration").neg())
    reach = (pl.col("start") + pl.col("duration")).cum_max().shift(1).fill_null(-1)
    return ordered.filter(pl.col("start") >= reach)


def _slow_runtime_calls(trace: Trace, considered: Flags) -> pl.DataFrame:
    """Returns calls of the device's runtime (CUDA) that took far longer than later equal calls.

    For launches the first of each kernel, which loads its code. Calls that may wait for the device
    are left out.
    """
    host = slices_on(trace, "host", ended=True)
    own = (
        considered
        & host["category"]
        .is_in(list(names.RUNTIME_CALL_CATEGORIES))
        .fill_null(value=False)
        .to_numpy()
    )
    own &= matches_name(host, lambda name: not names.may_block_host(name))
    own[own] = ~_was_queue_full_at_calls(trace, host["start"].to_numpy()[own])
    calls = host.select("id", "name", "start", time="duration").filter(pl.Series(own))
    work = _launched_device_slices(trace)
    first = np.full(trace.slices.height, NO_SLICE, np.int64)
    first[work["launch"].to_numpy()[::-1]] = work["id"].to_numpy()[::-1]
    place = pl.Series(first[calls["id"].to_numpy()])
    place = place.set(place == NO_SLICE, None).cast(pl.UInt32)
    told = calls.with_columns(what=trace.slices["name"].gather(place))
    return _slices_slower_than_usual(told, ["name"], ["name", "what"])


def _launched_device_slices(trace: Trace) -> pl.DataFrame:
    """Returns id, start, duration (ns) of device work, and the slice id of the launching call."""
    work = trace.slices.select("id", "start", "duration", "launch")
    return work.filter(work["launch"].is_not_null())


def _was_queue_full_at_calls(trace: Trace, call_starts: Ints) -> Flags:
    """Returns for each call whether the device's launch queue was full when the call began."""
    work = with_known_end(_launched_device_slices(trace))
    begun = np.sort(trace.slices["start"].gather(work["launch"]).to_numpy())
    done = np.sort((work["start"] + work["duration"]).to_numpy())
    queued = np.searchsorted(begun, call_starts) - np.searchsorted(done, call_starts)
    return np.asarray(queued >= MIN_LAUNCHES_IN_FULL_QUEUE)


def _slow_operators(trace: Trace, considered: Flags) -> pl.DataFrame:
    """Returns operators and optimizer steps with far more self time than their later calls.

    Without a device, operators on inputs of the same sizes are compared.
    """
    host = slices_on(trace, "host", ended=True)
    optimizing = filter_by_name(host, names.is_optimizer_annotation)["id"]
    own = host["category"].is_in(list(names.OPERATOR_CATEGORIES)).fill_null(value=False).to_numpy()
    own = considered & (own | matches_name(host, names.is_optimizer_annotation))
    own &= matches_name(host, lambda name: not _is_expected_wait(name))
    operators = host.select("id", "name", "start", time="self").filter(pl.Series(own))
    keys = ["name"]
    if not trace.device_args.height:
        operators = slices_with_arguments(trace, "op_args", operators, "input_shapes")
        operators = operators.filter(
            pl.col("input_shapes").is_not_null() | pl.col("id").is_in(optimizing.implode())
        )
        keys = ["name", "input_shapes"]
    return _slices_slower_than_usual(operators, keys, keys)


def _is_expected_wait(name: str) -> bool:
    """Returns whether a host slice loads data or runs a collective, which both wait normally."""
    return names.is_data_loading(name) or names.is_collective_call(name)


def _slices_slower_than_usual(
    slices: pl.DataFrame, usual_keys: list[str], first_keys: list[str]
) -> pl.DataFrame:
    """Returns slices over 10 times as long as the median of slices with equal `usual_keys`.

    Added columns: extra, the time beyond the usual in ns; first, whether it is the first of its
    `first_keys`. The usual time is the median without the first; with too few slices there is none.
    """
    group, first = group_and_first_row_of_rows(slices.select(usual_keys))
    is_first = np.zeros(group.size, bool)
    is_first[first] = True
    later = pl.DataFrame({"group": group, "time": slices["time"]}).filter(pl.Series(~is_first))
    told = later.group_by("group").agg(usual=pl.col("time").median(), later=pl.len())
    told = told.filter(pl.col("later") >= MIN_LATER_CALLS_FOR_USUAL_DURATION)
    usual = np.full(first.size, np.nan)
    usual[told["group"].to_numpy()] = told["usual"].to_numpy()
    usual = usual[group]
    time = slices["time"].to_numpy()
    far = np.flatnonzero(time > MIN_FIRST_CALL_SLOWDOWN * usual)
    _, first = group_and_first_row_of_rows(slices.select(first_keys))
    extra = pl.Series(time[far] - usual[far], dtype=pl.Float64).round().cast(pl.Int64)
    return slices[pl.Series(far)].with_columns(extra=extra, first=np.isin(far, first))
