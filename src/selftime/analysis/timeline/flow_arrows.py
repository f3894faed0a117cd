"""Finds slices related to a slice: by launch, by forward and backward pass, or by a wait.

Each flow goes from what comes first to what follows from it:

    launch     from a call of the host to the device work that it launched
    backward   from a forward operator to the operator that computes its gradients
    wait       from device work to the call or record that ended because the work ended
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from selftime.analysis.timeline.slice_wait_flows import (
    SLICE_FLOW_SCHEMA,
    device_work_with_launch,
    waits_of_slice,
)
from selftime.analysis.timeline.visible_slices import slice_lanes
from selftime.trace import Trace


def related_slices(trace: Trace, slice_id: int, limit: int) -> Iterator[tuple[str, int]]:
    """Yields relation and slice id of each related slice, at most `limit` per relation.

    `launch` and `operator` of device work; `device work` that was launched by the slice or within;
    `forward` and `backward`, of it or its nearest ancestor; `waits for` and `ends the wait of`;
    `operator` and `frame` around a call, `frame` and `module` around an operator, `record` of a
    collective; `parent`, `child` (the first), `previous` and `next` on its row.
    """
    around = _slice_with_ancestors(trace, slice_id)
    for name, source, target in (
        flow_arrows_of_slice(trace, slice_id, limit).select("name", "id", "to").rows()
    ):
        if name == "launch":
            yield ("launch", source) if target == slice_id else ("device work", target)
        elif name == "backward":
            yield ("backward", target) if source in around else ("forward", source)
        else:
            yield ("ends the wait of", target) if source == slice_id else ("waits for", source)
    yield from _recorded_slice_links(trace, slice_id)
    if len(around) > 1:
        yield "parent", around[1]
    child = trace.slices["parent"].eq(slice_id).arg_true().head(1)
    yield from (("child", one) for one in child)
    yield from _neighbouring_slices(trace, slice_id)


def _slice_with_ancestors(trace: Trace, slice_id: int) -> list[int]:
    """Returns the ids of the slice, its parent, the parent's parent, and so on up to the root."""
    found, parents = [slice_id], trace.slices["parent"]
    while (parent := parents[found[-1]]) is not None:
        found.append(parent)
    return found


def _recorded_slice_links(trace: Trace, slice_id: int) -> Iterator[tuple[str, int]]:
    """Yields relation and id of the slices that a slice's recorded arguments refer to."""
    tables = (
        (trace.device_args, "operator"),
        (trace.call_args, "operator"),
        (trace.collective_args, "record"),
        (trace.op_args, "frame"),
        (trace.call_args, "frame"),
        (trace.op_args, "module"),
    )
    for table, column in tables:
        linked = table.filter((pl.col("id") == slice_id) & pl.col(column).is_not_null())
        yield from ((column, other) for other in linked[column].to_list())


def _neighbouring_slices(trace: Trace, slice_id: int) -> Iterator[tuple[str, int]]:
    """Yields relation and id of the previous and the next slice in a slice's timeline row."""
    index = slice_lanes(trace)
    lane = int(index.lane[slice_id])
    first, last = (int(bound) for bound in index.lanes.bounds[lane : lane + 2])
    start = index.lanes.start[first:last]
    begun = int(trace.slices["start"][slice_id])
    same = first + np.arange(
        np.searchsorted(start, begun, side="left"), np.searchsorted(start, begun, side="right")
    )
    at = int(same[index.lanes.place[same] == slice_id][0])
    if at > first:
        yield "previous", int(index.lanes.place[at - 1])
    if at + 1 < last:
        yield "next", int(index.lanes.place[at + 1])


