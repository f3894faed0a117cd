"""Checks for times and durations that are impossible, lost, or incomplete."""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import schema
from selftime.analysis.device.impossible_durations import (
    CLOCK_TOLERANCE_NS,
    device_slice_overruns_of_waits,
)
from selftime.analysis.health.recording_under_check import (
    MAX_HARMLESS_FAULT_SHARE,
    MAX_USABLE_FAULT_SHARE,
    HealthCheckResult,
    HealthVerdict,
    RecordingUnderCheck,
    counted_noun_text,
    example_slice_ids_text,
    verdict_on_faulty_share,
    worst_verdict,
)
from selftime.analysis.slice_filters import covered_time
from selftime.intervals import length
from selftime.nesting import MAX_ROUNDING_CROSSING_NS
from selftime.units import count_text, instant_text, share_text, time_text

_FIGURES_AFFECTED_BY_WRONG_TIMES: Final = "launch delays, idle causes, waits"
_MIN_SUSPICIOUS_LAUNCH_DELAY_NS: Final = 100_000_000
"""Smallest delay, in ns, from launch to work that is suspicious on an idle device."""
_MIN_IDLE_SHARE_BEFORE_LATE_WORK: Final = 0.1
"""A device that is idle for more than this share (0 to 1) of the time could have begun launched
work at once.
"""
_MIN_LAUNCHES_TO_CHECK_CLOCKS: Final = 3
"""Smallest number of launches from which a difference of host and device clock is concluded."""

_NS_PER_MICROSECOND: Final = 1_000


def check_host_and_device_clocks_agree(
    recording: RecordingUnderCheck,
) -> Iterator[HealthCheckResult]:
    """Reports device work that begins before or long after its launch, or outlasts its wait."""
    device = recording.device_slices.filter(
        pl.col("launch").is_not_null() & pl.col("duration").is_not_null()
    )
    launched = recording.trace.slices["start"].gather(device["launch"])
    device = device.with_columns(delay=device["start"] - launched, launched=launched)
    early = device.filter(pl.col("delay") < 0)
    if early.height:
        text = f"{count_text(early.height)} device slices start before their launch"
        yield _clock_agreement_check(
            f"{text}{_clock_difference_text(device, early)}", early, device.height
        )
    elif _is_all_work_late_after_launch(device):
        yield _late_work_check(device)
    work = recording.ended_work.join(recording.work_with_impossible_duration, on="id", how="anti")
    late = work.filter(
        pl.Series(
            device_slice_overruns_of_waits(work, recording.runtime_calls) > MAX_ROUNDING_CROSSING_NS
        )
    )
    if late.height:
        text = f"{count_text(late.height)} device slices end after a wait for all of them returned"
        yield _clock_agreement_check(text, late, work.height)


def _clock_agreement_check(
    text: str, wrong_slices: pl.DataFrame, slice_count: int
) -> HealthCheckResult:
    """Returns the result of the clock check, from the share of slices with impossible times."""
    share = wrong_slices.height / slice_count
    verdict: HealthVerdict = "unusable" if share > MAX_USABLE_FAULT_SHARE else "degraded"
    told = f"{text}: the clocks of host and device disagree"
    if verdict == "unusable":
        told = f"{told} for {share_text(share)} of them, so that their times cannot be compared"
    return HealthCheckResult(
        "clocks",
        verdict,
        told,
        float(wrong_slices.height),
        _FIGURES_AFFECTED_BY_WRONG_TIMES,
        example_slice_ids_text(wrong_slices["id"]),
    )


def _clock_difference_text(device_slices: pl.DataFrame, early_slices: pl.DataFrame) -> str:
    """Returns by how much the clocks differ, and since when, as the end of a sentence.

    With a constant offset all delays are wrong. After a step of a clock only later launches are.
    """
    before = device_slices.filter(pl.col("launched") < early_slices["launched"].min())
    after = device_slices.filter(pl.col("launched") >= early_slices["launched"].min())
    apart = -int(after["delay"].median())  # type: ignore[arg-type]  # integers
    if (
        early_slices.height < _MIN_LAUNCHES_TO_CHECK_CLOCKS
        or apart <= _MIN_SUSPICIOUS_LAUNCH_DELAY_NS
    ):
        return ""
    if before.height:
        at = instant_text(int(early_slices["launched"].min()))  # type: ignore[arg-type]  # integers
        return f", by about {time_text(apart)} from {at} on: the host's clock was set"
    return f", by about {time_text(apart)}"


def _is_all_work_late_after_launch(device_slices: pl.DataFrame) -> bool:
    """Returns whether all work begins long after its launch although the device was mostly idle."""
    if device_slices.height < _MIN_LAUNCHES_TO_CHECK_CLOCKS:
        return False
    if int(device_slices["delay"].min()) <= _MIN_SUSPICIOUS_LAUNCH_DELAY_NS:  # type: ignore[arg-type]  # integers
        return False
    busy = covered_time(device_slices)
    return length(busy) < (1 - _MIN_IDLE_SHARE_BEFORE_LATE_WORK) * int(
        busy.ends[-1] - busy.starts[0]
    )


