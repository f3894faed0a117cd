"""Events whose values are not of the type that Kineto writes: kept, with what can be understood.

Times as strings, arguments that are null or a list, names that are numbers, ids as text: each is
read as what it means, or left out; the event itself stays.
"""

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from selftime.ingest.events.event import NO_TEXT, Args, ExactEvent

__all__ = ["loosen"]

_ARGS: Final = {field.encode_name: field for field in msgspec.structs.fields(Args)}


def loosen(objects: list[Any]) -> tuple[list[ExactEvent], list[tuple[str, str]]]:
    """Events from JSON values of any shape, and for those that are no event: why, and a sample."""
    events: list[ExactEvent] = []
    refused: list[tuple[str, str]] = []
    for value in objects:
        if not isinstance(value, dict):
            refused.append(("not an object where an event should be", repr(value)[:80]))
            continue
        events.append(
            ExactEvent(
                ph=str(value.get("ph") or ""),
                cat=_text(value.get("cat")),
                name=_text(value.get("name")),
                pid=_key(value.get("pid")),
                tid=_key(value.get("tid")),
                ts=_time(value.get("ts")),
                dur=_time(value.get("dur")),  # type: ignore[arg-type]  # text, as ts is here
                id=Raw(msgspec.json.encode(value["id"])) if "id" in value else NO_TEXT,
                args=_args(value.get("args", UNSET)),
            )
        )
    return events, refused


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value)


def _key(value: object) -> int | str | None:
    """A process or thread: 7.0 is 7; anything that is no scalar is its text."""
    if isinstance(value, str):
        whole, _, part = value.partition(".")
        return whole if part and not part.strip("0") and whole.lstrip("-").isdigit() else value
    plain = value is None or (isinstance(value, int) and not isinstance(value, bool))
    return value if plain else str(value)  # type: ignore[return-value]  # None or an integer


def _time(value: object) -> Raw:
    """A time's text; floats arrive as text, and strings may hold numbers."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return Raw(b"null")
    return Raw(str(value).replace("\n", " ").encode("utf-8", "replace") or b"null")


def _args(value: object) -> Args | UnsetType | None:
    if not isinstance(value, dict):
        return UNSET if value is UNSET else None
    kept = {}
    for name, found in value.items():
        declared = _ARGS.get(name)
        if declared is not None:
            read = _argument(declared.type, found)
            if read is not None:
                kept[declared.name] = read
    return Args(**kept)


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
        return way(value)
    except (TypeError, ValueError, OverflowError):
        return None
