"""Detects whether a file's times are in microseconds or nanoseconds, and corrects them.

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

from selftime.array_types import Flags, Ints
from selftime.ingest.events.arguments import Columns
from selftime.ingest.events.chunk_merging import FileEventColumns
from selftime.ingest.events.event_types import NO_INT
from selftime.ingest.text.trace_header import EARLIEST_EPOCH_TIME_NS
from selftime.names import OPERATOR_CATEGORIES, RUNTIME_CALL_CATEGORIES

_NS_PER_US: Final = 1_000
_MAX_PLAUSIBLE_EPOCH_TIME_NS: Final = 4_102_444_800 * 10**9
"""The year 2100 as a Unix time in ns; a later time shows that the file's unit is not microseconds.
"""
_MAX_UNIT_RATIO_ERROR_FACTOR: Final = 10
"""Largest factor by which a ratio of durations may differ from 1 or 1,000 and still show the unit.
"""
_MIN_CALLS_TO_INFER_TIME_UNIT: Final = 100
"""Smallest number of calls whose durations show the unit; among so many calls, some are short."""
_QUANTILE_OF_SHORTEST_CALLS: Final = 0.01
_MAX_PLAUSIBLE_SHORT_CALL_NS: Final = 100_000
"""Longest plausible duration, in ns, of a program's shortest 1 % of calls."""
_MIN_RATIO_OF_LATEST_TO_EARLIEST_TIME: Final = 100
"""Smallest ratio of latest to earliest time at which a file can hold two units, which differ by
1,000.
"""
_NUMBER_OF_TIMES_CHECKED_FIRST: Final = 4_096


def normalize_time_unit(columns: FileEventColumns, metadata: Mapping[str, Any]) -> None:
    """Converts a file's times to ns in place; sets times in the rarer of two units to null."""
    start = columns.slices["start"]
    if columns.rows_written_in_ns.size:
        _handle_times_written_in_nanoseconds(columns)
    elif _are_whole_microseconds(
        start[:_NUMBER_OF_TIMES_CHECKED_FIRST]
    ) and _are_whole_microseconds(start):
        why = _evidence_of_nanoseconds(columns, metadata)
        if why:
            _divide_all_times_by_thousand(columns)
            columns.oddity_counts[f"times are integer nanoseconds, as {why} shows"] += start.size
            return
    _set_times_of_rarer_unit_to_null(columns)


def _are_whole_microseconds(times: Ints) -> bool:
    """Returns whether all times (in ns) are whole numbers of microseconds."""
    known = times[times != NO_INT]
    return bool(known.size) and not (known % _NS_PER_US).any()


def _handle_times_written_in_nanoseconds(columns: FileEventColumns) -> None:
    """Sets times of the rarer unit to null if only part of a file's times are in integer ns."""
    start = columns.slices["start"]
    written = np.zeros(start.size, bool)
    written[columns.rows_written_in_ns] = True
    rest = start[~written & (start != NO_INT)]
    if not rest.size:
        columns.oddity_counts["times are integer nanoseconds, as the clock shows"] += start.size
        return
    _set_times_of_second_unit_to_null(
        columns, written if 2 * written.sum() <= written.size else ~written
    )


def _set_times_of_second_unit_to_null(columns: FileEventColumns, is_erased: Flags) -> None:
    known = is_erased & (columns.slices["start"] != NO_INT)
    columns.slices["start"][is_erased] = NO_INT
    columns.slices["duration"][is_erased] = NO_INT
    columns.invalidating_fault_counts[
        "times in two units, us and ns: those of fewer events are not used"
    ] += int(known.sum())


def _evidence_of_nanoseconds(columns: FileEventColumns, metadata: Mapping[str, Any]) -> str:
    """Returns text that says what shows that the file's times are in ns; empty if nothing does."""
    base = metadata.get("baseTimeNanoseconds")
    start = columns.slices["start"]
    last = int(start.max())
    if (
        isinstance(base, int)
        and base >= EARLIEST_EPOCH_TIME_NS
        and base + last > _MAX_PLAUSIBLE_EPOCH_TIME_NS
    ):
        return "the clock"
    copied = _do_copies_show_nanoseconds(columns)
    if copied is not None:
        return "the bandwidth of copies" if copied else ""
    return (
        "the length of the shortest calls" if _are_shortest_calls_implausibly_long(columns) else ""
    )


def _do_copies_show_nanoseconds(columns: FileEventColumns) -> bool | None:
    """Returns whether copies' bytes and bandwidths show durations in ns; None if inconclusive."""
    device = columns.columns_by_group.get("device")
    if device is None or not device["row"].size:
        return None
    duration = columns.slices["duration"][device["row"]]
    has_bandwidth = (device["bytes"] > 0) & (device["bandwidth"] > 0) & (duration > 0)
    if not has_bandwidth.any():
        return None
    expected = device["bytes"][has_bandwidth] / device["bandwidth"][has_bandwidth]
    factor = float(np.median(duration[has_bandwidth] / expected))
    if 1 / _MAX_UNIT_RATIO_ERROR_FACTOR < factor < _MAX_UNIT_RATIO_ERROR_FACTOR:
        return False
    return (
        True
        if _NS_PER_US / _MAX_UNIT_RATIO_ERROR_FACTOR
        < factor
        < _NS_PER_US * _MAX_UNIT_RATIO_ERROR_FACTOR
        else None
    )


