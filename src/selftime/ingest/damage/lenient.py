"""Read events whose values have other types than Kineto writes, keeping what can be understood.

Times as strings, arguments that are null or a list, names that are numbers, ids as text: each is
converted, or left out; the event itself stays.
"""

from collections.abc import Callable
from math import isfinite
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from selftime.ingest.events.event import (
    EMPTY_ARGS,
    NO_TEXT,
    Args,
    Event,
    Unknown,
    exact_type_of_phase,
)

_ARGS: Final = {field.encode_name: field for field in msgspec.structs.fields(Args)}


def lenient_events(objects: list[Any]) -> tuple[list[Event], list[tuple[str, str]]]:
    """Returns events from JSON values of any shape, and (reason, sample) of each value refused."""
    events: list[Event] = []
    refused: list[tuple[str, str]] = []
    for value in objects:
        if isinstance(value, dict):
            events.append(_event(value))
        else:
            refused.append(("not an object where an event should be", repr(value)[:80]))
    return events, refused


def _event(value: dict[str, Any]) -> Event:
    phase, cat = str(value.get("ph") or ""), _text(value.get("cat"))
    event_type = exact_type_of_phase(phase)
    if event_type is None:
        return Unknown(phase, cat)
    read: dict[str, Any] = {"cat": cat}
    for name in event_type.__struct_fields__:
        if name in _READ:
            read[name] = _READ[name](value.get(name, UNSET))
    event: Event = event_type(**read)
    return event


def _text(value: object) -> str | None:
    if value is None or value is UNSET:
        return None
    return value if isinstance(value, str) else str(value)


def _key(value: object) -> int | str | None:
    """Returns a process or thread id: 7.0 becomes 7; a value that is not a scalar becomes text."""
    if isinstance(value, str):
        whole, _, part = value.partition(".")
        return whole if part and not part.strip("0") and whole.lstrip("-").isdigit() else value
    if value is UNSET:
        return None
    plain = value is None or (isinstance(value, int) and not isinstance(value, bool))
    return value if plain else str(value)  # type: ignore[return-value]  # None or an integer


def _time(value: object) -> Raw:
    """Returns a time's text; floats arrive as text, and strings may hold numbers."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return Raw(b"null")
    return Raw(str(value).replace("\n", " ").encode("utf-8", "replace") or b"null")


def _id(value: object) -> Raw:
    return NO_TEXT if value is UNSET else Raw(msgspec.json.encode(value))


def _args(value: object) -> Raw:
    """Returns the arguments as valid JSON; null if they are not an object."""
    if not isinstance(value, dict):
        return EMPTY_ARGS if value is UNSET else Raw(b"null")
    kept = {}
    for name, found in value.items():
        declared = _ARGS.get(name)
        if declared is not None:
            read = _argument(declared.type, found)
            if read is not None:
                kept[name] = read
    return Raw(msgspec.json.encode(kept))


def _argument(declared: Any, value: Any) -> Any:
    """Returns the value converted to the type of its field; None if that fails."""
    if value is None or declared is Any:
        return value
    if declared is Raw:
        return Raw(msgspec.json.encode(value))
    if isinstance(value, str) and declared == int | str:
        return value
    convert = declared if declared in {str, float, bool} else int
    try:
        read = convert(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if convert is float and not isfinite(read) else read


_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "name": _text,
    "pid": _key,
    "tid": _key,
    "ts": _time,
    "dur": _time,
    "id": _id,
    "args": _args,
}
"""The conversion of each field of an event."""
