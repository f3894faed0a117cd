"""Tells of the whole run what an advice says of it: its wall time, and what was recorded of it."""

from selftime.advice.advice_result import RunTime
from selftime.analysis.run.recorded_step_coverage import recorded_step_coverage
from selftime.run import Run


def run_time(run: Run) -> RunTime | None:
    """Returns the run's wall time and the steps that the recorded ones stand for; None if empty."""
    if not run.segments.height:
        return None
    coverage, wall_s = recorded_step_coverage(run), run.wall_ns / 1e9
    if coverage is None:
        return RunTime(wall_s)
    kinds = " and ".join(coverage.kinds)
    return RunTime(wall_s, kinds, coverage.steps, coverage.duration_ns / 1e9)
