"""The clocks of the ranks of a job, brought together at the ends of what they do together.

A collective that every member waits for, such as an all-reduce, ends on all of them at nearly the
same instant, whenever each began. So for rank r and collective c, with e[r, c] its end by the
rank's own clock, e[r, c] + offset[r] + drift[r] * (e[r, c] - middle[r]) = E[c], the same on each.

The reference is the rank that shares most with others. Then come those that share any with it, then
those that share any with these, and so on. The line of each is that of least absolute error, which
a few ends that were late do not move. Then each is fitted again to the middle of all, until nothing
moves.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl

from selftime.arrays import Floats, Ints

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
    found = alignment.clocks()
    return Clocks({rank: found.of.get(rank, Clock()) for rank in ranks}, found.reference)


class _Alignment:
    """Ranks that are being aligned: the line of each, and the common end of each collective."""

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

    def place_all(self) -> None:
        """Place ranks by those before them, until no more can be; then each by all."""
        while True:
            common = self._common()
            reached = np.bincount(self._of, ~np.isnan(common[self._collective])) > 0
            new = np.flatnonzero(reached & ~self._placed)
            for at in new.tolist():
                self._fit(at, common)
            self._placed[new] = True
            if not new.size:
                break
        others = [at for at in np.flatnonzero(self._placed).tolist() if at != self._first]
        for _ in range(_SWEEPS):
            before, common = self._offset.copy(), self._common()
            for at in others:
                self._fit(at, common)
            if np.abs(self._offset - before).max(initial=0) < _STILL:
                return

    def clocks(self) -> Clocks:
        """How to read the clock of each rank; that of one that was not placed as it is."""
        error = np.abs(self._common()[self._collective] - self._read())
        of: dict[int, Clock] = {}
        for at, (rank, rows) in enumerate(zip(self._ranks, self._rows, strict=True)):
            known = error[rows][~np.isnan(error[rows])]
            if not self._placed[at]:
                of[rank] = Clock()
                continue
            offset, drift, middle = self._offset[at], self._drift[at], self._middle[at]
            residual = float(np.median(known))
            of[rank] = Clock(int(offset), float(drift), int(middle), residual, known.size)
        return Clocks(of, self._ranks[self._first])

    def _read(self) -> Floats:
        """All ends by the common clock, from the middle of the reference's, in ns."""
        base = self._middle + self._offset - self._middle[self._first]
        read: Floats = self._own + base[self._of] + self._drift[self._of] * self._own
        return read

    def _common(self) -> Floats:
        """The common end of each collective: the middle of those placed; NaN where none is."""
        table = pl.DataFrame({"at": self._collective, "end": self._read()})
        placed = table.filter(pl.Series(self._placed[self._of]))
        middle = placed.group_by("at").agg(pl.col("end").median())
        common = np.full(int(self._collective.max()) + 1, np.nan)
        common[middle["at"].to_numpy()] = middle["end"].to_numpy()
        return common

    def _fit(self, at: int, common: Floats) -> None:
        rows = self._rows[at]
        own, wanted = self._own[rows], common[self._collective[rows]]
        known = ~np.isnan(wanted)
        base = self._middle[self._first] - self._middle[at]
        offset, drift = _line(own[known].astype(np.float64), wanted[known] - own[known] + base)
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
