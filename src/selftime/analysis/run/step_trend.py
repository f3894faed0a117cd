"""Finds whether the steps of a run become slower or faster while it goes on."""

from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from selftime.analysis.run.step_kinds import step_kinds, timed_steps
from selftime.run import Run

GROUPS: Final = 10
"""Number of groups of successive steps whose medians are compared."""

MIN_STEPS: Final = 50
"""Smallest number of steps of a kind from which a trend is looked for."""

MIN_KENDALL_SUM: Final = 33
"""Smallest sum over all pairs of groups, of 1 where the later median is larger and -1 where it is
smaller, for a trend. Without one, such a sum comes in less than 0.5 % of the cases (test of Mann
and Kendall)."""

MIN_CHANGE: Final = 0.1
"""Smallest change from the first to the last steps that is told, as a share of the first."""


class StepTrend(NamedTuple):
    """How the durations of one kind of steps change over a run."""

    kind: str
    steps: int
    """Number of steps of the kind that were compared."""
    first_ns: int
    """Usual duration of the first steps, in ns, on the line through the medians of the groups."""
    last_ns: int
    """That of the last steps."""

    @property
    def change(self) -> float:
        """Returns the change from the first to the last steps, as a share of the first."""
        return self.last_ns / self.first_ns - 1


def step_trend(run: Run) -> StepTrend | None:
    """Returns the trend of the steps that take most of a run; None without one beyond chance.

    Slow steps, and those that a profiler recorded, are left out. The line has the median of the
    slopes between all pairs of groups (Theil and Sen's estimator).
    """
    kinds = step_kinds(run)
    if not kinds.height:
        return None
    kind = str(kinds["kind"][0])
    usual = timed_steps(run).filter((pl.col("kind") == kind) & (pl.col("excess") == 0))
    if usual.height < MIN_STEPS:
        return None
    groups = np.array_split(usual["own"].to_numpy(), GROUPS)
    medians = np.array([np.median(group) for group in groups])
    pairs = list(combinations(range(GROUPS), 2))
    rises = np.array([medians[later] - medians[earlier] for earlier, later in pairs])
    if abs(int(np.sign(rises).sum())) < MIN_KENDALL_SUM:
        return None
    slope = float(np.median(rises / np.array([later - earlier for earlier, later in pairs])))
    middle = float(np.median(medians)) - slope * (GROUPS - 1) / 2
    first, last = round(middle), round(middle + slope * (GROUPS - 1))
    if first <= 0 or last <= 0 or abs(last / first - 1) < MIN_CHANGE:
        return None
    return StepTrend(kind, usual.height, first, last)
