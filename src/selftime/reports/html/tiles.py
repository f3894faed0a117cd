"""The timeline in a report: the whole trace at finer and finer resolutions, each a table.

The page takes for what it draws the coarsest that is fine enough, else the finest that was carried,
and says then that the picture is thinned.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import polars as pl

from selftime.reports.html.tables import Table, page
from selftime.reports.page_data.rows import prepare
from selftime.trace import Trace
from selftime.views import VIEWS
from selftime.views.timeline import timeline

Level: TypeAlias = tuple[dict[str, Any], pl.DataFrame]
"""The options that a resolution was asked with, and its rows."""

_PIXELS: Final = 2048
"""The coarsest has so many, or up to twice as many: a wide screen."""
_STEP: Final = 1
"""Each resolution has pixels of half the time of the one before: one power of two."""
_MOST_ROWS: Final = 400_000
"""No report has room for more."""
_ELSEWHERE: Final = ("to", "to_track", "to_row", "to_time", "rows", "process")
"""Columns of the list of tracks and of flows."""


def tiles(trace: Trace) -> Iterator[Table]:
    """The list of tracks, then the coarsest resolution, then finer ones."""
    view = VIEWS["timeline"]
    tracks = timeline(trace, what="tracks")
    listed = prepare(tracks, view.columns)
    yield Table(1, view.name, {"what": "tracks"}, (page(listed, view, {"what": "tracks"}),))
    columns = tuple(column for column in view.columns if column.name not in _ELSEWHERE)
    levels = _apart(list(_levels(trace, *_extent(tracks))))
    for number, (options, found) in enumerate(levels):
        told = page(prepare(found, columns), view, options)
        yield Table(2 if number == 0 else 5 + number, view.name, options, (told,))


def _levels(trace: Trace, begin: int, end: int) -> Iterator[Level]:
    """What is visible at each resolution, from the coarsest to where nothing is merged."""
    coarsest = max(0, ((end - begin) // _PIXELS).bit_length() - 1)
    for level in range(coarsest, -_STEP, -_STEP):
        first, last, pixels = _window(begin, end, max(level, 0))
        found = timeline(trace, start=first, end=last, pixels=pixels)
        if found.height > _MOST_ROWS:
            return
        is_whole = not (found["count"] > 1).any()
        yield {"start": first, "end": last, "pixels": last - first if is_whole else pixels}, found
        if is_whole:
            return


def _apart(levels: list[Level]) -> list[Level]:
    """The finest, and of the coarser ones those that save at least half of the next one's rows."""
    kept = levels[-1:]
    for options, found in reversed(levels[:-1]):
        if found.height * 2 <= kept[0][1].height:
            kept.insert(0, (options, found))
    return kept


def _extent(tracks: pl.DataFrame) -> tuple[int, int]:
    """When what lies on the tracks begins, and the instant after its end."""
    end = pl.col("start") + pl.col("duration").fill_null(0)
    begin, last = tracks.select(begin=pl.col("start").min(), end=end.max()).row(0)
    return (0, 1) if begin is None else (begin, last + 1)


def _window(begin: int, end: int, level: int) -> tuple[int, int, int]:
    """The time widened to whole pixels of `2 ** level` ns, and how many these are."""
    first, last = begin >> level, -(-end >> level)
    return first << level, last << level, last - first
