"""What the ranks of a program exchange: gradients, when they were issued, and what waits for them.

A rank's trace shows when its exchanges began and ended. That one of them waits for a slower rank
looks like a slow exchange.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.advice.detectors.counted_steps import counted, is_under
from selftime.advice.replay import Change, Cut, Scale
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.device.work import device_work
from selftime.analysis.slice_arguments import with_arguments
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.arrays import Ints
from selftime.intervals import Intervals, intersect, subtract, union
from selftime.trace import Trace

SINGLE: Final = 4
"""Bytes of an element in single precision."""
SAME: Final = 0.01
"""Rounds that exchange the same gradients exchange the same bytes, but for what rounding leaves."""


@cached_per_trace
def gradients(trace: Trace) -> pl.DataFrame:
    """Exchanges that the backward pass issued in the steps that count, in order of time.

    Columns: id, name, track, start, end (ns), and bytes, null where shapes were not recorded.
    """
    issued = _operators(trace, names.is_communication)
    nodes = _operators(trace, names.is_backward_node)
    issued = issued.filter(pl.Series(is_under(issued, _ended(nodes)), dtype=pl.Boolean))
    table = _ended(counted(trace, issued)).select("id", "name", "track", "start", "end")
    return table.with_columns(bytes=_bytes(trace, table["id"])).sort("start", "id")


@cached_per_trace
def own_exchanges(trace: Trace) -> pl.DataFrame:
    """Exchanges and barriers that the program issues itself in the steps that count.

    Not those of the backward pass, of replicated modules and of the optimizer. Columns: those of
    `slices`, and bytes, null where unknown and 0 for a barrier.
    """
    issued = _operators(trace, lambda name: names.is_communication(name) or names.is_barrier(name))
    nodes = _ended(_operators(trace, names.is_backward_node))
    issued = issued.filter(pl.Series(~is_under(issued, nodes), dtype=pl.Boolean))
    library = [names.is_replica_forward, names.is_optimizer_step]
    around = _ended(
        filter_by_name(slices_on(trace, "host"), lambda name: any(f(name) for f in library))
    )
    issued = issued.filter(pl.Series(~is_under(issued, around), dtype=pl.Boolean))
    table = counted(trace, issued).sort("start", "id")
    barriers = filter_by_name(table, names.is_barrier)["id"]
    told = pl.Series("bytes", _bytes(trace, table["id"]))
    return table.with_columns(
        bytes=pl.when(pl.col("id").is_in(barriers.implode())).then(0).otherwise(told)
    )


def _operators(trace: Trace, means: Callable[[str], bool]) -> pl.DataFrame:
    """Operators whose end is known and whose name satisfies a test."""
    named = filter_by_name(slices_on(trace, "host", ended=True), means)
    return named.filter(named["category"].is_in(list(names.OPERATORS)))


def _ended(slices: pl.DataFrame) -> pl.DataFrame:
    return slices.with_columns(end=pl.col("start") + pl.col("duration"))


def _bytes(trace: Trace, ids: pl.Series) -> pl.Series:
    """Bytes of each exchange: as the record within it says, else by its operator's inputs."""
    told = trace.collective_args.select("id", "dtype", "in_elements").drop_nulls()
    parents = trace.slices["parent"].gather(told["id"])
    sizes = [names.element_bytes(dtype) for dtype in told["dtype"].cast(pl.String).to_list()]
    recorded = (
        told.select(bytes=pl.col("in_elements") * pl.Series(sizes, dtype=pl.Int64))
        .with_columns(id=parents)
        .drop_nulls()
        .group_by("id")
        .agg(pl.col("bytes").sum())
    )
    asked = pl.DataFrame({"id": ids})
    asked = with_arguments(trace, "op_args", asked, "input_shapes", "input_types")
    asked = asked.join(recorded, on="id", how="left", maintain_order="left")
    pairs = asked.select("input_shapes", "input_types").cast(pl.String).iter_rows()
    written = pl.Series([_size(*pair) for pair in pairs], dtype=pl.Int64)
    return asked.select(pl.col("bytes").fill_null(written))["bytes"]


def _size(shapes: str | None, types: str | None) -> int | None:
    """Bytes of an operator's first input: a tensor, or a list of tensors of one dtype.

    Of a list no dtype is written: gradients are in single precision unless a model is converted.
    """
    try:
        first, kinds = json.loads(shapes or "[]")[0], json.loads(types or "[]")
        tensors = first if all(isinstance(one, list) for one in first) else [first]
        elements = sum(prod(int(size) for size in one) for one in tensors)
    except (ValueError, TypeError, IndexError, KeyError):
        return None  # not recorded, or malformed
    kind = kinds[0] if isinstance(kinds, list) and kinds and isinstance(kinds[0], str) else ""
    return elements * (names.element_bytes(kind) or SINGLE)


