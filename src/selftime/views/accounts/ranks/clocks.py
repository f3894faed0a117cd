"""The clocks of the ranks of a job, brought together at the ends of what they do together.

A collective that every member waits for, such as an all-reduce, ends on all of them at nearly the
same instant, whenever each began. So for rank r and collective c, with e[r, c] its end by the
rank's own clock, e[r, c] + offset[r] + drift[r] * (e[r, c] - middle[r]) = E[c], the same on each.

The reference is the rank that shares most with others. The rest are taken one by one, always the
one that shares most with those that are placed already. Its line is that of least absolute error,
which a few ends that were late do not move. Then each is fitted again to the middle of all, until
nothing moves.
"""

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["Clock", "Clocks", "align"]

_SWEEPS: Final = 20
_TURNS: Final = 12
"""Of reweighting: the least absolute error is reached to parts of a nanosecond."""
_STILL: Final = 1.0
"""Nanoseconds: what moves less than this does not move."""
_MOST_DRIFT: Final = 200e-6
"""Quartz runs within 100 parts in a million of its name: two clocks part by twice that at most."""
_FEWEST: Final = 8
"""Fewer ends than this tell more of their noise than of a drift."""
_SURE: Final = 4.0
"""A drift of less than so many of its own standard errors is not told from noise: it is 0."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Clock:
    """How to read one rank's clock as that of the reference."""

    offset: int = 0
    """To be added at `middle`, in ns."""
    drift: float = 0.0
    """Seconds to be added for each second after `middle`."""
    middle: int = 0
    """By the rank's own clock, in ns."""
    residual: float | None = None
    """Median distance of its ends from those of the other ranks, in ns, after that; None: unknown,
    it shares no collective with the reference, by any way."""
    shared: int = 0
    """Collectives that it was aligned by."""

    def read(self, time: Ints) -> Ints:
        """Instants of this rank by the clock of the reference, in ns."""
        drifted: Ints = np.rint(self.drift * (time - self.middle)).astype(np.int64)
        return time + self.offset + drifted


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks of a job's ranks, by rank."""

    of: dict[int, Clock]
    reference: int | None
    """The rank whose clock is the common one; None if no two ranks share a collective."""

    @property
    def residual(self) -> float | None:
        """The greatest of the ranks' residuals, in ns."""
        known = [clock.residual for clock in self.of.values() if clock.residual is not None]
        return max(known, default=None) if len(known) > 1 else None


def align(ends: pl.DataFrame) -> Clocks:
    """Bring clocks together.

    Args:
        ends: One row for each rank and collective that ends on all of its ranks together. Columns:
            rank, a number from 0; collective, a number that is the same on each of its ranks; end,
            in ns by the rank's own clock, of any origin. No pair of rank and collective twice.
    """
    ranks = ends["rank"].unique().sort().to_list()
    several = ends.filter(pl.len().over("collective") > 1)
    if several.is_empty():
        return Clocks({rank: Clock() for rank in ranks}, None)
    alignment = _Alignment(several)
    alignment.place_all()
    return Clocks({rank: alignment.clock(rank) for rank in ranks}, alignment.reference)


