"""Measures communication between ranks: operators, bytes, and time without any computation.

A rank's trace shows when its collectives began and ended. A wait for a slower rank looks like a
slow collective.
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
from selftime.advice.detectors.counted_steps import begins_within_enclosing, slices_in_counted_steps
from selftime.advice.replay import Change, CutHostTime, ScaleDeviceWork
from selftime.analysis.device.device_work import device_work
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import slices_with_arguments
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.array_types import Ints
from selftime.intervals import Intervals, intersect, subtract, union
from selftime.trace import Trace

FLOAT32_BYTES: Final = 4
"""Bytes of one float32 element."""
SAME_GRADIENT_BYTES_RELATIVE_TOLERANCE: Final = 0.01
"""Largest relative difference in bytes at which two collectives count as communicating the same
gradients."""


@cached_per_trace
def gradient_collectives(trace: Trace) -> pl.DataFrame:
    """Returns the communication operators in backward passes of measured steps, in time order.

    Columns: id, name, track, start, end (ns), and bytes, null where shapes were not recorded.
    """
    issued = _operators_named(trace, names.is_communication_operator)
    nodes = _operators_named(trace, names.is_backward_node)
    issued = issued.filter(
        pl.Series(begins_within_enclosing(issued, _with_end_column(nodes)), dtype=pl.Boolean)
    )
    table = _with_end_column(slices_in_counted_steps(trace, issued)).select(
        "id", "name", "track", "start", "end"
    )
    return table.with_columns(bytes=_communicated_bytes(trace, table["id"])).sort("start", "id")


@cached_per_trace
def collectives_issued_by_program(trace: Trace) -> pl.DataFrame:
    """Returns collectives and barriers that user code calls in measured steps, not DDP itself.

    Those of the backward pass, of replicated modules and of the optimizer are left out. Columns:
    those of `slices`, and bytes: null where unknown, 0 for a barrier.
    """
    issued = _operators_named(
        trace, lambda name: names.is_communication_operator(name) or names.is_barrier(name)
    )
    nodes = _with_end_column(_operators_named(trace, names.is_backward_node))
    issued = issued.filter(pl.Series(~begins_within_enclosing(issued, nodes), dtype=pl.Boolean))
    library = [names.is_ddp_forward, names.is_optimizer_step]
    around = _with_end_column(
        filter_by_name(slices_on(trace, "host"), lambda name: any(f(name) for f in library))
    )
    issued = issued.filter(pl.Series(~begins_within_enclosing(issued, around), dtype=pl.Boolean))
    table = slices_in_counted_steps(trace, issued).sort("start", "id")
    barriers = filter_by_name(table, names.is_barrier)["id"]
    told = pl.Series("bytes", _communicated_bytes(trace, table["id"]))
    return table.with_columns(
        bytes=pl.when(pl.col("id").is_in(barriers.implode())).then(0).otherwise(told)
    )


def _operators_named(trace: Trace, predicate: Callable[[str], bool]) -> pl.DataFrame:
    """Returns the operators of known duration whose name fulfils a predicate."""
    named = filter_by_name(slices_on(trace, "host", ended=True), predicate)
    return named.filter(named["category"].is_in(list(names.OPERATOR_CATEGORIES)))


def _with_end_column(slices: pl.DataFrame) -> pl.DataFrame:
    """Returns the slices with an added column `end`, in ns."""
    return slices.with_columns(end=pl.col("start") + pl.col("duration"))


def _communicated_bytes(trace: Trace, ids: pl.Series) -> pl.Series:
    """Returns how many bytes each communication operator sends; null if not recorded.

    They come from its collective or else from its inputs.
    """
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
    asked = slices_with_arguments(trace, "op_args", asked, "input_shapes", "input_types")
    asked = asked.join(recorded, on="id", how="left", maintain_order="left")
    pairs = asked.select("input_shapes", "input_types").cast(pl.String).iter_rows()
    written = pl.Series([_first_input_bytes(*pair) for pair in pairs], dtype=pl.Int64)
    return asked.select(pl.col("bytes").fill_null(written))["bytes"]


def _first_input_bytes(shapes: str | None, types: str | None) -> int | None:
    """Returns the size in bytes of an operator's first input, a tensor or a list of tensors.

    The dtype of a list is not recorded: float32 is assumed. None if shapes are not recorded.
    """
    try:
        first, kinds = json.loads(shapes or "[]")[0], json.loads(types or "[]")
        tensors = first if all(isinstance(one, list) for one in first) else [first]
        elements = sum(prod(int(size) for size in one) for one in tensors)
    except (ValueError, TypeError, IndexError, KeyError):
        return None  # not recorded, or malformed
    kind = kinds[0] if isinstance(kinds, list) and kinds and isinstance(kinds[0], str) else ""
    return elements * (names.element_bytes(kind) or FLOAT32_BYTES)


@cached_per_trace
def ddp_forward_passes(trace: Trace) -> pl.DataFrame:
    """Returns DistributedDataParallel's forward passes in the measured steps, in order of time."""
    return slices_in_counted_steps(
        trace, filter_by_name(slices_on(trace, "host"), names.is_ddp_forward)
    )


