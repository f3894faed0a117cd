"""Reads from the end of a run's ledger at which line the program was last, and for how long.

While a step, or what lies outside of steps, lasts long, the ledger gets a line each second with
what the stack showed since the line before. They are there when the process hangs or is killed.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from selftime.errors import UnreadableTrace
from selftime.flight_recorder import LastSighting, Place
from selftime.ledger_format import LEDGER_FORMAT


def read_last_sighting(data: bytes, rank: int | None, source: str) -> LastSighting:
    """Returns where a ledger saw its process last; its own rank holds before the one given.

    Raises:
        UnreadableTrace: It is no ledger, its rank is unknown, or it has no stack.
    """
    lines = _decoded(data)
    if not lines or lines[0].get("format") != LEDGER_FORMAT:
        raise UnreadableTrace("it is no ledger of a run")
    head = lines[0]
    told_rank = _number(head.get("rank"))
    rank = rank if told_rank is None else told_rank
    if rank is None:
        raise UnreadableTrace("it is the ledger of a process whose rank is unknown")
    activities = {
        line["activity"]: line for line in lines if _number(line.get("activity")) is not None
    }
    seen = _activity_and_time(lines, activities)
    if seen is None:
        raise UnreadableTrace("it is a ledger without a stack of its program")
    activity, standing_ns, seen_at = seen
    to_epoch = _number(head.get("time"), 0) - _number(head.get("clock"), 0)
    ends = [line for line in lines if _number(line.get("end")) is not None]
    return LastSighting(
        rank=rank,
        place=_place(activity),
        part=activity["part"] if isinstance(activity.get("part"), str) else "program",
        began_ns=_number(head.get("time"), 0),
        seen_ns=seen_at + to_epoch,
        last_ns=_last_instant(lines) + to_epoch,
        standing_ns=standing_ns,
        status=str(ends[-1].get("status")) if ends else None,
        source=source,
    )


def _activity_and_time(
    lines: list[dict[str, Any]], activities: Mapping[int, dict[str, Any]]
) -> tuple[dict[str, Any], int, int] | None:
    """Returns the last activity that a stack showed, its time in that segment, and when it was.

    Both are in ns, the latter on the clock of the ledger.
    """
    told = [line for line in lines if _readings(line)]
    opened = [line for line in told if "open" in line]
    samples = [line["samples"] for line in lines if isinstance(line.get("samples"), dict)]
    last_sample = max((_last_sample(sample) for sample in samples), default=(0, None))
    if opened and _number(opened[-1].get("until"), 0) >= last_sample[0]:
        start = opened[-1].get("open")
        last = max(_readings(opened[-1]), key=lambda reading: reading[1])[0]
        within = [
            reading for line in opened if line["open"] == start for reading in _readings(line)
        ]
        standing = sum(time for number, time, _ in within if number == last)
        until = _number(opened[-1].get("until"), 0)
        return (activities[last], standing, until) if last in activities else None
    instant, number = last_sample
    if number is not None and number in activities:
        return activities[number], 0, instant
    for line in reversed(told):
        if (number := _readings(line)[-1][0]) in activities:
            return activities[number], 0, _number(line.get("segment"), 0)
    return None


def _readings(line: Mapping[str, Any]) -> list[list[int]]:
    """Returns [number of the activity, ns, number of stacks] of each activity that a line tells."""
    told = line.get("readings")
    return [
        reading
        for reading in (told if isinstance(told, list) else ())
        if isinstance(reading, list) and len(reading) == 3 and None not in map(_number, reading)
    ]


def _last_sample(samples: Mapping[str, Any]) -> tuple[int, int | None]:
    instants, numbers = samples.get("at"), samples.get("activity")
    if not (isinstance(instants, list) and isinstance(numbers, list) and instants and numbers):
        return 0, None
    return _number(instants[-1], 0), _number(numbers[-1])


def _last_instant(lines: list[dict[str, Any]]) -> int:
    """Returns the last instant of the ledger on its own clock."""
    told = [_number(line.get(key), 0) for line in lines for key in ("until", "end", "clock")]
    sampled = [
        _last_sample(line["samples"])[0] for line in lines if isinstance(line.get("samples"), dict)
    ]
    return max((*told, *sampled), default=0)


def _place(activity: Mapping[str, Any]) -> Place | None:
    file, function = activity.get("file"), activity.get("function")
    if not isinstance(file, str) or not file:
        return None
    return Place(
        file, _number(activity.get("line")), function if isinstance(function, str) else None
    )


def _decoded(data: bytes) -> list[dict[str, Any]]:
    """Returns the lines of a ledger; one that is cut off is left out."""
    decoder = msgspec.json.Decoder()
    found = []
    for line in data.split(b"\n"):
        try:
            value = decoder.decode(line) if line.strip() else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def _number(value: Any, otherwise: Any = None) -> Any:
    return value if type(value) is int and 0 <= value < 1 << 62 else otherwise
