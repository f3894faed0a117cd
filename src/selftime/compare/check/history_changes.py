"""Finds in a history the commits at which what a step takes changed.

Counts are exact, so every other value is a change, unless a count differs so often that it varies
by itself. Times change where `change_points` says so, and by a share that matters. Times of other
machines than that of the newest run are left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from selftime.compare.change_points import MAX_VALUES, change_points
from selftime.compare.check.history_files import Commit, History, HistoryEntry
from selftime.compare.check.measured_runs import is_time

_LARGEST_SHARE_OF_EXACT: Final = 0.25
"""Share of successive values that differ, above which a count is no exact one."""
_MOST_EXACT_CHANGES_OF_FEW: Final = 2
"""The same as a number, for histories of a few commits."""
_LARGEST_MOVE_OF_CHANGE: Final = 2
"""By how many commits a change that was known already may be found elsewhere with more values."""


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """A commit of a history, or a run without one, and the median of its runs."""

    commit: Commit | None
    recorded_at: str
    value: float
    runs: int

    @property
    def key(self) -> str:
        """Returns what tells the point from others: the commit, or the time of the recording."""
        return self.recorded_at if self.commit is None else self.commit.id


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """A commit at which a measure changed its level."""

    measure: str
    index: int
    """Index in the points of the series of the first one with the new level."""
    key: str
    """The key of that point."""
    before: float
    after: float
    """Medians of the levels before and after."""
    chance: float | None
    """The chance of such a change in random order; None of an exact count."""
    is_new: bool = False
    """Whether the newest runs show it first."""

    @property
    def is_worse(self) -> bool:
        return self.after > self.before


@dataclass(frozen=True, slots=True)
class HistorySeries:
    """A measure over the commits of a history, and where it changed."""

    measure: str
    points: tuple[HistoryPoint, ...]
    changes: tuple[HistoryChange, ...]


@dataclass(frozen=True, slots=True)
class HistoryReport:
    """All measures of a history."""

    folder: str
    entries: int
    series: tuple[HistorySeries, ...]
    notes: tuple[str, ...]
    judges_times: bool = False
    """Whether a time that became slower counts as a regression, and not counts alone."""

    @property
    def changes(self) -> tuple[tuple[HistorySeries, HistoryChange], ...]:
        return tuple((series, change) for series in self.series for change in series.changes)

    @property
    def has_new_regression(self) -> bool:
        """Returns whether the newest runs show first that a commit made something larger."""
        return any(
            change.is_new and change.is_worse and (self.judges_times or not is_time(series.measure))
            for series, change in self.changes
        )


def history_report(
    folder: str,
    history: History,
    new: Sequence[HistoryEntry],
    *,
    least_change: float,
    judges_times: bool = False,
) -> HistoryReport:
    """Returns the measures of a history with their changes.

    Args:
        folder: Where the history is kept.
        history: The runs, with the new ones.
        new: The runs that are checked now, in comparison to which changes are new.
        least_change: The smallest change of a time that matters, as a ratio.
        judges_times: Whether slower times are regressions.
    """
    newest = new[-1] if new else history.entries[-1]
    names = [*newest.run.measures, *newest.run.run_measures]
    new_names = {entry.file_name for entry in new}
    alike = [
        entry
        for entry in history.entries
        if _has_same_machine(entry, newest) and not entry.run.waited_for_cores
    ]
    series = []
    for name in names:
        entries = alike if is_time(name) else history.entries
        points = _points(entries, name)[-MAX_VALUES:]
        older = _points([one for one in entries if one.file_name not in new_names], name)
        found = _changes(name, points, least_change)
        known = _changes(name, older[-MAX_VALUES:], least_change)
        changes = tuple(replace(one, is_new=not _is_known(one, known)) for one in found)
        series.append(HistorySeries(name, points, changes))
    notes = [*history.left_out, *_notes_on_times(history.entries, newest)]
    return HistoryReport(folder, len(history.entries), tuple(series), tuple(notes), judges_times)


def _has_same_machine(entry: HistoryEntry, newest: HistoryEntry) -> bool:
    machines = (
        (one.devices, one.processor, one.cores, one.threads, one.recorded)
        for one in (entry.run.comparability, newest.run.comparability)
    )
    return next(machines) == next(machines)


def _notes_on_times(entries: Sequence[HistoryEntry], newest: HistoryEntry) -> Iterator[str]:
    """Yields which runs are left out of times."""
    others = [one for one in entries if not _has_same_machine(one, newest)]
    waited = [one for one in entries if one not in others and one.run.waited_for_cores]
    for runs, why in (
        (others, "on another machine than the newest"),
        (waited, "while other programs had the cores that they waited for"),
    ):
        if runs:
            yield f"left out of times: {len(runs)} run{'' if len(runs) == 1 else 's'} {why}"


def _points(entries: Sequence[HistoryEntry], name: str) -> tuple[HistoryPoint, ...]:
    """Returns a point for each commit, in order; runs without one are points of their own."""
    grouped: dict[tuple[str, ...], list[HistoryEntry]] = {}
    for entry in entries:
        if entry.run.figure(name) is not None:
            commit = entry.commit
            is_own = commit is None or commit.has_changes
            key = (entry.file_name,) if is_own or commit is None else ("commit", commit.id)
            grouped.setdefault(key, []).append(entry)
    return tuple(
        HistoryPoint(
            own[0].commit,
            own[0].recorded_at,
            float(np.median([one.run.figure(name) for one in own])),
            len(own),
        )
        for own in grouped.values()
    )


def _changes(
    name: str, points: Sequence[HistoryPoint], least_change: float
) -> tuple[HistoryChange, ...]:
    """Returns the changes of a measure."""
    if not points:
        return ()
    values = np.array([point.value for point in points])
    found: tuple[tuple[int, float | None], ...] = tuple(
        (int(index), None) for index in np.flatnonzero(np.diff(values)) + 1
    )
    varies = len(found) > max(_MOST_EXACT_CHANGES_OF_FEW, _LARGEST_SHARE_OF_EXACT * values.size)
    if is_time(name) or varies:
        found = tuple((one.index, one.chance) for one in change_points(values))
    borders = [0, *(index for index, _ in found), values.size]
    levels = [float(np.median(values[begin:end])) for begin, end in pairwise(borders)]
    return tuple(
        HistoryChange(name, index, points[index].key, before, after, chance)
        for (index, chance), (before, after) in zip(found, pairwise(levels), strict=True)
        if chance is None or abs(after - before) >= least_change * before
    )


def _is_known(change: HistoryChange, known: Sequence[HistoryChange]) -> bool:
    """Returns whether a change was found before: an exact one there, another near it."""
    return any(
        change.key == one.key
        or (
            change.chance is not None
            and change.is_worse == one.is_worse
            and abs(change.index - one.index) <= _LARGEST_MOVE_OF_CHANGE
        )
        for one in known
    )
