"""What a program does only once, as it first runs: compiles, loads kernels, sets libraries up."""

from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.grouping import grouped
from selftime.analysis.slice_arguments import with_arguments
from selftime.analysis.slice_filters import filter_by_name, matches_name, slices_on, with_known_end
from selftime.analysis.steps.steady_steps import assessed_steps, is_within
from selftime.arrays import Flags, Ints
from selftime.nesting import NONE
from selftime.trace import Trace

TIMES_USUAL: Final = 10.0
"""A first call of this many times the usual one did something else besides: caches that are cold
and memory that is new make a call two or three times as long, not ten."""

LEAST_LATER: Final = 3
"""Later calls that tell what a call usually takes."""

MOST_COMPILING: Final = 2
"""Steps that may compile for the first time: one for the sizes met first, one for all others."""

FULL_QUEUE: Final = 512
"""Launches that a device has yet to do, from which on the next may have to wait: queues hold about
twice as many."""

_COLUMNS: Final = ("id", "name", "start", "extra", "first")


def time_of_it(trace: Trace) -> int:
    """What the steps spent on things done for the first time, in ns; 0 if it may be chance.

    A pause of the system may strike a first call: what later calls took beyond the usual is what
    chance may have done to the first ones.
    """
    rows = _far_calls(trace)
    first = int(rows.filter("first")["extra"].sum())
    chance = int(rows.filter(~pl.col("first"))["extra"].sum())
    return max(first - chance, 0)


def first_time(trace: Trace) -> pl.DataFrame:
    """Slices of the steps that did something for the first time: id, name, start, extra.

    `extra` is their time in ns beyond what the same takes later. No time is in two rows, but for
    time of several threads.
    """
    return _far_calls(trace).filter("first").drop("first")


@cached_per_trace
def _far_calls(trace: Trace) -> pl.DataFrame:
    """Slices that took far longer than their like, and whether each is the first of those."""
    steps = assessed_steps(trace).select("start", "end").sort("start")
    told = _told_by_name(trace, steps)
    start = slices_on(trace, "host", ended=True)["start"].to_numpy()
    windows = told.select("start", end=pl.col("start") + pl.col("extra"))
    asked = is_within(start, steps) & ~is_within(start, windows)
    parts = [told, _first_calls(trace, asked), _first_operators(trace, asked)]
    return pl.concat([part.select(_COLUMNS) for part in parts]).sort("start", "id")


def _told_by_name(trace: Trace, steps: pl.DataFrame) -> pl.DataFrame:
    """Compilation, and loading of kernels: the outermost slices, whatever their track."""
    ended = with_known_end(trace.slices)
    compiling = _outermost(filter_by_name(ended, names.is_compilation))
    at = np.searchsorted(steps["start"].to_numpy(), compiling["start"].to_numpy(), side="right")
    if np.unique(at).size > MOST_COMPILING:
        compiling = compiling.clear()  # again and again is not for the first time
    both = _outermost(pl.concat([compiling, filter_by_name(ended, names.is_kernel_loading)]))
    mine = is_within(both["start"].to_numpy(), steps)
    return both.filter(pl.Series(mine, dtype=pl.Boolean)).with_columns(
        extra="duration", first=pl.lit(value=True)
    )


def _outermost(slices: pl.DataFrame) -> pl.DataFrame:
    """Those that began after all before them had ended."""
    ordered = slices.sort("start", pl.col("duration").neg())
    reach = (pl.col("start") + pl.col("duration")).cum_max().shift(1).fill_null(-1)
    return ordered.filter(pl.col("start") >= reach)


def _first_calls(trace: Trace, asked: Flags) -> pl.DataFrame:
    """First calls of the device's runtime far longer than later ones, of those asked for.

    Of launches the first of each kernel, which loads its code. Calls that may wait for the device
    are left out: what they take is its work.
    """
    host = slices_on(trace, "host", ended=True)
    own = asked & host["category"].is_in(list(names.CALLS)).fill_null(value=False).to_numpy()
    own &= matches_name(host, lambda name: not names.may_wait(name))
    own[own] = ~_is_held(trace, host["start"].to_numpy()[own])
    calls = host.select("id", "name", "start", time="duration").filter(pl.Series(own))
    work = _launched(trace)
    first = np.full(trace.slices.height, NONE, np.int64)
    first[work["launch"].to_numpy()[::-1]] = work["id"].to_numpy()[::-1]
    place = pl.Series(first[calls["id"].to_numpy()])
    place = place.set(place == NONE, None).cast(pl.UInt32)
    told = calls.with_columns(what=trace.slices["name"].gather(place))
    return _in_excess(told, ["name"], ["name", "what"])


def _launched(trace: Trace) -> pl.DataFrame:
    """What calls launched: columns of `slices`."""
    work = trace.slices.select("id", "start", "duration", "launch")
    return work.filter(work["launch"].is_not_null())


def _is_held(trace: Trace, when: Ints) -> Flags:
    """Which calls, by their begin, found the device's queue so full that they had to wait."""
    work = with_known_end(_launched(trace))
    begun = np.sort(trace.slices["start"].gather(work["launch"]).to_numpy())
    done = np.sort((work["start"] + work["duration"]).to_numpy())
    queued = np.searchsorted(begun, when) - np.searchsorted(done, when)
    return np.asarray(queued >= FULL_QUEUE)


def _first_operators(trace: Trace, asked: Flags) -> pl.DataFrame:
    """Likewise of operators, and of optimizers, that took far longer themselves than later ones.

    Where operators compute on the host, those of the same sizes are compared.
    """
    host = slices_on(trace, "host", ended=True)
    optimizing = filter_by_name(host, names.is_optimizer)["id"]
    own = host["category"].is_in(list(names.OPERATORS)).fill_null(value=False).to_numpy()
    own = asked & (own | matches_name(host, names.is_optimizer))
    own &= matches_name(host, lambda name: not _is_wait(name))
    operators = host.select("id", "name", "start", time="self").filter(pl.Series(own))
    keys = ["name"]
    if not trace.device_args.height:
        operators = with_arguments(trace, "op_args", operators, "input_shapes")
        operators = operators.filter(
            pl.col("input_shapes").is_not_null() | pl.col("id").is_in(optimizing.implode())
        )
        keys = ["name", "input_shapes"]
    return _in_excess(operators, keys, keys)


def _is_wait(name: str) -> bool:
    return names.is_data_loading(name) or names.is_collective_call(name)


def _in_excess(slices: pl.DataFrame, keys: list[str], kinds: list[str]) -> pl.DataFrame:
    """Those far above what the same of `keys` usually take, in order of time.

    Added columns: extra, the time beyond that; first, whether each is the first of its `kinds`. The
    usual time is the median of those but the first; of too few nothing is known.
    """
    group, first = grouped(slices.select(keys))
    is_first = np.zeros(group.size, bool)
    is_first[first] = True
    later = pl.DataFrame({"group": group, "time": slices["time"]}).filter(pl.Series(~is_first))
    told = later.group_by("group").agg(usual=pl.col("time").median(), later=pl.len())
    told = told.filter(pl.col("later") >= LEAST_LATER)
    usual = np.full(first.size, np.nan)
    usual[told["group"].to_numpy()] = told["usual"].to_numpy()
    usual = usual[group]
    time = slices["time"].to_numpy()
    far = np.flatnonzero(time > TIMES_USUAL * usual)
    _, first = grouped(slices.select(kinds))
    extra = pl.Series(time[far] - usual[far], dtype=pl.Float64).round().cast(pl.Int64)
    return slices[pl.Series(far)].with_columns(extra=extra, first=np.isin(far, first))
