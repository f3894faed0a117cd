"""Aligns the clocks of a job's ranks by the ends of their common collectives.

A collective in which every member waits for the others, such as an all-reduce, ends on all of them
at nearly the same instant, whenever each began. So for rank r and collective c, with e[r, c] its
end by the rank's own clock, e[r, c] + offset[r] + drift[r] * (e[r, c] - middle[r]) = E[c] is the
same on each rank.

The reference is the rank with the most collectives in common with others. Then come the ranks that
share any with it, then those that share any with these, and so on. Each line is fitted by least
absolute error, so that a few late ends do not move it. Then each rank is fitted again to the median
of all ranks, until nothing changes. Ranks of one machine have one clock.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Final

import numpy as np
import polars as pl

from selftime.array_types import Floats, Ints

_MAX_CLOCK_FITTING_SWEEPS: Final = 20
"""Largest number of times that the clocks of all ranks are fitted again."""
_LINE_FIT_REWEIGHTING_COUNT: Final = 12
"""Number of reweighting iterations in a fit by least absolute error; its error is then below 1 ns.
"""
_CONVERGED_CLOCK_CHANGE_NS: Final = 1.0
"""The fit ends once no clock offset changes by more than this many ns."""
_MAX_CLOCK_DRIFT_IN_SECONDS_PER_SECOND: Final = 200e-6
"""Largest plausible drift between two clocks, as a ratio: each is off by up to 100 parts per
million.
"""
_MIN_COLLECTIVE_ENDS_FOR_DRIFT: Final = 8
"""Smallest number of collective ends from which a clock's drift is fitted; fewer are too noisy."""
_ERROR_WITHIN_MACHINE_NS: Final = 1_000.0
"""By how many ns instants of two processes of one machine may differ: the profiler converts the
processor's cycles to time in each of them.
"""
_MIN_DRIFT_IN_STANDARD_ERRORS: Final = 4.0
"""Smallest drift, in multiples of its standard error, that is kept; smaller drifts are set to 0."""


@dataclass(frozen=True, slots=True)
class RankClock:
    """The offset and drift that convert one rank's clock to that of the reference rank."""

    offset: int = 0
    """What must be added to the rank's clock at `reference_instant`, in ns."""
    drift: float = 0.0
    """By how much the correction grows, in seconds per second after `reference_instant`."""
    reference_instant: int = 0
    """The instant, by the rank's own clock in ns, at which the correction is `offset`."""
    residual: float | None = None
    """Median distance in ns between the rank's corrected collective ends and other ranks' ends;
    None if the rank shares no collective with the reference rank, not even through other ranks.
    """
    shared_collectives: int = 0
    """Number of collectives from which the clock's correction was computed."""

    def to_reference_times(self, times: Ints) -> Ints:
        """Converts instants (ns) of this rank's clock to that of the reference rank."""
        drifted: Ints = np.rint(self.drift * (times - self.reference_instant)).astype(np.int64)
        return times + self.offset + drifted


@dataclass(frozen=True, slots=True)
class RankClocks:
    """The clocks of a job's ranks, each as a correction to the clock of one reference rank."""

    clock_by_rank: dict[int, RankClock]
    reference: int | None
    """The rank whose clock all times are converted to; None if no two ranks share a collective."""

    @property
    def residual(self) -> float | None:
        """Largest of the ranks' median clock errors after alignment, in ns; None if unknown."""
        known = [
            clock.residual for clock in self.clock_by_rank.values() if clock.residual is not None
        ]
        return max(known, default=None) if len(known) > 1 else None


def align_rank_clocks(
    ends: pl.DataFrame, clock_of_rank: Mapping[int, str] = MappingProxyType({})
) -> RankClocks:
    """Returns the clocks of a job's ranks, aligned by the ends of their common collectives.

    A rank may return from a collective late, each time, where it lacks a core: what ends differ by
    on one machine is no difference of clocks.

    Args:
        ends: One row for each rank and collective that ends on all of its ranks together. Columns:
            rank, a number from 0; collective, a number that is the same on each of its ranks; end,
            in ns by the rank's own clock, of any origin. No pair of rank and collective repeats.
        clock_of_rank: The name of the clock of each rank for which it is known.
    """
    ranks = ends["rank"].unique().sort().to_list()
    first = {clock_of_rank[rank]: rank for rank in reversed(ranks) if rank in clock_of_rank}
    of = {rank: first.get(clock_of_rank.get(rank, ""), rank) for rank in ranks}
    as_first = pl.col("rank").replace_strict(of, return_dtype=pl.Int64)
    found = _align_clocks(ends.group_by(as_first, "collective").agg(pl.col("end").min()))
    clocks = {rank: found.clock_by_rank[of[rank]] for rank in ranks}
    largest, count = Counter(of.values()).most_common(1)[0] if of else (None, 0)
    if found.reference is not None or count < 2:
        return RankClocks(clocks, found.reference)
    shared = RankClock(residual=_ERROR_WITHIN_MACHINE_NS)
    return RankClocks(
        {rank: shared if of[rank] == largest else RankClock() for rank in ranks}, largest
    )


def _align_clocks(ends: pl.DataFrame) -> RankClocks:
    """Returns the clocks, aligned by `ends`, each the clock of one rank."""
    ranks = ends["rank"].unique().sort().to_list()
    several = ends.filter(pl.len().over("collective") > 1)
    if several.is_empty():
        return RankClocks({rank: RankClock() for rank in ranks}, None)
    alignment = _RankClockAlignment(several)
    alignment.fit_all_clocks()
    found = alignment.fitted_clocks()
    return RankClocks(
        {rank: found.clock_by_rank.get(rank, RankClock()) for rank in ranks}, found.reference
    )


