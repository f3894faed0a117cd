"""The recording that health checks examine, and the `HealthCheckResult` that they return.

`RecordingUnderCheck` holds what several checks need, computed once: launches, device work, steps
and bounds.
"""

from functools import cached_property
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.device.device_work import (
    device_work_as_recorded,
    work_with_impossible_duration,
)
from selftime.analysis.device.graph_captures import graph_capture_times, is_within_times
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import arguments_of_slices
from selftime.analysis.slice_filters import filter_by_name, runtime_calls, slices_on
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.trace import Trace
from selftime.units import count_text

HealthVerdict: TypeAlias = Literal["good", "degraded", "unusable"]

MAX_HARMLESS_FAULT_SHARE: Final = 0.01
"""Largest share (0 to 1) of missing or wrong data that changes figures less than steps vary anyway.
"""
MAX_USABLE_FAULT_SHARE: Final = 0.2
"""Largest share (0 to 1) of missing device work at which idle times still mean something."""

_VERDICTS_BEST_FIRST: Final[tuple[HealthVerdict, ...]] = ("good", "degraded", "unusable")
_MAX_EXAMPLE_SLICE_IDS: Final = 10


class HealthCheckResult(NamedTuple):
    """The result of one check, with the columns of the view `health`."""

    check: str
    verdict: HealthVerdict
    text: str
    value: float | None = None
    affects: str | None = None
    """The figures that are missing or unreliable."""
    slices: str | None = None
    """Ids of up to ten example slices as text; None if the result concerns no slices."""


def verdict_on_faulty_share(faulty_share: float) -> HealthVerdict:
    """Returns the verdict on a recording, from the share of its data that is missing or wrong.

    >>> verdict_on_faulty_share(0.01), verdict_on_faulty_share(0.02), verdict_on_faulty_share(0.5)
    ('good', 'degraded', 'unusable')
    """
    return (
        "good"
        if faulty_share <= MAX_HARMLESS_FAULT_SHARE
        else "degraded"
        if faulty_share <= MAX_USABLE_FAULT_SHARE
        else "unusable"
    )


def severity_of_verdict(health_verdict: HealthVerdict) -> int:
    """Returns the severity of a verdict: 0 for good, 1 for degraded, 2 for unusable.

    >>> severity_of_verdict("good"), severity_of_verdict("unusable")
    (0, 2)
    """
    return _VERDICTS_BEST_FIRST.index(health_verdict)


def worst_verdict(*verdicts: HealthVerdict) -> HealthVerdict:
    """Returns the worst of the given verdicts: good, degraded or unusable.

    >>> worst_verdict("good", "unusable", "degraded")
    'unusable'
    """
    return max(verdicts, key=severity_of_verdict)


def example_slice_ids_text(slice_ids: pl.Series) -> str:
    """Returns up to ten of the lowest slice ids as text, and how many more there are.

    >>> example_slice_ids_text(pl.Series([3, 1, 2]))
    '1 2 3'
    """
    first = slice_ids.sort().head(_MAX_EXAMPLE_SLICE_IDS).to_list()
    more = slice_ids.len() - len(first)
    return " ".join(map(str, first)) + (f" and {count_text(more)} more" if more else "")


def counted_noun_text(count: int, noun: str) -> str:
    """Returns a count and its noun as text, in the plural if needed.

    >>> [counted_noun_text(count, "launch") for count in (1, 1200)]
    ['1 launch', '1,200 launches']
    """
    ending = "" if count == 1 else "es" if noun.endswith(("ch", "s")) else "s"
    return f"{count_text(count)} {noun}{ending}"


@cached_per_trace
def device_work_launches(trace: Trace) -> pl.DataFrame:
    """Returns the calls that launch device work, in order of time, and whether the work is lost.

    Calls captured into a graph are left out. Columns: those of `slices`; lost, whether it has no
    device work; operator, the innermost around the call. There are no rows where calls and work
    have no numbers to link them by, as in early recordings of ROCm, because missing work cannot be
    recognised there.
    """
    calls = runtime_calls(trace)
    launches = filter_by_name(calls, names.is_launch)
    device = slices_on(trace, "device")
    linked = device["launch"].drop_nulls()
    if device.height and not linked.len() and not _has_launch_correlation_numbers(trace):
        launches = launches.clear()
    captured = is_within_times(graph_capture_times(trace), launches["start"].to_numpy())
    if captured.any():
        launches = launches.filter(pl.Series(~captured))
    worked = np.zeros(trace.slices.height, bool)
    worked[linked.to_numpy()] = True
    lost = pl.Series(~worked[launches["id"].to_numpy()], dtype=pl.Boolean)
    told = arguments_of_slices(trace, "call_args", launches["id"], "operator")
    return launches.with_columns(lost=lost).hstack(told).sort("start", "id")


def _has_launch_correlation_numbers(trace: Trace) -> bool:
    return bool((trace.call_args["correlation"].drop_nulls() > 0).any())


@cached_per_trace
def is_device_work_mostly_lost(trace: Trace) -> bool:
    """Returns whether so many launches lack their device work that idle times are meaningless."""
    recording = RecordingUnderCheck(trace)
    return recording.lost_launches.height > MAX_USABLE_FAULT_SHARE * recording.launches.height


class RecordingUnderCheck:
    """A trace with the derived tables that health checks need, each computed at first use."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @cached_property
    def device_slices(self) -> pl.DataFrame:
        """All device slices, with or without a known end."""
        return slices_on(self.trace, "device")

    @cached_property
    def ended_work(self) -> pl.DataFrame:
        """Device slices whose end is known, with times as recorded, even impossible ones."""
        return device_work_as_recorded(self.trace)

    @cached_property
    def host_slices(self) -> pl.DataFrame:
        """The operators, annotations and runtime calls of the host."""
        return slices_on(self.trace, "host")

    @cached_property
    def operator_starts(self) -> pl.DataFrame:
        """The name and start (ns) of each operator; annotations are left out."""
        is_operator = self.host_slices["category"].is_in(names.OPERATOR_CATEGORIES)
        return self.host_slices.select("name", "start").filter(is_operator)

    @cached_property
    def runtime_calls(self) -> pl.DataFrame:
        """Calls of the device runtime and driver, such as cudaLaunchKernel."""
        return runtime_calls(self.trace)

    @cached_property
    def steps(self) -> pl.DataFrame:
        """All steps, each with a flag whether it counts for medians."""
        return steps_with_counted_flags(self.trace)

    @property
    def launches(self) -> pl.DataFrame:
        """Calls that launch device work, in order of time."""
        return device_work_launches(self.trace)

    @cached_property
    def lost_launches(self) -> pl.DataFrame:
        """The launches whose device work was not recorded."""
        return self.launches.filter("lost")

    @cached_property
    def work_with_impossible_duration(self) -> pl.DataFrame:
        """The device slices that cannot have lasted as long as recorded."""
        return work_with_impossible_duration(self.trace)

    @cached_property
    def recorder_span(self) -> tuple[int, int] | None:
        """Begin and end (ns) of the recording, from the profiler's own slices; None if unknown."""
        spans = slices_on(self.trace, "profiler").filter(
            (pl.col("category").cast(pl.String) == names.RECORDER_SPAN_CATEGORY)
            & pl.col("duration").is_not_null()
        )
        if not spans.height:
            return None
        ends = spans["start"] + spans["duration"]
        return int(spans["start"].min()), int(ends.max())  # type: ignore[arg-type]  # integers
