"""Detect the unit of a file's times, and convert integer nanoseconds.

The format's unit is the microsecond, whatever `displayTimeUnit` says: that is for viewers. Some
writers use integer nanoseconds all the same. The evidence is the clock, a copy's duration compared
to its bytes and bandwidth, and the length of the shortest calls; without it the format's unit is
assumed.

A file may hold both units, if two writers' files were merged. Then the events of one unit lose
their times: the offset between the two clocks is unknown.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from selftime.arrays import Flags, Ints
from selftime.ingest.events.arguments import Columns
from selftime.ingest.events.assemble import FileColumns
from selftime.ingest.events.event import NO_INT
from selftime.ingest.text.header import FIRST_EPOCH
from selftime.names import CALLS, OPERATORS

_PER_US: Final = 1_000
_LAST_EPOCH: Final = 4_102_444_800 * 10**9
"""The year 2100 in ns since the epoch: a later time shows that the unit is not microseconds."""
_NEAR: Final = 10
"""The most that a measured ratio may differ from 1 or 1,000 to count as evidence of a unit."""
_COMMON: Final = 100
"""The least number of calls of which some must be short."""
_SHORTEST: Final = 0.01
_LONG: Final = 100_000
"""ns: a program's shortest calls take some us; no program has its shortest 1% above 100 us."""
_APART: Final = 100
"""The least ratio of latest to earliest time in a file of two units, which differ by 1,000."""
_PROBED: Final = 4_096


def normalize_unit(columns: FileColumns, metadata: Mapping[str, Any]) -> None:
    """Convert all times of a file to ns; set those to null whose unit is not the others'."""
    start = columns.slices["start"]
    if columns.in_nanoseconds.size:
        _note_written_nanoseconds(columns)
    elif _is_whole(start[:_PROBED]) and _is_whole(start):
        why = _evidence(columns, metadata)
        if why:
            _divide_by_thousand(columns)
            columns.notes[f"times are integer nanoseconds, as {why} shows"] += start.size
            return
    _erase_other_unit(columns)


def _is_whole(times: Ints) -> bool:
    """Returns whether no time has a fraction of a microsecond; nanosecond values have none."""
    known = times[times != NO_INT]
    return bool(known.size) and not (known % _PER_US).any()


def _note_written_nanoseconds(columns: FileColumns) -> None:
    """Handle times since the epoch in integer ns: all times of the file, or only some."""
    start = columns.slices["start"]
    written = np.zeros(start.size, bool)
    written[columns.in_nanoseconds] = True
    rest = start[~written & (start != NO_INT)]
    if not rest.size:
        columns.notes["times are integer nanoseconds, as the clock shows"] += start.size
        return
    _erase_times(columns, written if 2 * written.sum() <= written.size else ~written)


def _erase_times(columns: FileColumns, selected: Flags) -> None:
    known = selected & (columns.slices["start"] != NO_INT)
    columns.slices["start"][selected] = NO_INT
    columns.slices["duration"][selected] = NO_INT
    columns.ruins["times in two units, us and ns: those of fewer events are not used"] += int(
        known.sum()
    )


def _evidence(columns: FileColumns, metadata: Mapping[str, Any]) -> str:
    """Returns the evidence that integers are nanoseconds; empty if there is none."""
    base = metadata.get("baseTimeNanoseconds")
    start = columns.slices["start"]
    last = int(start.max())
    if isinstance(base, int) and base >= FIRST_EPOCH and base + last > _LAST_EPOCH:
        return "the clock"
    copied = _by_bandwidth(columns)
    if copied is not None:
        return "the bandwidth of copies" if copied else ""
    return "the length of the shortest calls" if _are_calls_long(columns) else ""