class _RankClockAlignment:
    """State of the clock fit: the line of each rank's clock, and the end of each collective."""

    def __init__(self, ends: pl.DataFrame) -> None:
        ends = ends.sort("rank", "end")
        self._ranks = ends["rank"].unique(maintain_order=True).to_list()
        place = {rank: at for at, rank in enumerate(self._ranks)}
        self._of = ends["rank"].replace_strict(place, return_dtype=pl.Int64).to_numpy()
        _, self._collective = np.unique(ends["collective"].to_numpy(), return_inverse=True)
        bounds = np.append(np.flatnonzero(np.diff(self._of, prepend=-1)), self._of.size)
        self._rows = [slice(low, high) for low, high in pairwise(bounds.tolist())]
        end = ends["end"].to_numpy()
        self._middle = np.array([int(end[rows].mean()) for rows in self._rows])
        self._own = end - self._middle[self._of]
        self._offset = np.zeros(len(self._ranks), np.int64)
        self._drift = np.zeros(len(self._ranks))
        self._placed = np.zeros(len(self._ranks), bool)
        others = ends.select(pl.len().over("collective")).to_series().to_numpy() - 1
        self._first = int(np.argmax(np.bincount(self._of, others)))
        self._placed[self._first] = True

    def fit_all_clocks(self) -> None:
        """Fits each rank's clock to already fitted clocks, then refits each to all others."""
        while True:
            common = self._median_collective_ends()
            reached = np.bincount(self._of, ~np.isnan(common[self._collective])) > 0
            new = np.flatnonzero(reached & ~self._placed)
            for at in new.tolist():
                self._fit_clock_of_rank(at, common)
            self._placed[new] = True
            if not new.size:
                break
        others = [at for at in np.flatnonzero(self._placed).tolist() if at != self._first]
        for _ in range(_MAX_CLOCK_FITTING_SWEEPS):
            before, common = self._offset.copy(), self._median_collective_ends()
            for at in others:
                self._fit_clock_of_rank(at, common)
            if np.abs(self._offset - before).max(initial=0) < _CONVERGED_CLOCK_CHANGE_NS:
                return

    def fitted_clocks(self) -> RankClocks:
        """Returns each rank's clock; a clock that could not be fitted is left uncorrected."""
        error = np.abs(
            self._median_collective_ends()[self._collective]
            - self._collective_ends_on_common_clock()
        )
        clock_by_rank: dict[int, RankClock] = {}
        for at, (rank, rows) in enumerate(zip(self._ranks, self._rows, strict=True)):
            known = error[rows][~np.isnan(error[rows])]
            if not self._placed[at]:
                clock_by_rank[rank] = RankClock()
                continue
            offset, drift, middle = self._offset[at], self._drift[at], self._middle[at]
            residual = float(np.median(known))
            clock_by_rank[rank] = RankClock(
                int(offset), float(drift), int(middle), residual, known.size
            )
        return RankClocks(clock_by_rank, self._ranks[self._first])

    def _collective_ends_on_common_clock(self) -> Floats:
        """Returns all collective ends on the common clock, in ns from the reference's mean end."""
        base = self._middle + self._offset - self._middle[self._first]
        read: Floats = self._own + base[self._of] + self._drift[self._of] * self._own
        return read

    def _median_collective_ends(self) -> Floats:
        """Returns the median end of each collective over fitted ranks; NaN without any."""
        table = pl.DataFrame(
            {"at": self._collective, "end": self._collective_ends_on_common_clock()}
        )
        placed = table.filter(pl.Series(self._placed[self._of]))
        middle = placed.group_by("at").agg(pl.col("end").median())
        common = np.full(int(self._collective.max()) + 1, np.nan)
        common[middle["at"].to_numpy()] = middle["end"].to_numpy()
        return common

    def _fit_clock_of_rank(self, rank_index: int, median_ends: Floats) -> None:
        rows = self._rows[rank_index]
        own, wanted = self._own[rows], median_ends[self._collective[rows]]
        known = ~np.isnan(wanted)
        base = self._middle[self._first] - self._middle[rank_index]
        offset, drift = _fit_least_absolute_error_line(
            own[known].astype(np.float64), wanted[known] - own[known] + base
        )
        self._offset[rank_index], self._drift[rank_index] = round(offset), drift


def _fit_least_absolute_error_line(x: Floats, y: Floats) -> tuple[float, float]:
    """Returns intercept and slope of the line of least absolute error; slope 0 if uncertain."""
    height = float(np.median(y))
    span = float(np.ptp(x)) if x.size else 0.0
    if x.size < _MIN_COLLECTIVE_ENDS_FOR_DRIFT or span <= 0:
        return height, 0.0
    weight = np.ones(x.size)
    slope = 0.0
    for _ in range(_LINE_FIT_REWEIGHTING_COUNT):
        middle_x = np.average(x, weights=weight)
        middle_y = np.average(y, weights=weight)
        spread = float(np.sum(weight * (x - middle_x) ** 2))
        slope = float(np.sum(weight * (x - middle_x) * (y - middle_y))) / spread
        height = float(middle_y - slope * middle_x)
        error = np.abs(y - height - slope * x)
        weight = 1 / np.maximum(error, _CONVERGED_CLOCK_CHANGE_NS)
    noise = float(np.median(np.abs(y - height - slope * x))) * 1.4826  # as a standard deviation
    unsure = (
        _MIN_DRIFT_IN_STANDARD_ERRORS
        * max(noise, _CONVERGED_CLOCK_CHANGE_NS)
        / float(np.sqrt(np.sum((x - x.mean()) ** 2)))
    )
    if not unsure < abs(slope) <= _MAX_CLOCK_DRIFT_IN_SECONDS_PER_SECOND:
        return float(np.median(y)), 0.0
    return height, slope
