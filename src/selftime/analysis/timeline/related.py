"""The slices that one leads to, each with how they are related."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from selftime.analysis.timeline.flow_arrows import flows_of
from selftime.analysis.timeline.slices import slice_lanes
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
