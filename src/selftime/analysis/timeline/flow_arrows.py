"""What a slice hangs together with: its launch and its work, forward and backward, wait and cause.

Each flow goes from what comes first to what follows from it:

    launch     a call of the host that puts work on a device, and the work
    backward   a forward operator, and the operator that computes its gradients
    wait       device work, and the call or record that ended because it had ended
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from selftime.analysis.timeline.slices import slice_lanes
from selftime.analysis.timeline.waits import FLOW, launched_work, waits_of
from selftime.trace import Trace


def related_slices(trace: Trace, number: int, limit: int) -> Iterator[tuple[str, int]]:
    """How another slice is related, and its number; at most `limit` of a kind.

    `launch` and `operator` of device work; `device work` that was launched by the slice or within;
    `forward` and `backward`, of it or the next around it; `waits for` and `ends the wait of`;
    `operator` and `frame` around a call, `frame` and `module` around an operator, `record` of a
    collective; `parent`, `child` (the first), `previous` and `next` on its row.
    """
    around = _around(trace, number)
    for name, source, target in flows_of(trace, number, limit).select("name", "id", "to").rows():
        if name == "launch":
            yield ("launch", source) if target == number else ("device work", target)
        elif name == "backward":
            yield ("backward", target) if source in around else ("forward", source)
        else:
            yield ("ends the wait of", target) if source == number else ("waits for", source)
    yield from _written(trace, number)
    if len(around) > 1:
        yield "parent", around[1]
    child = trace.slices["parent"].eq(number).arg_true().head(1)
    yield from (("child", one) for one in child)
    yield from _beside(trace, number)


def _around(trace: Trace, number: int) -> list[int]:
    """The slice itself, its parent, the parent's parent, and so on."""
    found, parents = [number], trace.slices["parent"]
    while (parent := parents[found[-1]]) is not None:
        found.append(parent)
    return found


def _written(trace: Trace, number: int) -> Iterator[tuple[str, int]]:
    """Links that the tables of arguments hold."""
    tables = (
        (trace.device_args, "operator"),
        (trace.call_args, "operator"),
        (trace.collective_args, "record"),
        (trace.op_args, "frame"),
        (trace.call_args, "frame"),
        (trace.op_args, "module"),
    )
    for table, column in tables:
        linked = table.filter((pl.col("id") == number) & pl.col(column).is_not_null())
        yield from ((column, other) for other in linked[column].to_list())


def _beside(trace: Trace, number: int) -> Iterator[tuple[str, int]]:
    """The slices before and after it on its lane."""
    index = slice_lanes(trace)
    lane = int(index.lane[number])
    first, last = (int(bound) for bound in index.lanes.bounds[lane : lane + 2])
    start = index.lanes.start[first:last]
    begun = int(trace.slices["start"][number])
    same = first + np.arange(
        np.searchsorted(start, begun, side="left"), np.searchsorted(start, begun, side="right")
    )
    at = int(same[index.lanes.place[same] == number][0])
    if at > first:
        yield "previous", int(index.lanes.place[at - 1])
    if at + 1 < last:
        yield "next", int(index.lanes.place[at + 1])


def flows_of(trace: Trace, selected: int, limit: int) -> pl.DataFrame:
    """The flows from and to a slice, and from what lies within it.

    Columns: name, id and start (the slice it comes from, and when), to and to_time (the slice it
    goes to, and when). Of more than `limit` flows of a kind, those to the longest slices.
    """
    chosen = _Chosen.of(trace, selected)
    kinds = (_launches(trace, chosen), _backward(trace, chosen), waits_of(trace, chosen.id))
    found = [_longest(trace, flows, limit) for flows in kinds]
    return pl.concat(
        [flows.select(pl.col(name).cast(kind) for name, kind in FLOW.items()) for flows in found]
    )


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A slice: its times, its thread, what is around it."""

    id: int
    start: int
    end: int
    thread: int
    launch: int | None
    around: list[int]
    """The slice itself, its parent, the parent's parent, and so on."""

    @classmethod
    def of(cls, trace: Trace, number: int) -> "_Chosen":
        slices = trace.slices
        row = slices.row(number, named=True)
        track = trace.tracks.filter(pl.col("id") == row["track"]).row(0, named=True)
        around = [number]
        while (parent := slices["parent"][around[-1]]) is not None:
            around.append(parent)
        end = row["start"] + (row["duration"] or 0)
        return cls(number, row["start"], end, track["thread"], row["launch"], around)


def _launches(trace: Trace, chosen: _Chosen) -> pl.DataFrame:
    """From each call to the work that it launched."""
    work = launched_work(trace)
    if chosen.launch is not None:
        mine = work.filter(pl.col("id") == chosen.id)
    else:
        inside = pl.col("launched").is_between(chosen.start, chosen.end, closed="left")
        mine = work.filter(
            (pl.col("launch") == chosen.id) | (inside & (pl.col("thread") == chosen.thread))
        )
    return mine.select(
        pl.lit("launch").alias("name"),
        id="launch",
        start="launched",
        to="id",
        to_time="start",
    )


def _backward(trace: Trace, chosen: _Chosen) -> pl.DataFrame:
    """From a forward operator to the backward ones; of the slice, else of the next around it."""
    linked = trace.op_args.select("id", "forward").filter(pl.col("forward").is_not_null())
    around = pl.Series(chosen.around, dtype=pl.UInt32)
    mine = linked.filter(
        pl.col("id").is_in(around.implode()) | pl.col("forward").is_in(around.implode())
    )
    ids = set(mine["id"].to_list()) | set(mine["forward"].to_list())
    nearest = next((one for one in chosen.around if one in ids), chosen.id)
    mine = mine.filter((pl.col("id") == nearest) | (pl.col("forward") == nearest))
    begin = trace.slices["start"]
    return mine.select(
        pl.lit("backward").alias("name"),
        id="forward",
        start=begin.gather(mine["forward"]),
        to="id",
        to_time=begin.gather(mine["id"]),
    )


def _longest(trace: Trace, flows: pl.DataFrame, limit: int) -> pl.DataFrame:
    """At most so many flows, those to the longest slices, in order of time."""
    if flows.height <= limit:
        return flows
    length = trace.slices["duration"].gather(flows["to"]).fill_null(0)
    return flows[length.arg_sort(descending=True)[:limit].sort()]
