"""Defines export formats, and computes the event order and flow arrows that several need."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.array_types import Ints
from selftime.nesting import NO_SLICE
from selftime.progress import ProgressCallback
from selftime.trace import Job, Trace

Weight: TypeAlias = Literal["host", "device"]

SLICES_PER_BATCH: Final = 1 << 16
"""Number of slices that are converted to text and written at a time, to limit memory."""


def ignore_export_progress(_done: int, _total: int | None) -> None:
    """Does nothing: the default progress callback of an export."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Options of an export: progress callback, weight of flame graph stacks, views to write."""

    progress: ProgressCallback = ignore_export_progress
    """Function that is called with the number of slices written so far and the total."""
    weight: Weight = "host"
    """Time that weights folded stacks (for flame graphs): `host` or `device`."""
    views: tuple[str, ...] = ()
    """For exports of tables: names of views to write instead of the trace's own tables."""


@dataclass(slots=True)
class ExportResult:
    """What an export wrote: numbers of written and omitted items, file names, size in bytes."""

    written: dict[str, int] = field(default_factory=dict)
    """Number of written items by kind, such as `slices`."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Number of items that the format cannot represent, by kind, such as `allocations`."""
    files: list[str] = field(default_factory=list)
    """Names of the written files, if the export wrote a folder."""
    size: int = 0
    """Total size of the written files, in bytes."""

    def record_left_out(self, items: str, count: int) -> None:
        """Adds `count` items of the kind `items` to those left out of the file, unless it is 0."""
        if count:
            self.left_out[items] = count


@dataclass(frozen=True, slots=True)
class Export:
    """A file format to which a trace can be exported: its name, file suffix and writer."""

    name: str
    title: str
    """Programs that read the format, as shown in help texts."""
    suffix: str
    """Suffix of the exported file's name; empty if the export writes a folder."""
    write: Callable[[Trace, Path, ExportOptions], ExportResult]
    """Function that writes one trace to a file or folder, and returns what it wrote."""
    option_names: frozenset[str] = frozenset()
    """Names of the fields of `ExportOptions` that the format uses, besides `progress`."""
    write_job: Callable[[Job, Path, ExportOptions], ExportResult] | None = None
    """Function that writes all traces of a job to one file; None if the format holds one trace."""


def slice_batches(slice_count: int) -> list[tuple[int, int]]:
    """Returns (first index, index after the last) of each batch of `SLICES_PER_BATCH` slices."""
    return [
        (first, min(first + SLICES_PER_BATCH, slice_count))
        for first in range(0, slice_count, SLICES_PER_BATCH)
    ]


def slice_end_times(slices: pl.DataFrame) -> Ints:
    """Returns each slice's end in ns; its start if the duration is unknown."""
    return (slices["start"] + slices["duration"].fill_null(0)).to_numpy()


def slice_names_with_overloads(trace: Trace) -> pl.Series:
    """Returns each slice's name; an operator's with its overload, such as `aten::add.Tensor`.

    If the trace's metadata lists overloads, names are returned without them.
    """
    overloads = trace.op_args.filter(pl.col("overload").is_not_null())
    operator_facts = trace.facts.get("ops")
    if not overloads.height or (isinstance(operator_facts, dict) and "overload" in operator_facts):
        return trace.slices["name"]
    names = trace.slices["name"].cast(pl.String)
    full_names = names.gather(overloads["id"]) + "." + overloads["overload"].cast(pl.String)
    return names.scatter(overloads["id"], full_names)