class _Alignment:
    """Ranks that are being aligned: the line of each, and the common end of each collective."""

    def __init__(self, ends: pl.DataFrame) -> None:
        ends = ends.sort("rank", "end")
        self._ranks = ends["rank"].unique(maintain_order=True).to_list()
        place = {rank: at for at, rank in enumerate(self._ranks)}
        self._of = ends["rank"].replace_strict(place, return_dtype=pl.Int64).to_numpy()
        _, self._collective = np.unique(ends["collective"].to_numpy(), return_inverse=True)
        self._end = ends["end"].to_numpy()
        bounds = np.append(np.flatnonzero(np.diff(self._of, prepend=-1)), self._of.size)
        self._rows = [slice(low, high) for low, high in pairwise(bounds.tolist())]
        self._middle = [int(self._end[rows].mean()) for rows in self._rows]
        self._offset = [0] * len(self._ranks)
        self._drift = [0.0] * len(self._ranks)
        self._placed = np.zeros(len(self._ranks), bool)
        others = ends.select(pl.len().over("collective")).to_series().to_numpy() - 1
        first = int(np.argmax(np.bincount(self._of, others)))
        self.reference: int = self._ranks[first]
        self._first = first

    def place_all(self) -> None:
        """Place each rank by those before it, then each by all, until nothing moves."""
        for at in self._in_order():
            if at != self._first:
                self._fit(at, self._common(~self._placed[self._of]))
            self._placed[at] = True
        others = [at for at in np.flatnonzero(self._placed).tolist() if at != self._first]
        for _ in range(_SWEEPS):
            before = np.array(self._offset)
            common = self._common(~self._placed[self._of])
            for at in others:
                self._fit(at, common)
            if np.abs(np.array(self._offset) - before).max(initial=0) < _STILL:
                return

    def clock(self, rank: int) -> Clock:
        if rank not in self._ranks or not self._placed[at := self._ranks.index(rank)]:
            return Clock()
        common = self._common(~self._placed[self._of])
        rows = self._rows[at]
        error = np.abs(common[self._collective[rows]] - self._read(at))
        known = error[~np.isnan(error)]
        middle = self._middle[at]
        return Clock(self._offset[at], self._drift[at], middle, float(np.median(known)), known.size)

    def _in_order(self) -> list[int]:
        """Ranks, first the reference, then always the one that shares most with those before."""
        shared = np.zeros(len(self._ranks), np.int64)
        seen = np.zeros(int(self._collective.max()) + 1, bool)
        members = pl.DataFrame({"collective": self._collective, "rank": self._of})
        of = members.group_by("collective").agg("rank").sort("collective")["rank"].to_list()
        order: list[int] = []
        done = np.zeros(len(self._ranks), bool)
        waiting = [(0, self._first)]
        while waiting:
            count, at = heappop(waiting)
            if done[at] or -count != shared[at]:
                continue
            done[at] = True
            order.append(at)
            new = self._collective[self._rows[at]]
            touched: set[int] = set()
            for collective in new[~seen[new]].tolist():
                seen[collective] = True
                shared[of[collective]] += 1
                touched.update(of[collective])
            for other in touched:
                heappush(waiting, (-int(shared[other]), other))
        return order

    def _read(self, at: int) -> Floats:
        """The ends of one rank by the common clock, from the base, in ns."""
        rows = self._rows[at]
        own = self._end[rows] - self._middle[at]
        whole = own + (self._middle[at] + self._offset[at] - self._origin())
        return np.asarray(whole + self._drift[at] * own, np.float64)

    def _origin(self) -> int:
        return self._middle[self._first]

    def _common(self, leave_out: NDArray[np.bool_]) -> Floats:
        """The common end of each collective: the middle of those placed; NaN where none is."""
        read = np.concatenate([self._read(at) for at in range(len(self._ranks))])
        table = pl.DataFrame({"at": self._collective, "end": read}).filter(pl.Series(~leave_out))
        middle = table.group_by("at").agg(pl.col("end").median())
        common = np.full(int(self._collective.max()) + 1, np.nan)
        common[middle["at"].to_numpy()] = middle["end"].to_numpy()
        return common

    def _fit(self, at: int, common: Floats) -> None:
        rows = self._rows[at]
        own = self._end[rows] - self._middle[at]
        wanted = common[self._collective[rows]]
        known = ~np.isnan(wanted)
        if not known.any():
            return
        away = wanted[known] - own[known] + (self._origin() - self._middle[at])
        offset, drift = _line(own[known].astype(np.float64), away)
        self._offset[at], self._drift[at] = round(offset), drift


def _line(x: Floats, y: Floats) -> tuple[float, float]:
    """Height at 0 and slope of the line of least absolute error; slope 0 where it is not sure."""
    height = float(np.median(y))
    span = float(np.ptp(x)) if x.size else 0.0
    if x.size < _FEWEST or span <= 0:
        return height, 0.0
    weight = np.ones(x.size)
    slope = 0.0
    for _ in range(_TURNS):
        middle_x = np.average(x, weights=weight)
        middle_y = np.average(y, weights=weight)
        spread = float(np.sum(weight * (x - middle_x) ** 2))
        slope = float(np.sum(weight * (x - middle_x) * (y - middle_y))) / spread
        height = float(middle_y - slope * middle_x)
        error = np.abs(y - height - slope * x)
        weight = 1 / np.maximum(error, _STILL)
    noise = float(np.median(np.abs(y - height - slope * x))) * 1.4826  # as a standard deviation
    unsure = _SURE * max(noise, _STILL) / float(np.sqrt(np.sum((x - x.mean()) ** 2)))
    if not unsure < abs(slope) <= _MOST_DRIFT:
        return float(np.median(y)), 0.0
    return height, slope