@dataclass(frozen=True, slots=True)
class GradientCommunicationRounds:
    """For each data-parallel forward pass, the gradient communication until the next one.

    One array element per forward pass.
    """

    begin: Ints
    end: Ints
    collectives: Ints
    """Number of collectives between this forward pass and the next."""
    bytes: NDArray[np.float64]
    """Bytes that these collectives send; NaN if unknown."""
    group: Ints
    """Number of the optimizer step that follows the forward pass."""

    @property
    def are_communicated_again(self) -> NDArray[np.bool_]:
        """Returns for each pass whether its gradients are sent again before the optimizer step."""
        found = np.zeros(self.begin.size, bool)
        for number in np.unique(self.group):
            mine = np.flatnonzero(self.group == number)
            last = mine[-1]
            same = (self.collectives[mine] == self.collectives[last]) & (self.collectives[last] > 0)
            known = np.isfinite(self.bytes[mine])
            far = (
                np.abs(self.bytes[mine] - self.bytes[last])
                > SAME_GRADIENT_BYTES_RELATIVE_TOLERANCE * self.bytes[last]
            )
            found[mine] = same & ~(known & far)
            found[last] = False
        return found


def gradient_communication_rounds(trace: Trace) -> GradientCommunicationRounds:
    """Returns the measured forward passes, with the gradient communication after each of them."""
    forwards, issued = ddp_forward_passes(trace), gradient_collectives(trace)
    begin = forwards["start"].to_numpy()
    after = np.append(begin[1:], np.iinfo(np.int64).max)[: begin.size]
    updates = filter_by_name(slices_on(trace, "host"), names.is_optimizer_step)["start"].sort()
    place = np.searchsorted(begin, issued["start"].to_numpy(), side="right") - 1
    sizes = issued["bytes"].cast(pl.Float64).fill_null(np.nan).to_numpy()[place >= 0]
    place = place[place >= 0]
    return GradientCommunicationRounds(
        begin,
        after,
        np.bincount(place, minlength=begin.size),
        np.bincount(place, weights=sizes, minlength=begin.size).astype(np.float64),
        np.searchsorted(updates.to_numpy(), begin, side="right"),
    )


def communicates_on_host(trace: Trace) -> bool:
    """Returns whether collectives run as host code, as with Gloo, not as device kernels."""
    return "communication" not in device_work(trace)["kind"].unique().to_list()


@cached_per_trace
def communication_transfers(trace: Trace) -> pl.DataFrame:
    """Returns the communication kernels; if there are none, the collectives on host threads.

    Columns: id, start, duration, launched (ns).
    """
    if communicates_on_host(trace):
        found = filter_by_name(slices_on(trace, "host"), names.is_host_collective)
        return found.select("id", "start", "duration").with_columns(launched=pl.col("start"))
    kernels = device_work(trace).filter(pl.col("kind") == "communication")
    return kernels.select("id", "start", "duration", "launched")


@cached_per_trace
def exposed_communication_times(trace: Trace) -> Intervals:
    """Returns the intervals in which ranks communicated and did not compute.

    They compute in kernels, or in operators if the trace has no kernels.
    """
    work = device_work(trace).filter(pl.col("kind") == "kernel")
    computing = (
        covered_time(work)
        if work.height
        else covered_time(_operators_named(trace, _is_computation))
    )
    return subtract(covered_time(communication_transfers(trace)), computing)


def _is_computation(name: str) -> bool:
    """Returns whether an operator with this name computes, rather than communicates."""
    return names.is_dispatched_operator(name) and not names.is_communication_operator(name)


def changes_shortening_communication(
    trace: Trace, intervals: Intervals, kept_share: float
) -> tuple[Change, ...]:
    """Returns changes that shorten communication in `intervals` to `kept_share` of its time.

    On a device: the transfers launched then. On a host: the waits for them.
    """
    found = communication_transfers(trace)
    if not communicates_on_host(trace):
        launched = found["launched"].fill_null(-1).to_numpy()
        mine = found["id"].cast(pl.Int64).to_numpy()[_are_within_intervals(launched, intervals)]
        return (ScaleDeviceWork(mine, kept_share),)
    return (
        CutHostTime(
            _union_of_interval_sets(
                [
                    intersect(exposed_communication_times(trace), intervals),
                    *_host_times_handling_communication(trace, intervals),
                ]
            ),
            kept_share,
        ),
    )


def _host_times_handling_communication(trace: Trace, intervals: Intervals) -> Iterator[Intervals]:
    """Yields two sets of intervals: the host issues communication, the host copies buckets."""
    for predicate in (names.is_communication_operator, names.is_reducer_operator):
        slices = _operators_named(trace, predicate)
        yield covered_time(
            slices.filter(pl.Series(_are_within_intervals(slices["start"].to_numpy(), intervals)))
        )


def _are_within_intervals(starts: Ints, intervals: Intervals) -> NDArray[np.bool_]:
    """Returns for each instant in `starts` whether it lies within one of the intervals."""
    if not intervals.starts.size:
        return np.zeros(starts.size, bool)
    at = np.searchsorted(intervals.starts, starts, side="right") - 1
    return np.asarray((at >= 0) & (starts < intervals.ends[at]))


def _union_of_interval_sets(interval_sets: list[Intervals]) -> Intervals:
    """Returns the union of all the interval sets as one set."""
    starts = np.concatenate([part.starts for part in interval_sets])
    return union(starts, np.concatenate([part.ends for part in interval_sets]))
