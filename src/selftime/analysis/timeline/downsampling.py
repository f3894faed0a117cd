"""Cells: what of lanes can be told apart at a width of a pixel.

An interval at least a pixel wide is a cell of its own. Narrower ones that begin within one pixel
are one cell. As the intervals of a lane are apart, only the last that begins within a pixel can be
a wide one: bounds are found by bisection, and no more intervals are read than cells are answered.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from selftime.analysis.timeline.lanes import Lanes
from selftime.arrays import Ints


@dataclass(frozen=True, slots=True)
class Window:
    """The time from `start` to before `end`, both whole pixels of `pixel` ns."""

    start: int
    end: int
    pixel: int

    @classmethod
    def of(cls, start: int, end: int, pixels: int) -> "Window":
        """The window widened to whole pixels, so that what is merged stays so when it moves.

        >>> Window.of(5, 95, 9)
        Window(start=0, end=100, pixel=10)
        """
        pixel = max(1, -((start - end) // pixels))
        return cls(start // pixel * pixel, -(-end // pixel) * pixel, pixel)


class Cells(NamedTuple):
    """Ranges of a lane's intervals, from `low` to before `high`, ordered; shapes (k,)."""

    low: Ints
    high: Ints


def cells(lanes: Lanes, window: Window, chosen: NDArray[np.bool_]) -> Cells:
    """The cells of the chosen lanes that can be seen in a window.

    A lane has at most two cells for each pixel, and one that began before the window.
    """
    low, high = _visible(lanes, window, np.flatnonzero(chosen))
    pixels = (window.end - window.start) // window.pixel
    crowded = high - low > 2 * pixels
    parts = [_of_few(lanes, window, low[~crowded], high[~crowded])]
    edges = window.start + window.pixel * np.arange(pixels + 1) if crowded.any() else low[:0]
    for first, last in zip(low[crowded].tolist(), high[crowded].tolist(), strict=True):
        at = first + np.searchsorted(lanes.start[first:last], edges)
        begin = np.unique(np.append(first, at))
        parts.append(begin[begin < last])
    begin = np.sort(np.concatenate(parts))
    upto = _next(begin, low, high)
    last = upto - 1
    wide = (upto - begin > 1) & (lanes.covered(last, upto) >= window.pixel)
    begin = np.sort(np.append(begin, last[wide]))
    return Cells(begin, _next(begin, low, high))


def _next(begin: Ints, low: Ints, high: Ints) -> Ints:
    """Where each cell ends: where the next begins, or its lane's visible part ends."""
    seen = high > low
    limit = high[seen][np.searchsorted(low[seen], begin, side="right") - 1] if seen.any() else begin
    upto = np.append(begin[1:], np.iinfo(np.int64).max)[: begin.size]
    return np.asarray(np.minimum(upto, limit))


def _visible(lanes: Lanes, window: Window, lane: Ints) -> Cells:
    """Of each lane the intervals that lie in the window, or partly."""
    low = _bisect(lanes, lane, window.start)
    first = lanes.bounds[lane]
    before = np.maximum(low - 1, first)
    reaches = (low > first) & (lanes.end(before) > window.start) if low.size else low > first
    return Cells(np.where(reaches, before, low), _bisect(lanes, lane, window.end))


def _bisect(lanes: Lanes, lane: Ints, when: int) -> Ints:
    """The first interval of each lane that begins at an instant or later."""
    low, high = lanes.bounds[lane], lanes.bounds[lane + 1]
    while (low < high).any():
        middle = (low + high) >> 1
        earlier = (low < high) & (lanes.start[np.minimum(middle, lanes.start.size - 1)] < when)
        low, high = np.where(earlier, middle + 1, low), np.where(earlier, high, middle)
    return low


def _of_few(lanes: Lanes, window: Window, low: Ints, high: Ints) -> Ints:
    """First interval of each pixel, of lanes that hold fewer intervals than are worth a search."""
    many = high - low
    lane = np.repeat(np.arange(low.size), many)
    at = np.repeat(low - (np.cumsum(many) - many), many) + np.arange(lane.size)
    pixel = lanes.start[at] // window.pixel
    is_first = np.append(True, (np.diff(lane) != 0) | (np.diff(pixel) != 0))
    return np.asarray(at[is_first[: at.size]])


class Longest:
    """Finds the longest of a range of intervals, from the longest of two, of four, of eight."""

    __slots__ = ("_lanes", "_levels")

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        best = np.arange(lanes.start.size, dtype=np.int32)
        length = np.diff(lanes.before)
        self._levels = [best]
        while best.size > 1:
            pairs = best.size // 2 * 2
            later = length[1:pairs:2] > length[:pairs:2]
            best = np.where(later, best[1:pairs:2], best[:pairs:2])
            length = np.where(later, length[1:pairs:2], length[:pairs:2])
            self._levels.append(best)

    def within(self, these: Cells) -> Ints:
        """The longest interval of each cell; of equal ones the earliest."""
        best = these.low.copy()
        asked, low, high = np.arange(best.size), these.low, these.high
        for level in self._levels:
            for node, is_alone in ((low, low & 1 == 1), (high - 1, high & 1 == 1)):
                mine = asked[is_alone]
                best[mine] = self._longer(best[mine], level[node[is_alone]].astype(np.int64))
            low, high = (low + 1) >> 1, high >> 1
            left = low < high
            asked, low, high = asked[left], low[left], high[left]
        return best

    def _longer(self, one: Ints, other: Ints) -> Ints:
        more = self._lanes.covered(other, other + 1) - self._lanes.covered(one, one + 1)
        return np.where((more > 0) | ((more == 0) & (other < one)), other, one)