def flow_arrows_of_slice(trace: Trace, slice_id: int, limit: int) -> pl.DataFrame:
    """Returns the arrows (launch, backward, wait) that link a slice, or slices in it, to others.

    Columns: name, id and start (the slice it comes from, and when), to and to_time (the slice it
    goes to, and when). Of more than `limit` flows of a kind, those to the longest slices.
    """
    selected = _SelectedSlice.of(trace, slice_id)
    kinds = (
        _launch_flows(trace, selected),
        _backward_flows(trace, selected),
        waits_of_slice(trace, selected.id),
    )
    found = [_limit_flows(trace, flows, limit) for flows in kinds]
    return pl.concat(
        [
            flows.select(pl.col(name).cast(kind) for name, kind in SLICE_FLOW_SCHEMA.items())
            for flows in found
        ]
    )


@dataclass(frozen=True, slots=True)
class _SelectedSlice:
    """The slice for which flow arrows are requested: its times, its thread, its ancestors."""

    id: int
    start: int
    end: int
    thread: int
    launch: int | None
    around: list[int]
    """The ids of the slice itself, its parent, the parent's parent, and so on."""

    @classmethod
    def of(cls, trace: Trace, slice_id: int) -> "_SelectedSlice":
        slices = trace.slices
        row = slices.row(slice_id, named=True)
        track = trace.tracks.filter(pl.col("id") == row["track"]).row(0, named=True)
        around = [slice_id]
        while (parent := slices["parent"][around[-1]]) is not None:
            around.append(parent)
        end = row["start"] + (row["duration"] or 0)
        return cls(slice_id, row["start"], end, track["thread"], row["launch"], around)


def device_work_of_slice(trace: Trace, slice_id: int) -> pl.DataFrame:
    """Returns the device work that was launched by a slice of the host or within it.

    Columns: those of `device_work_with_launch`.
    """
    selected = _SelectedSlice.of(trace, slice_id)
    work = _launched_within(trace, selected)
    return work if selected.launch is None else work.clear()


def _launched_within(trace: Trace, selected: _SelectedSlice) -> pl.DataFrame:
    inside = pl.col("launched").is_between(selected.start, selected.end, closed="left")
    return device_work_with_launch(trace).filter(
        (pl.col("launch") == selected.id) | (inside & (pl.col("thread") == selected.thread))
    )


def _launch_flows(trace: Trace, selected: _SelectedSlice) -> pl.DataFrame:
    """Returns the flows from calls to the device work that they launched."""
    mine = (
        _launched_within(trace, selected)
        if selected.launch is None
        else device_work_with_launch(trace).filter(pl.col("id") == selected.id)
    )
    return mine.select(
        pl.lit("launch").alias("name"),
        id="launch",
        start="launched",
        to="id",
        to_time="start",
    )


def _backward_flows(trace: Trace, selected: _SelectedSlice) -> pl.DataFrame:
    """Returns forward-to-backward arrows of a slice, or of its nearest ancestor that has any."""
    linked = trace.op_args.select("id", "forward").filter(pl.col("forward").is_not_null())
    around = pl.Series(selected.around, dtype=pl.UInt32)
    mine = linked.filter(
        pl.col("id").is_in(around.implode()) | pl.col("forward").is_in(around.implode())
    )
    ids = set(mine["id"].to_list()) | set(mine["forward"].to_list())
    nearest = next((one for one in selected.around if one in ids), selected.id)
    mine = mine.filter((pl.col("id") == nearest) | (pl.col("forward") == nearest))
    begin = trace.slices["start"]
    return mine.select(
        pl.lit("backward").alias("name"),
        id="forward",
        start=begin.gather(mine["forward"]),
        to="id",
        to_time=begin.gather(mine["id"]),
    )


def _limit_flows(trace: Trace, flows: pl.DataFrame, limit: int) -> pl.DataFrame:
    """Returns the `limit` arrows that lead to the longest slices, in order of time."""
    if flows.height <= limit:
        return flows
    length = trace.slices["duration"].gather(flows["to"]).fill_null(0)
    return flows[length.arg_sort(descending=True)[:limit].sort()]
