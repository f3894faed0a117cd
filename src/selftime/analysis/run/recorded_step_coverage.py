"""Says which steps of a run its recorded steps stand for, and how much of the run they take."""

from dataclasses import dataclass

import polars as pl

from selftime.analysis.run.slow_steps import steps_of_run
from selftime.ledger_format import UNUSUAL_KIND_SUFFIX
from selftime.run import Run


@dataclass(frozen=True, slots=True, eq=False)
class RecordedStepCoverage:
    """The steps of the run that are of the same kinds as those that a profiler recorded."""

    kinds: tuple[str, ...]
    """The kinds, the one with the most time first."""
    usual_ns: pl.Series
    """What each step took, in ns, without selftime's work, and for a slow one without the time
    beyond the median of its kind."""

    @property
    def steps(self) -> int:
        return self.usual_ns.len()

    @property
    def duration_ns(self) -> int:
        return int(self.usual_ns.sum())

    def saved_ns(self, saving_per_step_ns: float) -> int:
        """Returns what all steps save if each saves so much, but none more than it took, in ns."""
        return int(self.usual_ns.clip(upper_bound=int(saving_per_step_ns)).sum())


def recorded_step_coverage(run: Run) -> RecordedStepCoverage | None:
    """Returns which steps the recorded ones stand for; None if the run has no recorded step."""
    family = pl.col("kind").cast(pl.String).str.strip_suffix(UNUSUAL_KIND_SUFFIX)
    usual = pl.col("duration") - pl.col("recording") - pl.col("excess")
    steps = steps_of_run(run).select(family.alias("kind"), usual.alias("usual"), "recorded")
    is_covered = pl.col("recorded").any().over("kind")
    covered = steps.filter(is_covered)
    if not covered.height:
        return None
    times = covered.group_by("kind").agg(pl.col("usual").sum()).sort("usual", descending=True)
    return RecordedStepCoverage(tuple(times["kind"]), covered["usual"])
