"""Reads the program behind a trace."""

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.replay.device import Device
from selftime.advice.replay.parts import serial_parts
from selftime.advice.replay.program import NOTHING, Entries, Program
from selftime.advice.replay.waiting import waiting_of
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.idle.gaps import placed_work
from selftime.analysis.main_thread import main_thread
from selftime.analysis.slice_filters import slices_on
from selftime.analysis.steps.steady_steps import assessed_steps
from selftime.arrays import Ints
from selftime.trace import Trace


@cached_per_trace
def program_of(trace: Trace) -> Program:
    """The program that a trace recorded."""
    work = _ordered(trace)
    calls = _entries(trace, work)
    return _assembled(trace, calls, work)


def _ordered(trace: Trace) -> pl.DataFrame:
    """Device work with its stream's number; what was launched before lies at its stream's begin."""
    work = placed_work(trace).select("id", "start", "end", "launch", "launched", "device", "stream")
    return work.with_columns(number=pl.struct("device", "stream").rank("dense").cast(pl.Int64) - 1)


def _entries(trace: Trace, work: pl.DataFrame) -> pl.DataFrame:
    """Calls and the ends of steps, in order of time: id, start, end, thread, mark."""
    host = slices_on(trace, "host", ended=True)
    launches = np.zeros(trace.slices.height, bool)
    launches[work["launch"].drop_nulls().to_numpy()] = True
    own = host["category"].is_in(list(names.CALLS)) | pl.Series(launches[host["id"].to_numpy()])
    host = host.select("id", "track", "start", "duration").filter(own)
    calls = host.select(
        pl.col("id").cast(pl.Int64),
        "start",
        end=pl.col("start") + pl.col("duration"),
        thread=trace.tracks["thread"].gather(host["track"]).cast(pl.Int64),
        mark=pl.lit(NOTHING, pl.Int64),
    )
    steps = assessed_steps(trace)
    marks = pl.DataFrame(
        {
            "id": pl.repeat(NOTHING, steps.height, dtype=pl.Int64, eager=True),
            "start": steps["end"],
            "end": steps["end"],
            "thread": pl.repeat(main_thread(trace) or 0, steps.height, dtype=pl.Int64, eager=True),
            "mark": pl.int_range(steps.height, dtype=pl.Int64, eager=True),
        }
    )
    every = pl.concat([calls, marks])
    keys = (every[key].to_numpy() for key in ("start", "end", "mark"))
    return every[pl.Series(_order(*keys))]


def _order(start: Ints, end: Ints, mark: Ints) -> Ints:
    """By start, end and mark; starts are nearly in order, and few are equal."""
    order = np.argsort(start, kind="stable")
    same = np.diff(start[order]) == 0
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    rows = order[tied]
    order[tied] = rows[np.lexsort((mark[rows], end[rows], start[rows]))]
    return order


def _assembled(trace: Trace, calls: pl.DataFrame, work: pl.DataFrame) -> Program:
    threads = calls["thread"].unique().to_list()
    number = serial_parts(trace, threads)
    part = calls["thread"].replace_strict(number, return_dtype=pl.Int64).to_numpy()
    start, end = calls["start"].to_numpy(), calls["end"].to_numpy()
    begin = _begin(trace, start)
    placed = _placed(calls, work)
    works = np.bincount(placed["entry"].to_numpy(), minlength=start.size)
    last = np.cumsum(works)
    first = last - works
    device = Device(placed, start, begin)
    waiting = waiting_of(trace, calls, device, last)
    return Program(
        entries=Entries(
            id=calls["id"].to_numpy(),
            part=part,
            start=start,
            end=end,
            before=_before(part, start, end, begin),
            first_work=first,
            last_work=last,
            mark=calls["mark"].to_numpy(),
            **waiting,
        ),
        work=device.work(),
        begin=begin,
        parts=max(number.values(), default=0) + 1,
        streams=work.select("number", "device", "stream").unique().sort("number"),
        latency=device.typical_latency,
        gap=device.typical_gap,
        depth=device.depth,
    )


def _begin(trace: Trace, start: Ints) -> int:
    """When the program began: with its first call or its first step."""
    steps = assessed_steps(trace)["start"].to_numpy()
    return (
        int(np.concatenate([start, steps]).min(initial=np.iinfo(np.int64).max)) if start.size else 0
    )


def _placed(calls: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """Work with the entry that launched it, in the order of the entries.

    What was launched before the recording belongs to the entry of the next work on its stream.
    """
    ids = calls["id"].to_numpy()
    known = np.flatnonzero(ids != NOTHING)
    slices = max(
        int(ids.max(initial=0)), int(work["launch"].fill_null(0).to_numpy().max(initial=0))
    )
    entry_of = np.full(slices + 1, NOTHING, np.int64)
    entry_of[ids[known]] = known
    entry = pl.Series(entry_of).gather(work["launch"])
    linked = work.with_columns(
        entry=entry.set((entry == NOTHING).fill_null(value=False), None)
    ).sort("number", "start", "id")
    following = pl.col("entry").backward_fill().over("number").fill_null(max(calls.height - 1, 0))
    return linked.with_columns(known=pl.col("entry").is_not_null(), entry=following).sort(
        "entry", "start", "id"
    )


def _before(part: Ints, start: Ints, end: Ints, begin: int) -> Ints:
    """Time since the entry before of the same part."""
    found = np.zeros(start.size, np.int64)
    for p in np.unique(part):
        own = np.flatnonzero(part == p)
        found[own] = start[own] - np.append(begin, end[own][:-1])
    return found
