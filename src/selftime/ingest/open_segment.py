"""Finds in a ledger the segment that was in progress when its process ended or was last seen.

While a segment lasts long, the ledger gets a line a second with what the segment holds so far. They
count only if no line tells the whole segment: the process was killed, or still runs. Where another
process saw the end, the segment lasts until then.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from selftime.ledger_format import AFTER_LAST_STEP, BEFORE_FIRST_STEP


def lines_of_open_segment(
    head: Mapping[str, Any], lines: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Returns lines that tell the last segment as if it had ended; none if it has.

    Args:
        head: The first line of the ledger.
        lines: The other lines.
    """
    began: object = head.get("began")
    closed = [segment for line in lines for segment in _starts_and_ends(line)]
    start: object = closed[-1][1] if closed else began
    if not _is_instant(start):
        return []
    told = [line for line in lines if _is_instant(line.get("until")) and line.get("open") == start]
    instants = [line["until"] for line in told]
    instants += [line["end"] for line in lines if _is_instant(line.get("end"))]
    until = max(instants, default=start)
    if until <= start:
        return []
    kind = AFTER_LAST_STEP if closed else BEFORE_FIRST_STEP
    if told and type(told[-1].get("kind")) is int:
        kind = told[-1]["kind"]
    counted = _times_within(told[-1].get("counted") if told else None, until - start)
    columns = {"start": [start], "duration": [until - start], "kind": [kind]}
    columns |= {name: [time] for name, time in counted.items()}
    return [{"segments": columns}, {"segment": start, "readings": _summed_readings(told)}]


def _starts_and_ends(line: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    told = line.get("segments")
    if not isinstance(told, dict):
        return
    starts, durations = told.get("start"), told.get("duration")
    if isinstance(starts, list) and isinstance(durations, list):
        for start, duration in zip(starts, durations, strict=False):
            if _is_instant(start) and _is_instant(duration):
                yield start, start + duration


def _times_within(counted: object, duration: int) -> dict[str, int]:
    """Returns times by activity, cut to what the segment lasts: another thread read them."""
    times, left = {}, duration
    for name, time in counted.items() if isinstance(counted, dict) else ():
        if _is_instant(time):
            times[name] = min(time, left)
            left -= times[name]
    return times


def _summed_readings(told: list[dict[str, Any]]) -> list[list[int]]:
    """Returns [activity, ns, number of samples]: each line has what came since the one before."""
    summed: dict[int, list[int]] = {}
    for line in told:
        for reading in line.get("readings") or ():
            if isinstance(reading, list) and len(reading) == 3 and all(map(_is_instant, reading)):
                known = summed.setdefault(reading[0], [0, 0])
                known[:] = known[0] + reading[1], known[1] + reading[2]
    return [[activity, *known] for activity, known in summed.items()]


def _is_instant(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < 1 << 62