def _late_work_check(device_slices: pl.DataFrame) -> HealthCheckResult:
    least = int(device_slices["delay"].min())  # type: ignore[arg-type]  # integers
    text = (
        f"no device work begins less than {time_text(least)} after its launch, though the device "
        f"is idle at times: the clocks of host and device differ by about {time_text(least)}, so "
        "that their times cannot be compared"
    )
    return HealthCheckResult(
        "clocks",
        "unusable",
        text,
        least / 1e9,
        _FIGURES_AFFECTED_BY_WRONG_TIMES,
        example_slice_ids_text(device_slices["id"]),
    )


def check_impossible_slice_durations(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports device slices that cannot have lasted as long as recorded."""
    found = recording.work_with_impossible_duration
    if not found.height:
        return
    share = found.height / recording.ended_work.height
    held = float(found["duration"].sum()) / float(recording.ended_work["duration"].sum())
    text = (
        f"{counted_noun_text(found.height, 'device slice')} cannot have lasted so long (up to "
        f"{time_text(int(found['duration'].max()))}): they run past work or waits that "  # type: ignore[arg-type]  # integers
        f"had to follow them; they make up {share_text(held)} of kernel time"
    )
    verdict = worst_verdict("degraded", verdict_on_faulty_share(share))
    affects = "totals of their kernels, busy time, idle, overlap"
    yield HealthCheckResult(
        "durations",
        verdict,
        text,
        float(found.height),
        affects,
        example_slice_ids_text(found["id"]),
    )


def check_zero_slice_durations(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports device slices of 0 ns whose duration cannot just have been rounded down to 0."""
    work = recording.ended_work
    none = int((work["duration"] == 0).sum())
    if not none:
        return
    share = none / work.height
    text = f"{share_text(share)} of device slices have a duration of zero"
    if _has_whole_microsecond_times(work):
        text = f"{text}: times are in whole microseconds, and these slices were shorter"
        yield HealthCheckResult("zeros", "good", text, share)
        return
    ids = example_slice_ids_text(work.filter(pl.col("duration") == 0)["id"])
    text = f"{text}: their durations were lost"
    yield HealthCheckResult(
        "zeros", verdict_on_faulty_share(share), text, share, "kernels, busy time, idle", ids
    )


def _has_whole_microsecond_times(work: pl.DataFrame) -> bool:
    return bool((work["duration"] % _NS_PER_MICROSECOND == 0).all())


def check_slices_without_time(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports host and device slices that have neither a start nor an end time."""
    for what, part in (("device", recording.device_slices), ("host", recording.host_slices)):
        lost = part.filter(_is_slice_without_time(recording))["id"]
        if not lost.len():
            continue
        share = lost.len() / part.height
        verdict = worst_verdict("degraded", verdict_on_faulty_share(share))
        text = (
            f"{counted_noun_text(lost.len(), f'{what} slice')} ({share_text(share)}) have no time"
        )
        affects = "idle, utilisation, device time of steps, kernels"
        if what == "host":
            affects = "steps, host times, idle causes"
        else:
            text = f"{text}: when the device worked is not known"
        yield HealthCheckResult(
            "times", verdict, text, share, affects, example_slice_ids_text(lost)
        )


def _is_slice_without_time(recording: RecordingUnderCheck) -> pl.Expr:
    """Returns a column expression: whether a slice lacks its times (starts at 0, has no end)."""
    has_such = schema.UNKNOWN_TIME_FAULT in recording.trace.repairs["fault"]
    return pl.col("duration").is_null() & (pl.col("start") == 0) & has_such


def check_slices_without_end(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports host and device slices that have a start but no end; totals leave them out."""
    every = recording.host_slices.height + recording.device_slices.height
    parts = (recording.host_slices, recording.device_slices)
    has_none = pl.col("duration").is_null() & ~_is_slice_without_time(recording)
    open_ = pl.concat([part.filter(has_none)["id"] for part in parts])
    if not open_.len():
        return
    share = open_.len() / every
    text = f"{counted_noun_text(open_.len(), 'slice')} without a recorded end: left out of totals"
    verdict: HealthVerdict = "degraded" if share > MAX_HARMLESS_FAULT_SHARE else "good"
    yield HealthCheckResult(
        "ends", verdict, text, float(open_.len()), "totals", example_slice_ids_text(open_)
    )


def check_slices_past_the_end(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports host slices that began before the profiler stopped but ended long after that."""
    if recording.recorder_span is None:
        return
    begin, end = recording.recorder_span
    tolerated = end + max(CLOCK_TOLERANCE_NS, int(MAX_HARMLESS_FAULT_SHARE * (end - begin)))
    open_ = recording.host_slices.filter(
        (pl.col("start") < end) & (pl.col("start") + pl.col("duration") > tolerated)
    )
    if not open_.height:
        return
    most = open_.sort("duration", descending=True)["name"].cast(pl.String)[0]
    text = (
        f"{counted_noun_text(open_.height, 'host slice')} ended after the recorder stopped "
        f"(`{most}`): what happened in them then was not recorded"
    )
    affects = "steps, host times of these slices"
    yield HealthCheckResult(
        "past_end",
        "degraded",
        text,
        float(open_.height),
        affects,
        example_slice_ids_text(open_["id"]),
    )