def _are_shortest_calls_implausibly_long(columns: FileEventColumns) -> bool:
    codes = columns.slices["category"]
    wanted = [
        code
        for code, text in _distinct_codes_and_strings(columns, np.unique(codes))
        if text in RUNTIME_CALL_CATEGORIES or text in OPERATOR_CATEGORIES
    ]
    duration = columns.slices["duration"][np.isin(codes, wanted)]
    duration = duration[duration > 0]
    return (
        duration.size >= _MIN_CALLS_TO_INFER_TIME_UNIT
        and float(np.quantile(duration, _QUANTILE_OF_SHORTEST_CALLS)) > _MAX_PLAUSIBLE_SHORT_CALL_NS
    )


def _distinct_codes_and_strings(
    columns: FileEventColumns, codes: NDArray[np.uint32]
) -> Iterator[tuple[int, str]]:
    if not codes.size:
        return iter(())
    return zip(codes.tolist(), columns.decode_strings(codes).cast(str).to_list(), strict=True)


def _divide_all_times_by_thousand(columns: FileEventColumns) -> None:
    """Divides by 1,000, in place, all times of a file whose times are in nanoseconds."""
    for times in _time_columns(columns):
        known = times != NO_INT
        times[known] //= _NS_PER_US
    columns.counter_samples = [
        (time if time == NO_INT else time // _NS_PER_US, thread, name, series, value)
        for time, thread, name, series, value in columns.counter_samples
    ]


def _time_columns(columns: FileEventColumns) -> Iterator[Ints]:
    yield columns.slices["start"]
    yield columns.slices["duration"]
    for name in ("memory", "instants"):
        group: Columns = columns.columns_by_group.get(name, {})
        if "time" in group:
            yield group["time"]


def _set_times_of_rarer_unit_to_null(columns: FileEventColumns) -> None:
    """Sets the times of the rarer unit to null, if a file's times are in two units.

    The times of such a file form two groups far apart. The groups are one recording if the later
    group, divided by 1,000, overlaps the earlier one, and its slices last a thousand times as long
    by name, or it was launched by the earlier. Otherwise they are two windows.
    """
    start = columns.slices["start"]
    known = start[start > 0]
    if not known.size or int(known.max()) < _MIN_RATIO_OF_LATEST_TO_EARLIEST_TIME * int(
        known.min()
    ):
        return
    ordered = np.sort(known)
    steps = ordered[1:] / ordered[:-1]
    border = int(steps.argmax())
    if steps[border] < _MAX_UNIT_RATIO_ERROR_FACTOR:
        return
    late = start >= ordered[border + 1]
    early = (start > 0) & ~late
    meet = start[late].min() // _NS_PER_US <= start[early].max()
    meet &= start[late].max() // _NS_PER_US >= start[early].min()
    if (
        meet
        and _are_whole_microseconds(start[late])
        and _do_groups_differ_in_time_unit(columns, early, late)
    ):
        _set_times_of_second_unit_to_null(
            columns, late if 2 * late.sum() <= (late.sum() + early.sum()) else early
        )


def _do_groups_differ_in_time_unit(
    columns: FileEventColumns, is_early: Flags, is_late: Flags
) -> bool:
    name, duration = columns.slices["name"], columns.slices["duration"]
    shared = np.intersect1d(name[is_early & (duration > 0)], name[is_late & (duration > 0)])
    if shared.size:
        middles = [
            [
                np.median(duration[part & (name == one) & (duration > 0)])
                for part in (is_early, is_late)
            ]
            for one in shared[:_MIN_CALLS_TO_INFER_TIME_UNIT]
        ]
        factor = float(np.median([after / before for before, after in middles]))
        return (
            _NS_PER_US / _MAX_UNIT_RATIO_ERROR_FACTOR
            < factor
            < _NS_PER_US * _MAX_UNIT_RATIO_ERROR_FACTOR
        )
    return _do_early_calls_launch_late_work(columns, is_early, is_late)


def _do_early_calls_launch_late_work(
    columns: FileEventColumns, is_early: Flags, is_late: Flags
) -> bool:
    """Returns whether a call flagged `is_early` launched device work flagged `is_late`."""
    calls, work = columns.columns_by_group.get("call"), columns.columns_by_group.get("device")
    if calls is None or work is None:
        return False
    launched = work["correlation"][is_late[work["row"]]]
    both = np.intersect1d(calls["correlation"][is_early[calls["row"]]], launched)
    return bool((both > 0).any())
