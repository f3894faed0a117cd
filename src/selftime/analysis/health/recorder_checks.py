"""Reports what the profiler logged about its recording, and how much it slowed the program."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import polars as pl

from selftime import names
from selftime.analysis.health.recording_under_check import (
    HealthCheckResult,
    HealthVerdict,
    RecordingUnderCheck,
    counted_noun_text,
)
from selftime.analysis.recording_slowdown import MAX_ACCEPTABLE_SLOWDOWN, recording_slowdown
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import MIN_STEADY_STEPS
from selftime.intervals import intersect, length
from selftime.units import count_text, seconds_text, share_text, time_text, times_text

_MIN_SHARE_WITH_OTHER_TIMES: Final = 0.8
"""Smallest share of a good trace's events that have the times of steps without details."""
_MAX_RECORDER_SHARE_OF_STEP_TIME: Final = 0.02
"""Largest share of the steps that the recorder's own work may take in a good trace."""
_MAX_SHARE_WAITING_FOR_CORE: Final = 0.1
"""Largest share of a good recording in which the program's main thread may wait for a core."""
_PROFILER_OPTIONS_SLOWING_HOST: Final = {
    "with_stack": "Python stacks",
    "profile_memory": "memory",
    "record_shapes": "shapes",
    "with_flops": "FLOPs",
    "with_modules": "modules",
}
"""Maps profiler options that slow the host, as the trace names them, to what they record."""
_RECORDER_LOG_METADATA_KEYS: Final = ("ERROR", "WARNING", "INFO")
_MAX_QUOTED_LOG_CHARACTERS: Final = 160


