"""Converts events whose JSON values have unexpected types, such as a time given as text.

Times as strings, arguments that are null or a list, names that are numbers, ids as text: each is
converted, or left out; the event itself stays.
"""

from collections.abc import Callable
from math import isfinite
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from selftime.ingest.events.event_types import (
    EMPTY_ARGS,
    NO_TEXT,
    Event,
    EventArguments,
    UnknownEvent,
    exact_event_type_of_phase,
)

_ARGUMENT_FIELD_BY_JSON_NAME: Final = {
    field.encode_name: field for field in msgspec.structs.fields(EventArguments)
}


def events_of_mistyped_objects(objects: list[Any]) -> tuple[list[Event], list[tuple[str, str]]]:
    """Returns the events among JSON values, and (reason, excerpt) of each value that is none."""
    events: list[Event] = []
    refused: list[tuple[str, str]] = []
    for value in objects:
        if isinstance(value, dict):
            events.append(_event_of_object(value))
        else:
            refused.append(("a value that is not an object among the events", repr(value)[:80]))
    return events, refused


def _event_of_object(value: dict[str, Any]) -> Event:
    phase, cat = str(value.get("ph") or ""), _text_or_none(value.get("cat"))
    event_type = exact_event_type_of_phase(phase)
    if event_type is None:
        return UnknownEvent(phase, cat)
    read: dict[str, Any] = {"cat": cat}
    for name in event_type.__struct_fields__:
        if name in _CONVERSION_BY_EVENT_FIELD:
            read[name] = _CONVERSION_BY_EVENT_FIELD[name](value.get(name, UNSET))
    event: Event = event_type(**read)
    return event


def _text_or_none(value: object) -> str | None:
    if value is None or value is UNSET:
        return None
    return value if isinstance(value, str) else str(value)


def _process_or_thread_id(value: object) -> int | str | None:
    """Returns a process or thread id: 7.0 becomes 7; a list or an object becomes text."""
    if isinstance(value, str):
        whole, _, part = value.partition(".")
        return whole if part and not part.strip("0") and whole.lstrip("-").isdigit() else value
    if value is UNSET:
        return None
    plain = value is None or (isinstance(value, int) and not isinstance(value, bool))
    return value if plain else str(value)  # type: ignore[return-value]  # None or an integer


def _time_json(value: object) -> Raw:
    """Returns a time as JSON text; `null` for a value that is not a number or a string."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return Raw(b"null")
    return Raw(str(value).replace("\n", " ").encode("utf-8", "replace") or b"null")


def _event_id_json(value: object) -> Raw:
    return NO_TEXT if value is UNSET else Raw(msgspec.json.encode(value))


def _arguments_json(value: object) -> Raw:
    """Returns an event's arguments as valid JSON; `null` if they are not an object."""
    if not isinstance(value, dict):
        return EMPTY_ARGS if value is UNSET else Raw(b"null")
    kept = {}
    for name, found in value.items():
        declared = _ARGUMENT_FIELD_BY_JSON_NAME.get(name)
        if declared is not None:
            read = _converted_argument(declared.type, found)
            if read is not None:
                kept[name] = read
    return Raw(msgspec.json.encode(kept))


def _converted_argument(declared_type: Any, value: Any) -> Any:
    """Returns an event's argument converted to its declared type; None if that is impossible."""
    if value is None or declared_type is Any:
        return value
    if declared_type is Raw:
        return Raw(msgspec.json.encode(value))
    if isinstance(value, str) and declared_type == int | str:
        return value
    convert = declared_type if declared_type in {str, float, bool} else int
    try:
        read = convert(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if convert is float and not isfinite(read) else read


_CONVERSION_BY_EVENT_FIELD: Final[dict[str, Callable[[Any], Any]]] = {
    "name": _text_or_none,
    "pid": _process_or_thread_id,
    "tid": _process_or_thread_id,
    "ts": _time_json,
    "dur": _time_json,
    "id": _event_id_json,
    "args": _arguments_json,
}
"""Maps each field of an event to the function that converts its value to the type Kineto writes."""
