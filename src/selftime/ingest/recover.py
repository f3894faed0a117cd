"""Damaged event text: what is sound in it, and what was wrong where.

The text is taken apart at places that look like the begin of an event; halves that do not parse
are halved again, so that one bad byte costs one event. A piece that still does not parse is
joined with the next (an event may hold objects that look like events), then mended in the ways in
which writers are known to err, else given up and counted.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from selftime.ingest.events import loose_decoder
from selftime.ingest.mend import mend

__all__ = ["EVENT_BEGIN", "Recovered", "recover"]

EVENT_BEGIN: Final = re.compile(
    rb'(?:^|(?<=[,\[}\s]))(?=\{\s*"(?:ph|cat|name|pid|tid|ts|dur|tts|id|bp|s|args|cname|scope)"\s*:)'
)
"""Where an event may begin: an object whose first key is one of the format's."""

_JOINED: Final = 6
"""How many pieces one event may be cut into by objects within it."""

_EXAMPLE: Final = 80

_END: Final = re.compile(rb"\}\s*(?=\])")


@dataclass(slots=True)
class Recovered:
    """The sound objects of a chunk in order, and the faults as (text, offset, lost, example)."""

    objects: list[Any] = field(default_factory=list)
    faults: list[tuple[str, int, int, str]] = field(default_factory=list)
    rest: int = 0
    ended: bool = False


def recover(text: bytes, *, last: bool) -> Recovered:
    """Take a damaged chunk apart."""
    begins = [match.start() for match in EVENT_BEGIN.finditer(text)]
    found = Recovered(rest=len(text))
    if not begins or text[: begins[0]].strip(b" \t\r\n,\x00"):
        _no_event(found, text, begins)
    bounds = [*begins, len(text)]
    parsed: dict[int, list[Any]] = {}
    _parse(text, bounds, 0, len(begins), parsed)
    at = 0
    while at < len(begins) and not found.ended:
        if at in parsed:
            objects = parsed[at]
            found.objects += objects
            at += max(len(objects), 1)
            continue
        at = _one(text, bounds, at, found, last=last)
    return found


def _no_event(found: Recovered, text: bytes, begins: list[int]) -> None:
    """The chunk begins with something that is no event: its end, or damage."""
    upto = begins[0] if begins else len(text)
    head = text[:upto].strip(b" \t\r\n,\x00")
    if head.startswith(b"]") and not begins:
        found.ended, found.rest = True, text.index(b"]") + 1
    elif head:
        found.faults.append(("text that is no event", 0, 1, _sample(head)))


def _parse(
    text: bytes, bounds: list[int], low: int, high: int, parsed: dict[int, list[Any]]
) -> None:
    """Parse pieces `low` to `high`, halving what does not; what is found is keyed by its first."""
    waiting = [(low, high)]
    while waiting:
        low, high = waiting.pop()
        if low >= high:
            continue
        objects = _objects(text[bounds[low] : bounds[high]])
        if objects is not None and len(objects) == high - low:
            parsed[low] = objects
        elif high - low > 1:
            middle = (low + high) // 2
            waiting += [(low, middle), (middle, high)]


def _objects(piece: bytes) -> list[Any] | None:
    try:
        return list(loose_decoder.decode(b"[%b]" % piece.strip(b" \t\r\n,\x00")))
    except (msgspec.DecodeError, RecursionError):
        return None


def _one(text: bytes, bounds: list[int], at: int, found: Recovered, *, last: bool) -> int:
    """Deal with the piece that did not parse; the next piece to look at."""
    begin = bounds[at]
    piece = text[begin : bounds[at + 1]]
    end = _end_of_array(piece)
    if end is not None:
        found.objects += _objects(piece[:end]) or []
        found.ended, found.rest = True, begin + piece.index(b"]", end) + 1
        return at + 1
    for joined in range(at + 2, min(at + _JOINED, len(bounds) - 1) + 1):
        objects = _objects(text[begin : bounds[joined]])
        if objects is not None and len(objects) == 1:
            found.objects += objects
            return joined
    mended, fault = mend(piece)
    objects = _objects(mended) if fault else None
    if objects:
        found.objects += objects
        found.faults.append((fault, begin, 0, _sample(piece)))
        return at + 1
    if at + 2 == len(bounds):
        if not last:
            found.rest = begin
            return at + 1
        found.faults.append(("the file ends inside an event", begin, 1, _sample(piece)))
        return at + 1
    found.faults.append(("an event that is not JSON", begin, 1, _sample(piece)))
    return at + 1


def _end_of_array(piece: bytes) -> int | None:
    """Where the piece's event ends, if the array ends after it."""
    for match in _END.finditer(piece):
        objects = _objects(piece[: match.start() + 1])
        if objects is not None and len(objects) == 1:
            return match.start() + 1
    return None


def _sample(text: bytes) -> str:
    return text[:_EXAMPLE].decode("utf-8", "backslashreplace")