def _by_bandwidth(columns: FileColumns) -> bool | None:
    """Returns whether bytes divided by GB/s match the durations as ns; None if unclear."""
    device = columns.groups.get("device")
    if device is None or not device["row"].size:
        return None
    duration = columns.slices["duration"][device["row"]]
    has_bandwidth = (device["bytes"] > 0) & (device["bandwidth"] > 0) & (duration > 0)
    if not has_bandwidth.any():
        return None
    expected = device["bytes"][has_bandwidth] / device["bandwidth"][has_bandwidth]
    factor = float(np.median(duration[has_bandwidth] / expected))
    if 1 / _NEAR < factor < _NEAR:
        return False
    return True if _PER_US / _NEAR < factor < _PER_US * _NEAR else None


def _are_calls_long(columns: FileColumns) -> bool:
    codes = columns.slices["category"]
    wanted = [
        code
        for code, text in _texts(columns, np.unique(codes))
        if text in CALLS or text in OPERATORS
    ]
    duration = columns.slices["duration"][np.isin(codes, wanted)]
    duration = duration[duration > 0]
    return duration.size >= _COMMON and float(np.quantile(duration, _SHORTEST)) > _LONG


def _texts(columns: FileColumns, codes: NDArray[np.uint32]) -> Iterator[tuple[int, str]]:
    if not codes.size:
        return iter(())
    return zip(codes.tolist(), columns.text(codes).cast(str).to_list(), strict=True)


def _divide_by_thousand(columns: FileColumns) -> None:
    """Divide times by 1,000 that were read as microseconds but are nanoseconds."""
    for times in _times(columns):
        known = times != NO_INT
        times[known] //= _PER_US
    columns.counters = [
        (time if time == NO_INT else time // _PER_US, thread, name, series, value)
        for time, thread, name, series, value in columns.counters
    ]


def _times(columns: FileColumns) -> Iterator[Ints]:
    yield columns.slices["start"]
    yield columns.slices["duration"]
    for name in ("memory", "instants"):
        group: Columns = columns.groups.get(name, {})
        if "time" in group:
            yield group["time"]


def _erase_other_unit(columns: FileColumns) -> None:
    """Detect two units in one file: its times then form two groups far apart.

    The groups are one recording if the later group, divided by 1,000, overlaps the earlier one, and
    its slices last a thousand times as long by name, or it was launched by the earlier. Otherwise
    they are two windows.
    """
    start = columns.slices["start"]
    known = start[start > 0]
    if not known.size or int(known.max()) < _APART * int(known.min()):
        return
    ordered = np.sort(known)
    steps = ordered[1:] / ordered[:-1]
    border = int(steps.argmax())
    if steps[border] < _NEAR:
        return
    late = start >= ordered[border + 1]
    early = (start > 0) & ~late
    meet = start[late].min() // _PER_US <= start[early].max()
    meet &= start[late].max() // _PER_US >= start[early].min()
    if meet and _is_whole(start[late]) and _is_of_two_units(columns, early, late):
        _erase_times(columns, late if 2 * late.sum() <= (late.sum() + early.sum()) else early)


def _is_of_two_units(columns: FileColumns, early: Flags, late: Flags) -> bool:
    name, duration = columns.slices["name"], columns.slices["duration"]
    shared = np.intersect1d(name[early & (duration > 0)], name[late & (duration > 0)])
    if shared.size:
        middles = [
            [np.median(duration[part & (name == one) & (duration > 0)]) for part in (early, late)]
            for one in shared[:_COMMON]
        ]
        factor = float(np.median([after / before for before, after in middles]))
        return _PER_US / _NEAR < factor < _PER_US * _NEAR
    return _is_launched_across(columns, early, late)


def _is_launched_across(columns: FileColumns, early: Flags, late: Flags) -> bool:
    """Returns whether device work of one group was launched by calls of the other."""
    calls, work = columns.groups.get("call"), columns.groups.get("device")
    if calls is None or work is None:
        return False
    launched = work["correlation"][late[work["row"]]]
    both = np.intersect1d(calls["correlation"][early[calls["row"]]], launched)
    return bool((both > 0).any())
