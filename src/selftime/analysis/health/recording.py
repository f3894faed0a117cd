"""What several checks look at, found once: a trace's launches, device work, steps and bounds."""

from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.device.work import impossible_work, recorded_work
from selftime.analysis.health.checks import MANY
from selftime.analysis.slice_arguments import arguments_of
from selftime.analysis.slice_filters import filter_by_name, runtime_calls, slices_on
from selftime.analysis.steps.steady_steps import assessed_steps
from selftime.arrays import Ints
from selftime.intervals import union
from selftime.trace import Trace


@cached_per_trace
def launches_of(trace: Trace) -> pl.DataFrame:
    """Calls that put work on a device, in order of time, but those captured into a graph.

    Columns: those of `slices`; lost, whether no device work belongs to it; operator, the innermost
    around the call. None where calls and work have no numbers to join them by, as in early
    recordings of ROCm: nothing says which work is missing.
    """
    calls = runtime_calls(trace)
    launches = filter_by_name(calls, names.is_launch)
    device = slices_on(trace, "device")
    linked = device["launch"].drop_nulls()
    if device.height and not linked.len() and not _is_numbered(trace):
        launches = launches.clear()
    captured = _captured(calls, launches["start"].to_numpy())
    if captured.any():
        launches = launches.filter(pl.Series(~captured))
    worked = np.zeros(trace.slices.height, bool)
    worked[linked.to_numpy()] = True
    lost = pl.Series(~worked[launches["id"].to_numpy()], dtype=pl.Boolean)
    told = arguments_of(trace, "call_args", launches["id"], "operator")
    return launches.with_columns(lost=lost).hstack(told).sort("start", "id")


def _is_numbered(trace: Trace) -> bool:
    return bool((trace.call_args["correlation"].drop_nulls() > 0).any())


def _captured(calls: pl.DataFrame, when: Ints) -> NDArray[np.bool_]:
    """Which instants lie between the begin of a capture and the next end: nothing runs then.

    An end before any begin closes a capture that began before the recording.
    """
    begins = np.sort(filter_by_name(calls, names.is_capture_begin)["start"].to_numpy())
    ends = np.sort(filter_by_name(calls, names.is_capture_end)["start"].to_numpy())
    if ends.size and (not begins.size or ends[0] < begins[0]):
        begins = np.append(np.iinfo(np.int64).min, begins)
    place = np.searchsorted(ends, begins)
    closed = place < ends.size
    captures = union(begins[closed], ends[place[closed]])
    if not captures.starts.size:
        return np.zeros(when.size, bool)
    at = np.searchsorted(captures.starts, when, side="right") - 1
    return np.asarray((at >= 0) & (when < captures.ends[at]))


@cached_per_trace
def is_mostly_lost(trace: Trace) -> bool:
    """Whether so many launches have no device work that nothing can be said of idle time."""
    recording = Recording(trace)
    return recording.lost.height > MANY * recording.launches.height


class Recording:
    """A trace and what is found in it, each when it is first asked for."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @cached_property
    def device(self) -> pl.DataFrame:
        """Every device slice, whether its end is known or not."""
        return slices_on(self.trace, "device")

    @cached_property
    def work(self) -> pl.DataFrame:
        """Device slices whose end is known; as they were written; see `recorded_work`."""
        return recorded_work(self.trace)

    @cached_property
    def host(self) -> pl.DataFrame:
        """Operators, annotations and calls."""
        return slices_on(self.trace, "host")

    @cached_property
    def operators(self) -> pl.DataFrame:
        """Operators, without annotations: their name and start."""
        is_operator = self.host["category"].is_in(names.OPERATORS)
        return self.host.select("name", "start").filter(is_operator)

    @cached_property
    def calls(self) -> pl.DataFrame:
        """Calls of the device's runtime and driver."""
        return runtime_calls(self.trace)

    @cached_property
    def steps(self) -> pl.DataFrame:
        """Steps, with what speaks against each; see `assessed_steps`."""
        return assessed_steps(self.trace)

    @property
    def launches(self) -> pl.DataFrame:
        """Calls that put work on a device; see `launches_of`."""
        return launches_of(self.trace)

    @cached_property
    def lost(self) -> pl.DataFrame:
        """Launches without device work."""
        return self.launches.filter("lost")

    @cached_property
    def impossible(self) -> pl.DataFrame:
        """Device slices whose duration cannot be."""
        return impossible_work(self.trace)

    @cached_property
    def span(self) -> tuple[int, int] | None:
        """When the recorder began and stopped, by its own slices, in ns; None without them."""
        spans = slices_on(self.trace, "profiler").filter(
            (pl.col("category").cast(pl.String) == names.RECORDER_SPAN)
            & pl.col("duration").is_not_null()
        )
        if not spans.height:
            return None
        ends = spans["start"] + spans["duration"]
        return int(spans["start"].min()), int(ends.max())  # type: ignore[arg-type]  # integers
