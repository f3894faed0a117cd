"""The unit of a file's times, where it is not microseconds.

The format's unit is the microsecond, whatever `displayTimeUnit` says: that is for viewers. Some
writers count integer nanoseconds all the same. What shows it is the clock, what a copy's bandwidth
says of its duration, and how long the shortest calls take; without such evidence the format holds.

A file may hold both, as of two writers merged. Then the events of one of the two units have no
time: nothing tells how their clocks lie to each other.
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
"""The year 2100 in ns since the epoch; no clock shows a later time by microseconds."""
_NEAR: Final = 10
"""Measured against told within this factor is one unit or the other: they differ by 1,000."""
_COMMON: Final = 100
"""Of so many calls some are short."""
_SHORTEST: Final = 0.01
_LONG: Final = 100_000
"""A program's shortest calls take some us; by far none has its shortest hundredth above 100 us."""
_APART: Final = 100
"""Times in two units are a factor of 1,000 apart, less what the recording's length adds."""
_PROBED: Final = 4_096


def settle_unit(columns: FileColumns, metadata: Mapping[str, Any]) -> None:
    """Bring all times of a file to nanoseconds, or forget those whose unit is not the others'."""
    start = columns.slices["start"]
    if columns.in_nanoseconds.size:
        _settle_written(columns)
    elif _is_whole(start[:_PROBED]) and _is_whole(start):
        why = _evidence(columns, metadata)
        if why:
            _divide(columns)
            columns.notes[f"times are integer nanoseconds, as {why} shows"] += start.size
            return
    _part(columns)


def _is_whole(times: Ints) -> bool:
    """Whether no time has a fraction of a microsecond: nanoseconds have none."""
    known = times[times != NO_INT]
    return bool(known.size) and not (known % _PER_US).any()


def _settle_written(columns: FileColumns) -> None:
    """Times since the epoch, which tell their unit one by one: all in nanoseconds, or some."""
    start = columns.slices["start"]
    written = np.zeros(start.size, bool)
    written[columns.in_nanoseconds] = True
    rest = start[~written & (start != NO_INT)]
    if not rest.size:
        columns.notes["times are integer nanoseconds, as the clock shows"] += start.size
        return
    _forget(columns, written if 2 * written.sum() <= written.size else ~written)


def _forget(columns: FileColumns, those: Flags) -> None:
    known = those & (columns.slices["start"] != NO_INT)
    columns.slices["start"][those] = NO_INT
    columns.slices["duration"][those] = NO_INT
    columns.ruins["times in two units, us and ns: those of fewer events are not used"] += int(
        known.sum()
    )


def _evidence(columns: FileColumns, metadata: Mapping[str, Any]) -> str:
    """What shows that whole numbers are nanoseconds; empty if nothing does."""
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
    """Whether bytes by bandwidth, which is in GB/s, give the durations read as nanoseconds."""
    device = columns.groups.get("device")
    if device is None or not device["row"].size:
        return None
    duration = columns.slices["duration"][device["row"]]
    told = (device["bytes"] > 0) & (device["bandwidth"] > 0) & (duration > 0)
    if not told.any():
        return None
    expected = device["bytes"][told] / device["bandwidth"][told]
    factor = float(np.median(duration[told] / expected))
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


def _divide(columns: FileColumns) -> None:
    """Times that were read as microseconds are a thousandth of that."""
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


def _part(columns: FileColumns) -> None:
    """Times that count from one zero in two units fall in two groups far apart.

    They are of one recording if the later group, divided by 1,000, lies where the earlier one does,
    and lasts a thousand times as long by name, or is launched by it. Else they are two windows.
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
        _forget(columns, late if 2 * late.sum() <= (late.sum() + early.sum()) else early)


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
    """Whether work of the one group was launched by calls of the other."""
    calls, work = columns.groups.get("call"), columns.groups.get("device")
    if calls is None or work is None:
        return False
    launched = work["correlation"][late[work["row"]]]
    both = np.intersect1d(calls["correlation"][early[calls["row"]]], launched)
    return bool((both > 0).any())
