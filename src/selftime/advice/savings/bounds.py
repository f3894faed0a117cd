"""Limits a saving to the part of the step time that the fix can remove at most.

The step is the typical one, without the cost of recording. Its floor is what stays whatever is
changed: for a cause on the host the time in which devices work, which is as long without a
recording; for a cause on a device nothing. What strikes a few steps only is part of the mean step,
of which the account tells, and may be longer than the typical one: its saving is one of the mean
step.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from selftime.advice.replay import Change, ScaleDeviceWork
from selftime.advice.savings.saving import SavingAmount
from selftime.advice.step_statistics import StepStatistics
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.run.step_kinds import step_kinds
from selftime.run import Run
from selftime.trace import Trace

MAX_PHASE_TIME_FACTOR: Final = 1.5
"""Largest time of a phase in recorded steps, as a multiple of its median in the other steps of the
run, that is taken as it is: recording and chance make that difference."""

ROUNDING_TOLERANCE_FACTOR: Final = 1 + 1e-9
"""Factor within which two sums of times count as equal, to allow for rounding."""


def limit_saving_amount(
    trace: Trace, step_stats: StepStatistics, amount: SavingAmount, changes: tuple[Change, ...]
) -> SavingAmount:
    """Returns the saving, limited to what the fix can save of a step that runs without profiler.

    Args:
        trace: The trace.
        step_stats: Its typical step.
        amount: The amount, for a step without the cost of recording.
        changes: All that the fix may change; () if unknown.
    """
    step = step_stats.unrecorded_step_ms
    if amount.step_ms <= ROUNDING_TOLERANCE_FACTOR * step:
        return replace(
            amount.limited_to_ms(max_saving_ms(trace, step_stats, changes)), step_ms=step
        )
    floor = (
        _device_work_ms_per_step(trace).every_ms if _do_changes_affect_only_host(changes) else 0.0
    )
    longer = amount.limited_to_ms(max(0.0, amount.step_ms - floor))
    if longer.estimate_ms <= step:
        return longer.limited_to_ms(step)
    mean = step_stats.unrecorded_mean_step_ms
    if longer.estimate_ms > mean:  # steps that are not counted were longer
        longer = replace(longer.scaled_by(mean / longer.step_ms), step_ms=mean)
    return longer.limited_to_ms(mean)


def limit_to_phase_of_run(run: Run, amount: SavingAmount, phase: str) -> SavingAmount:
    """Returns the saving, no more than the phase takes in the unrecorded steps of the run.

    Where other programs took the cores while the steps were recorded, a phase may be several times
    as long in them as in the others.
    """
    times = step_kinds(run).drop_nulls(phase)[phase].to_list()
    if not times or amount.upper_ms <= MAX_PHASE_TIME_FACTOR * times[0] / 1e6:
        return amount
    return amount.scaled_by(times[0] / 1e6 / amount.upper_ms)


def max_saving_ms(trace: Trace, step_stats: StepStatistics, changes: Iterable[Change]) -> float:
    """Returns the most that the changes can save in a typical step without profiler, in ms.

    A fix of unknown changes may concern anything in the step, and so may one on a device: at best
    it changes more work than it is sure to.
    """
    step = step_stats.unrecorded_step_ms
    if not _do_changes_affect_only_host(tuple(changes)):
        return step
    return max(
        0.0, step - step_stats.scaled_to_typical_step(_device_work_ms_per_step(trace).counted_ms)
    )


def do_changes_affect_devices(changes: Iterable[Change]) -> bool:
    """Returns whether any of the changes shortens the work of a device."""
    return any(isinstance(change, ScaleDeviceWork) for change in changes)


def _do_changes_affect_only_host(changes: tuple[Change, ...]) -> bool:
    return bool(changes) and not do_changes_affect_devices(changes)


@dataclass(frozen=True, slots=True)
class _DeviceWorkMsPerStep:
    """Mean time per recorded step in which at least one device works, in ms."""

    counted_ms: float
    """Mean time with device work per measured step (warm-up excluded), in ms."""
    every_ms: float
    """Mean time with device work per step, over all steps, in ms."""


@cached_per_trace
def _device_work_ms_per_step(trace: Trace) -> _DeviceWorkMsPerStep:
    steps = trace.view("steps")
    return _DeviceWorkMsPerStep(_mean_ms(steps.filter("counted")["busy"]), _mean_ms(steps["busy"]))


def _mean_ms(times_ns: pl.Series) -> float:
    whole: int = sum(times_ns.drop_nulls().to_list())
    return whole / 1e6 / max(times_ns.len(), 1)
