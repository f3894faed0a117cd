"""Checks whether a recording can be trusted; each module checks for one kind of fault.

Every check is a function that takes a `RecordingUnderCheck` and yields `HealthCheckResult`s.
"""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from selftime.analysis.health.file_content_checks import (
    check_collectives_recognised,
    check_operators_recorded,
    check_plausible_memory_totals,
    check_slice_categories,
    check_trace_file_text,
    check_unrequested_recording_data,
)
from selftime.analysis.health.graph_replay_checks import check_incomplete_graph_replays
from selftime.analysis.health.launch_checks import (
    check_devices_without_recorded_work,
    check_launches_without_work,
    check_lost_work_at_recording_end,
    check_overlapping_work_on_streams,
    check_streams_that_lost_all_work,
    check_work_without_launch,
)
from selftime.analysis.health.process_identity_checks import (
    check_calls_recorded_twice,
    check_device_descriptions,
    check_rank_and_world_size,
    check_ranks_mixed_in_one_file,
    check_time_origin,
)
from selftime.analysis.health.recorder_checks import (
    check_cores_available,
    check_device_wait_records,
    check_dropped_trace_records,
    check_early_end_of_recording,
    check_recorder_time,
    check_recording_overhead,
    check_slow_step,
    check_slowing_profiler_options,
)
from selftime.analysis.health.recording_under_check import (
    HealthCheckResult,
    HealthVerdict,
    RecordingUnderCheck,
    severity_of_verdict,
)
from selftime.analysis.health.run_checks import (
    check_recorded_steps_are_usual,
    check_recorded_steps_are_whole,
)
from selftime.analysis.health.slice_time_checks import (
    check_host_and_device_clocks_agree,
    check_impossible_slice_durations,
    check_slices_past_the_end,
    check_slices_without_end,
    check_slices_without_time,
    check_zero_slice_durations,
)
from selftime.analysis.health.step_checks import check_step_count, check_steps_without_work
from selftime.trace import Trace
from selftime.units import truncate_middle

__all__ = ["HealthCheckResult", "HealthVerdict", "RecordingUnderCheck", "run_health_checks"]

_HealthCheckFunction: TypeAlias = Callable[[RecordingUnderCheck], Iterator[HealthCheckResult]]

_HEALTH_CHECKS: Final[tuple[_HealthCheckFunction, ...]] = (
    check_slice_categories,
    check_trace_file_text,
    check_dropped_trace_records,
    check_early_end_of_recording,
    check_slow_step,
    check_cores_available,
    check_launches_without_work,
    check_lost_work_at_recording_end,
    check_streams_that_lost_all_work,
    check_devices_without_recorded_work,
    check_incomplete_graph_replays,
    check_work_without_launch,
    check_operators_recorded,
    check_unrequested_recording_data,
    check_ranks_mixed_in_one_file,
    check_calls_recorded_twice,
    check_host_and_device_clocks_agree,
    check_impossible_slice_durations,
    check_zero_slice_durations,
    check_slices_without_time,
    check_slices_without_end,
    check_slices_past_the_end,
    check_overlapping_work_on_streams,
    check_step_count,
    check_steps_without_work,
    check_collectives_recognised,
    check_plausible_memory_totals,
    check_device_descriptions,
    check_rank_and_world_size,
    check_time_origin,
    check_recording_overhead,
    check_recorded_steps_are_usual,
    check_recorded_steps_are_whole,
    check_recorder_time,
    check_slowing_profiler_options,
    check_device_wait_records,
)


def run_health_checks(trace: Trace) -> list[HealthCheckResult]:
    """Returns the results of all checks of a recording, the most serious first."""
    recording = RecordingUnderCheck(trace)
    found = [
        check._replace(text=truncate_middle(check.text))
        for run_check in _HEALTH_CHECKS
        for check in run_check(recording)
    ]
    return sorted(found, key=lambda check: severity_of_verdict(check.verdict), reverse=True)
