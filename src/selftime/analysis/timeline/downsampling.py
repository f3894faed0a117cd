"""Merges intervals of a timeline row into bins, each drawn as one bar at least a pixel wide.

An interval at least a pixel wide is a bin of its own. Narrower ones that begin within one pixel
are one bin. Because the intervals of a lane are disjoint, only the last that begins within a pixel
can be wide. So bounds are found by bisection, and no more intervals are read than bins returned.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from selftime.analysis.timeline.lanes import TimelineLanes
from selftime.array_types import Ints


@dataclass(frozen=True, slots=True)
class TimelineWindow:
    """The visible time from `start` to before `end` (ns); both are multiples of `pixel`, in ns."""

    start: int
    end: int
    pixel: int

    @classmethod
    def of(cls, start: int, end: int, pixels: int) -> "TimelineWindow":
        """Returns the window, widened so that its start and end are whole pixels.

        >>> TimelineWindow.of(5, 95, 9)
        TimelineWindow(start=0, end=100, pixel=10)
        """
        pixel = max(1, -((start - end) // pixels))
        return cls(start // pixel * pixel, -(-end // pixel) * pixel, pixel)


class TimelineBins(NamedTuple):
    """Timeline bars; each merges the intervals from index `low` to before `high` of one lane."""

    low: Ints
    high: Ints


def visible_timeline_bins(
    lanes: TimelineLanes, window: TimelineWindow, lane_flags: NDArray[np.bool_]
) -> TimelineBins:
    """Returns the bins (bars of merged intervals) that a window shows of the selected lanes.

    A lane has at most two bins per pixel, and one that began before the window.
    """
    low, high = _visible_interval_ranges(lanes, window, np.flatnonzero(lane_flags))
    pixels = (window.end - window.start) // window.pixel
    crowded = high - low > 2 * pixels
    parts = [_first_intervals_of_pixels(lanes, window, low[~crowded], high[~crowded])]
    edges = window.start + window.pixel * np.arange(pixels + 1) if crowded.any() else low[:0]
    for first, last in zip(low[crowded].tolist(), high[crowded].tolist(), strict=True):
        at = first + np.searchsorted(lanes.start[first:last], edges)
        begin = np.unique(np.append(first, at))
        parts.append(begin[begin < last])
    begin = np.sort(np.concatenate(parts))
    upto = _end_indexes_of_bins(begin, low, high)
    last = upto - 1
    wide = (upto - begin > 1) & (lanes.total_length(last, upto) >= window.pixel)
    begin = np.sort(np.append(begin, last[wide]))
    return TimelineBins(begin, _end_indexes_of_bins(begin, low, high))


def _end_indexes_of_bins(bin_begins: Ints, range_begins: Ints, range_ends: Ints) -> Ints:
    """Returns the end index of each bin: where the next bin begins, or where its range ends."""
    seen = range_ends > range_begins
    limit = (
        range_ends[seen][np.searchsorted(range_begins[seen], bin_begins, side="right") - 1]
        if seen.any()
        else bin_begins
    )
    upto = np.append(bin_begins[1:], np.iinfo(np.int64).max)[: bin_begins.size]
    return np.asarray(np.minimum(upto, limit))


def _visible_interval_ranges(
    lanes: TimelineLanes, window: TimelineWindow, lane_numbers: Ints
) -> TimelineBins:
    """Returns for each lane the index range of the intervals that overlap the window."""
    low = _first_interval_beginning_at(lanes, lane_numbers, window.start)
    first = lanes.bounds[lane_numbers]
    before = np.maximum(low - 1, first)
    reaches = (
        (low > first) & (lanes.interval_ends(before) > window.start) if low.size else low > first
    )
    return TimelineBins(
        np.where(reaches, before, low),
        _first_interval_beginning_at(lanes, lane_numbers, window.end),
    )


def _first_interval_beginning_at(lanes: TimelineLanes, lane_numbers: Ints, instant: int) -> Ints:
    """Returns for each lane the index of its first interval that begins at or after an instant."""
    low, high = lanes.bounds[lane_numbers], lanes.bounds[lane_numbers + 1]
    while (low < high).any():
        middle = (low + high) >> 1
        earlier = (low < high) & (lanes.start[np.minimum(middle, lanes.start.size - 1)] < instant)
        low, high = np.where(earlier, middle + 1, low), np.where(earlier, high, middle)
    return low


def _first_intervals_of_pixels(
    lanes: TimelineLanes, window: TimelineWindow, range_begins: Ints, range_ends: Ints
) -> Ints:
    """Returns the index of the first interval that begins in each pixel of each lane."""
    many = range_ends - range_begins
    lane = np.repeat(np.arange(range_begins.size), many)
    at = np.repeat(range_begins - (np.cumsum(many) - many), many) + np.arange(lane.size)
    pixel = lanes.start[at] // window.pixel
    is_first = np.append(True, (np.diff(lane) != 0) | (np.diff(pixel) != 0))
    return np.asarray(at[is_first[: at.size]])


class LongestIntervalInRange:
    """Finds the longest interval in any index range, with a precomputed table per power of two."""

    __slots__ = ("_lanes", "_levels")

    def __init__(self, lanes: TimelineLanes) -> None:
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

    def longest_of_bins(self, bins: TimelineBins) -> Ints:
        """Returns the index of the longest interval in each bin; of equal ones the first."""
        best = bins.low.copy()
        asked, low, high = np.arange(best.size), bins.low, bins.high
        for level in self._levels:
            for node, is_alone in ((low, low & 1 == 1), (high - 1, high & 1 == 1)):
                mine = asked[is_alone]
                best[mine] = self._longer_interval_of(
                    best[mine], level[node[is_alone]].astype(np.int64)
                )
            low, high = (low + 1) >> 1, high >> 1
            left = low < high
            asked, low, high = asked[left], low[left], high[left]
        return best

    def _longer_interval_of(self, first: Ints, second: Ints) -> Ints:
        more = self._lanes.total_length(second, second + 1) - self._lanes.total_length(
            first, first + 1
        )
        return np.where((more > 0) | ((more == 0) & (second < first)), second, first)
