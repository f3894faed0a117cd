"""Checks whether the recorded steps are steps of the run, and like those that they stand for."""

from collections.abc import Iterator
from math import log
from statistics import fmean, median
from typing import Final

from selftime.analysis.health.recording_under_check import (
    HealthCheckResult,
    RecordingUnderCheck,
)
from selftime.analysis.recording_slowdown import unrecorded_step_times
from selftime.analysis.run.recorded_step_coverage import (
    recorded_step_coverage,
    step_that_holds_all_recorded_ones,
)
from selftime.units import count_text, milliseconds_text

MAX_STEP_TIME_FACTOR: Final = 2.0
"""Largest factor by which the steps of a run may be longer or shorter than those around the
recorded ones, for these to stand for the others."""
MIN_DIFFERENCE_NS: Final = 100_000
"""Smallest such difference in ns: the ledger's own work is a part of very short steps."""


def check_recorded_steps_are_usual(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports that the steps of the run are mostly longer or shorter than those recorded.

    Where short and long steps alternate the medians of a few steps differ by chance. So the means
    have to differ, too.
    """
    coverage = recorded_step_coverage(recording.trace)
    around = unrecorded_step_times(recording.trace)
    if coverage is None or not around or not coverage.duration_ns:
        return
    if len(coverage.kinds) > 1:  # of which kind the steps around were is not told
        return
    usual = coverage.usual_ns.to_list()
    ratios = (median(usual) / median(around), fmean(usual) / fmean(around))
    ratio = min(ratios, key=lambda one: abs(log(one)) if one else float("inf"))
    if not ratio or 1 / MAX_STEP_TIME_FACTOR <= ratio <= MAX_STEP_TIME_FACTOR:
        return
    typical = median if ratio == ratios[0] else fmean
    if abs(typical(usual) - typical(around)) < MIN_DIFFERENCE_NS:
        return
    text = (
        f"the {count_text(coverage.steps)} {coverage.kinds[0]} steps of the run took "
        f"{milliseconds_text(typical(usual) / 1e6)} each, and those around the recorded ones "
        f"{milliseconds_text(typical(around) / 1e6)}: the recorded steps do not stand for all"
    )
    yield HealthCheckResult("steps of the run", "degraded", text, ratio, "savings of the run")


def check_recorded_steps_are_whole(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports that all recorded steps are parts of one step of the run.

    Such are calls of a model within the first step of a training: until its optimizer's first step
    they look like the steps of a program that trains nothing.
    """
    trace = recording.trace
    found = step_that_holds_all_recorded_ones(trace)
    if found is not None:
        text = (
            f"all recorded steps are parts of one {found} step of the run, which ended before a "
            "whole one was recorded: let the program run for longer"
        )
        count = float(trace.view("steps").height)
        yield HealthCheckResult("parts of a step", "unusable", text, count, "all findings")
