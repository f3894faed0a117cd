"""Events whose values are not of the type that Kineto writes: kept, with what can be understood.

Times as strings, arguments that are null or a list, names that are numbers, ids as text: each is
read as what it means, or left out; the event itself stays.
"""

from collections.abc import Callable
from math import isfinite
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from selftime.ingest.events.event import EMPTY, NO_TEXT, Args, Event, Unknown, of_phase

_ARGS: Final = {field.encode_name: field for field in msgspec.structs.fields(Args)}


def loosen(objects: list[Any]) -> tuple[list[Event], list[tuple[str, str]]]:
    """Events from JSON values of any shape, and for those that are no event: why, and a sample."""
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
    of = of_phase(phase)
    if of is None:
        return Unknown(phase, cat)
    read: dict[str, Any] = {"cat": cat}
    for name in of.__struct_fields__:
        if name in _READ:
            read[name] = _READ[name](value.get(name, UNSET))
    event: Event = of(**read)
    return event


def _text(value: object) -> str | None:
    if value is None or value is UNSET:
        return None
    return value if isinstance(value, str) else str(value)


def _key(value: object) -> int | str | None:
    """A process or thread: 7.0 is 7; anything that is no scalar is its text."""
    if isinstance(value, str):
        whole, _, part = value.partition(".")
        return whole if part and not part.strip("0") and whole.lstrip("-").isdigit() else value
    if value is UNSET:
        return None
    plain = value is None or (isinstance(value, int) and not isinstance(value, bool))
    return value if plain else str(value)  # type: ignore[return-value]  # None or an integer


def _time(value: object) -> Raw:
    """A time's text; floats arrive as text, and strings may hold numbers."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return Raw(b"null")
    return Raw(str(value).replace("\n", " ").encode("utf-8", "replace") or b"null")


def _id(value: object) -> Raw:
    return NO_TEXT if value is UNSET else Raw(msgspec.json.encode(value))


def _args(value: object) -> Raw:
    """The arguments as text that can be read, whatever was in them; null if they are no object."""
    if not isinstance(value, dict):
        return EMPTY if value is UNSET else Raw(b"null")
    kept = {}
    for name, found in value.items():
        declared = _ARGS.get(name)
        if declared is not None:
            read = _argument(declared.type, found)
            if read is not None:
                kept[name] = read
    return Raw(msgspec.json.encode(kept))


def _argument(declared: Any, value: Any) -> Any:
    """The value as its field wants it, or None."""
    if value is None or declared is Any:
        return value
    if declared is Raw:
        return Raw(msgspec.json.encode(value))
    if isinstance(value, str) and declared == int | str:
        return value
    way = declared if declared in {str, float, bool} else int
    try:
        read = way(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if way is float and not isfinite(read) else read


_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "name": _text,
    "pid": _key,
    "tid": _key,
    "ts": _time,
    "dur": _time,
    "id": _id,
    "args": _args,
}
"""How each field of an event is read."""