@cached_per_trace
def replica_forwards(trace: Trace) -> pl.DataFrame:
    """Forward passes of replicated modules in the steps that count, in order of time."""
    return counted(trace, filter_by_name(slices_on(trace, "host"), names.is_replica_forward))


@dataclass(frozen=True, slots=True)
class Rounds:
    """Forward passes with the exchange that followed each, until the next."""

    begin: Ints
    end: Ints
    exchanges: Ints
    """How many followed."""
    bytes: NDArray[np.float64]
    """Bytes of those, NaN where unknown."""
    group: Ints
    """The optimizer's step that each belongs to."""

    @property
    def repeated(self) -> NDArray[np.bool_]:
        """Rounds whose exchange comes again, of the same gradients, before the optimizer's step."""
        found = np.zeros(self.begin.size, bool)
        for number in np.unique(self.group):
            mine = np.flatnonzero(self.group == number)
            last = mine[-1]
            same = (self.exchanges[mine] == self.exchanges[last]) & (self.exchanges[last] > 0)
            known = np.isfinite(self.bytes[mine])
            far = np.abs(self.bytes[mine] - self.bytes[last]) > SAME * self.bytes[last]
            found[mine] = same & ~(known & far)
            found[last] = False
        return found


def rounds(trace: Trace) -> Rounds:
    """The rounds of the steps that count."""
    forwards, issued = replica_forwards(trace), gradients(trace)
    begin = forwards["start"].to_numpy()
    after = np.append(begin[1:], np.iinfo(np.int64).max)[: begin.size]
    updates = filter_by_name(slices_on(trace, "host"), names.is_optimizer_step)["start"].sort()
    place = np.searchsorted(begin, issued["start"].to_numpy(), side="right") - 1
    sizes = issued["bytes"].cast(pl.Float64).fill_null(np.nan).to_numpy()[place >= 0]
    place = place[place >= 0]
    return Rounds(
        begin,
        after,
        np.bincount(place, minlength=begin.size),
        np.bincount(place, weights=sizes, minlength=begin.size).astype(np.float64),
        np.searchsorted(updates.to_numpy(), begin, side="right"),
    )


def is_on_host(trace: Trace) -> bool:
    """Whether hosts exchange, as gloo does; else devices do, in kernels."""
    return "communication" not in device_work(trace)["kind"].unique().to_list()


@cached_per_trace
def transfers(trace: Trace) -> pl.DataFrame:
    """The exchanges themselves: kernels of devices, or what hosts annotate; start, duration, id."""
    if is_on_host(trace):
        found = filter_by_name(slices_on(trace, "host"), names.is_host_collective)
        return found.select("id", "start", "duration").with_columns(launched=pl.col("start"))
    kernels = device_work(trace).filter(pl.col("kind") == "communication")
    return kernels.select("id", "start", "duration", "launched")


@cached_per_trace
def exposed(trace: Trace) -> Intervals:
    """When ranks exchanged and nothing else computed: on the devices, else on the host."""
    work = device_work(trace).filter(pl.col("kind") == "kernel")
    computing = covered_time(work) if work.height else covered_time(_operators(trace, _computes))
    return subtract(covered_time(transfers(trace)), computing)


def _computes(name: str) -> bool:
    return names.is_dispatched(name) and not names.is_communication(name)


def less_exchange(trace: Trace, when: Intervals, keep: float) -> tuple[Change, ...]:
    """The changes of a program that exchanges less in these times.

    A device's exchanges are those that were launched then; a host's are the waits for them.
    """
    found = transfers(trace)
    if not is_on_host(trace):
        launched = found["launched"].fill_null(-1).to_numpy()
        mine = found["id"].cast(pl.Int64).to_numpy()[_within(launched, when)]
        return (Scale(mine, keep),)
    return (Cut(_joined([intersect(exposed(trace), when), *_handling(trace, when)]), keep),)


def _handling(trace: Trace, when: Intervals) -> Iterator[Intervals]:
    """When the host issued exchanges and moved gradients in and out of buckets."""
    for meant in (names.is_communication, names.is_reducer_operator):
        slices = _operators(trace, meant)
        yield covered_time(slices.filter(pl.Series(_within(slices["start"].to_numpy(), when))))


def _within(begin: Ints, when: Intervals) -> NDArray[np.bool_]:
    if not when.starts.size:
        return np.zeros(begin.size, bool)
    at = np.searchsorted(when.starts, begin, side="right") - 1
    return np.asarray((at >= 0) & (begin < when.ends[at]))


def _joined(parts: list[Intervals]) -> Intervals:
    starts = np.concatenate([part.starts for part in parts])
    return union(starts, np.concatenate([part.ends for part in parts]))