def begin_and_end_event_order(trace: Trace) -> Ints:
    """Returns event numbers by time; slice i of n has the events `i` (begin) and `i + n` (end).

    The end event of slice `i` is `i` + the number of slices; slices with an unknown end have none.
    Ties: ends come before begins; inner slices end first, outer slices begin first; a slice of
    duration 0 ends right after its begin. Host threads come before streams, so that arrows begin
    before they end.
    """
    start, end = trace.slices["start"].to_numpy(), slice_end_times(trace.slices)
    count = start.size
    outer_first = np.lexsort((np.arange(count), -end, start))
    rank = np.empty(count, np.int64)
    rank[outer_first] = np.arange(count)
    is_long = end > start
    time = np.concatenate([start, end])
    turn = np.concatenate([np.ones(count, np.int64), np.where(is_long, 0, 1)])
    within = np.concatenate([2 * rank, np.where(is_long, -rank, 2 * rank + 1)])
    on_device = np.tile(_is_slice_on_device_thread(trace), 2)
    order = np.lexsort((within, on_device, turn, time))
    ended = trace.slices["duration"].is_not_null().to_numpy()
    there = (order < count) | ended[order % max(count, 1)]
    return np.asarray(order[there])


def _is_slice_on_device_thread(trace: Trace) -> NDArray[np.bool_]:
    """Returns for each slice of the trace whether it is on a device stream."""
    tracks = trace.tracks
    streams = tracks.filter(pl.col("kind") == "device")["thread"]
    is_device = tracks["thread"].is_in(streams.implode()).gather(trace.slices["track"])
    return is_device.to_numpy()


LAUNCH_ARROW_CATEGORY: Final = "ac2g"
"""Category that Kineto gives arrows from a launch to its device work."""
BACKWARD_ARROW_CATEGORY: Final = "fwdbwd"
"""Category that Kineto gives arrows from a forward operator to its backward operator."""


class SliceArrows:
    """Flow arrows between slices: from launch to kernel, and from forward to backward operator.

    Each arrow has its own number and exactly two ends, since viewers drop further ends: the launch
    of a CUDA graph starts one arrow per kernel.
    """

    def __init__(self, trace: Trace) -> None:
        launched = _other_and_slice_ids_without_nulls(trace.slices.select("id", other="launch"))
        self._ends: dict[str, tuple[Ints, Ints]] = {
            LAUNCH_ARROW_CATEGORY: launched,
            BACKWARD_ARROW_CATEGORY: _forward_and_backward_operator_ids(trace),
        }
        self._first = {LAUNCH_ARROW_CATEGORY: 1, BACKWARD_ARROW_CATEGORY: 1 + trace.slices.height}
        """Number of the first arrow of each kind; an arrow's number is this plus the id of its last
        slice."""
        self.count = sum(end.size for _, end in self._ends.values())

    def arrow_endpoints(self, first_slice: int, end_slice: int) -> Iterator[pl.DataFrame]:
        """Yields tables with one row for each arrow end at a slice of the given range."""
        for kind, ends in self._ends.items():
            number = ends[1] + self._first[kind]
            for is_end, slice_ids in enumerate(ends):
                here = (slice_ids >= first_slice) & (slice_ids < end_slice)
                columns = {"slice": slice_ids[here], "arrow": number[here]}
                table = pl.DataFrame(columns, schema={"slice": pl.Int64, "arrow": pl.Int64})
                yield table.with_columns(kind=pl.lit(kind), is_end=pl.lit(bool(is_end)))


def _other_and_slice_ids_without_nulls(links: pl.DataFrame) -> tuple[Ints, Ints]:
    """Returns the columns `other` and `id` as arrays; leaves out rows with a null in either."""
    complete = links.drop_nulls().cast(pl.Int64)
    return complete["other"].to_numpy(), complete["id"].to_numpy()


def _forward_and_backward_operator_ids(trace: Trace) -> tuple[Ints, Ints]:
    """Returns slice ids of forward operators, and of the outermost backward operator of each."""
    begin, end = _other_and_slice_ids_without_nulls(trace.op_args.select("id", other="forward"))
    forward = np.full(trace.slices.height, NO_SLICE, np.int64)
    forward[end] = begin
    parent = trace.slices["parent"].cast(pl.Int64).fill_null(NO_SLICE).to_numpy()[end]
    outer = (parent == NO_SLICE) | (forward[np.maximum(parent, 0)] != begin)
    return begin[outer], end[outer]