def check_early_end_of_recording(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports that the recording ended earlier than planned, and why.

    The steps before the end are sound: if there are enough for medians, nothing is degraded.
    """
    ended = recording.trace.facts.get("partial")
    if ended:
        counted = recording.steps.filter("counted").height
        verdict: HealthVerdict = "good" if counted >= MIN_STEADY_STEPS else "degraded"
        text = f"the recording ended early: {ended}"
        yield HealthCheckResult("recording", verdict, text, None, "the last step")


def check_slow_step(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports that the recording is of a slow step of a run, not of its usual steps."""
    slow = recording.trace.facts.get("slow_step")
    if not isinstance(slow, dict):
        return
    index, begin_s = slow.get("index"), slow.get("begin_s")
    if isinstance(index, int) and isinstance(begin_s, int | float):
        text = (
            f"this is a slow step of the run, {seconds_text(begin_s * 1e9)} after its start and "
            f"after {count_text(index)} other steps: what it shows is not of usual steps"
        )
        yield HealthCheckResult("slow_step", "degraded", text, float(index), "typical times")


def check_dropped_trace_records(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports how many records the profiler lost, according to its own log."""
    lines = list(_recorder_log_lines(recording.trace.metadata))
    lost = [line for line in lines if names.reports_lost_records(line)]
    if not lost:
        return
    counts = [names.lost_record_count(line) for line in lost]
    known = [count for count in counts if count is not None]
    first = (
        lost[0]
        if len(lost[0]) <= _MAX_QUOTED_LOG_CHARACTERS
        else lost[0][:_MAX_QUOTED_LOG_CHARACTERS] + "…"
    )
    text = f"the recorder says that it lost records: {first}"
    value = float(sum(known)) if known else None
    yield HealthCheckResult("dropped", "degraded", text, value, "idle, kernels, launches")


def _recorder_log_lines(metadata: Mapping[str, Any]) -> Iterator[str]:
    for level in _RECORDER_LOG_METADATA_KEYS:
        lines = metadata.get(level)
        for line in lines if isinstance(lines, list) else [lines]:
            if isinstance(line, str):
                yield line


def check_recorder_time(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports the share of the steps' time that the recorder spent on its own work."""
    rows = slices_on(recording.trace, "profiler")
    own = filter_by_name(rows, names.is_profiler_overhead)
    if not own.height:
        return
    steps = recording.steps.filter("counted")
    steps = steps if steps.height else recording.steps
    inside = covered_time(steps.select("start", duration=pl.col("end") - pl.col("start")))
    whole = length(inside)
    if not whole:
        return
    share = length(intersect(covered_time(own), inside)) / whole
    kinds = ", ".join(own["name"].unique().cast(pl.String).sort().head(3).to_list())
    verdict: HealthVerdict = "degraded" if share > _MAX_RECORDER_SHARE_OF_STEP_TIME else "good"
    text = f"the recorder's own work ({kinds}) takes {share_text(share)} of the steps"
    yield HealthCheckResult("recorder", verdict, text, share, "idle causes, host time")


def check_recording_overhead(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports the factor by which the recording slowed the steps, where it was measured."""
    slowdown = recording_slowdown(recording.trace)
    if slowdown is None:
        return
    is_slow = slowdown.of_typical_step > MAX_ACCEPTABLE_SLOWDOWN
    verdict: HealthVerdict = "degraded" if is_slow else "good"
    ratio = slowdown.of_shorter_steps
    text = f"recorded steps took {times_text(ratio)} as long as unrecorded ones around them"
    share = _number_about_steps(recording, "matched_share")
    if slowdown.has_other_cause:
        text = (
            f"recorded steps took {times_text(slowdown.of_typical_step)} as long as unrecorded "
            f"ones around them, and the shorter of them {times_text(ratio)}: something else than "
            "the recording slowed them, such as other programs; savings are divided by the first "
            "number"
        )
    if share is not None:
        text += (
            "; their times are of steps recorded without stacks and shapes, in which "
            f"{share_text(share)} of the events came again{_removed_cost_text(recording)}"
        )
        if share < _MIN_SHARE_WITH_OTHER_TIMES:
            verdict = "degraded"
    affected = "host times, launch-bound or not"
    yield HealthCheckResult("overhead", verdict, text, slowdown.of_typical_step, affected)


def check_cores_available(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports that the program's main thread often had no core while it was recorded."""
    usage = recording.trace.facts.get("usage")
    told = usage if isinstance(usage, dict) else {}
    wall, queued, ran = (told.get(name) for name in ("wall_s", "queued_s", "process_s"))
    if not isinstance(wall, int | float) or wall <= 0 or not isinstance(queued, int | float):
        return
    share = min(queued / wall, 1.0)
    if share <= _MAX_SHARE_WAITING_FOR_CORE:
        return
    text = (
        f"the main thread was ready to run and had no core for {share_text(share)} of the recording"
    )
    if isinstance(ran, int | float):
        text += f"; the process computed for {time_text(ran * 1e9)} in {time_text(wall * 1e9)}"
    text += ": other programs, or its own threads, took the cores, and host times are longer by it"
    yield HealthCheckResult("cores", "degraded", text, share, "host times")


def _number_about_steps(recording: RecordingUnderCheck, key: str) -> float | None:
    """Returns what the recorder told about the steps' times under a key; None if it did not."""
    steps = recording.trace.facts.get("steps")
    value = steps.get(key) if isinstance(steps, dict) else None
    return float(value) if isinstance(value, int | float) else None


def _removed_cost_text(recording: RecordingUnderCheck) -> str:
    """Returns by how much these steps were longer while they were recorded; empty if not at all."""
    share = _number_about_steps(recording, "removed_share")
    return f", less {share_text(share)} for recording them" if share else ""


def check_slowing_profiler_options(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports profiler options that slow the host (in measurements 1.3 to 1.7 times)."""
    told = [
        what
        for flag, what in _PROFILER_OPTIONS_SLOWING_HOST.items()
        if recording.trace.metadata.get(flag)
    ]
    if (
        recording.trace.frame_args.height
        and _PROFILER_OPTIONS_SLOWING_HOST["with_stack"] not in told
    ):
        told.insert(0, _PROFILER_OPTIONS_SLOWING_HOST["with_stack"])
    if told and _number_about_steps(recording, "matched_share") is None:
        text = f"recorded with {', '.join(told)}: the host may have taken up to 1.7 times as long"
        yield HealthCheckResult(
            "flags", "good", text, float(len(told)), "host times, launch-bound or not"
        )


def check_device_wait_records(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports host waits for which the trace does not record what they waited for."""
    if recording.trace.sync_args.height or not recording.ended_work.height:
        return
    blocking = filter_by_name(recording.runtime_calls, names.is_blocking_call).height
    if blocking:
        text = (
            f"what {counted_noun_text(blocking, 'blocking call')} waited for is guessed from "
            "their names; record with `enable_cuda_sync_events` to know it"
        )
        yield HealthCheckResult("waits", "good", text, float(blocking), "syncs, critical path")
