"""Damaged event text: what is sound in it, and what was wrong where.

The text is read from the left, event by event. One that is not JSON is mended in the ways in which
writers are known to err, else given up and counted, and reading goes on at the next place that
looks like the begin of an event: one bad byte costs one event.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import msgspec

from selftime.ingest.damage.faults import HOLE
from selftime.ingest.damage.mend import QUOTES, mend
from selftime.ingest.events.event import MALFORMED, loose_decoder, value_decoder
from selftime.ingest.text.window import EVENTS_KEY, value_end

EVENT_KEYS: Final = rb"(?:ph|cat|name|pid|tid|ts|dur|tts|id|bp|s|args|cname|scope)"
EVENT_BEGIN: Final = re.compile(
    rb'(?:(?:^|[,\[}\x00])\s*|\n[ \t\r\f\v]*)(?=\{\s*"' + EVENT_KEYS + rb'"\s*:)'
)
"""What stands before an event: then an object whose first key is one of the format's.

Of many new lines each looks to the next only, or blank text would cost its length squared.
"""

_BETWEEN: Final = re.compile(rb"[\s,\x00]*(?:%b[\s,\x00]*)*" % re.escape(HOLE))
_FOLLOWS: Final = (
    rb'(?=\][\s\x00]*(?:,\s*"(?!'
    + EVENT_KEYS
    + rb'"\s*:)|\}[\s\x00]*(?:\]|\Z)|\Z))'  # a key, or the end
)
_SEEMS: Final = re.compile(rb"[},]\s*(?=\{\s*[\"'](?:ph|cat|name|pid)[\"'])")
"""What stands between two events of which the second does not begin as JSON."""

_END: Final = re.compile(rb"\}\s*" + _FOLLOWS)
"""An object at the end of the array of events."""

_END_OF_REST: Final = re.compile(rb"(?:\}\s*|\n[ \t\r\f\v]*|\A)" + _FOLLOWS)
"""The end of the array behind text that is no event."""

_CLOSE: Final = re.compile(rb'\][\s\x00]*(?:,\s*"|\}|\Z|\[\s*\{|\{)')
_ONCE: Final = re.compile(rb'"(ph|cat|pid|tid|ts|dur)"\s*:')
_PHASE: Final = re.compile(rb"""["']ph["']\s*:""")
"""What every event has once, even in what is left of it."""

HEADER: Final = re.compile(
    rb'\{\s*"(?:schemaVersion|deviceProperties|distributedInfo|displayTimeUnit|traceName|traceEvents|'
    rb'baseTimeNanoseconds|record_shapes|with_stack|profile_memory|otherData)"\s*:'
)
"""The begin of a trace, as profilers write it."""

_COMMA: Final = re.compile(rb'"(?:ts|dur)"\s*:\s*"?[-+]?\d+,\d+"?\s*[,}]')
"""A time with a comma for its point, which JSON reads as two things."""

ANOTHER: Final = "another trace begins inside this one"
ELSEWHERE: Final = "the events of another process go on where one breaks off"
DECIMAL_COMMA: Final = "a number with a decimal comma: its event is left out"

_TRAILING: Final = re.compile(r"trailing characters \(byte (\d+)\)")
_AT_BYTE: Final = re.compile(r"\(byte (\d+)\)")
_EXAMPLE: Final = 80
_LONGEST: Final = 64 << 20
"""Bytes beyond which the end of an event that is nested too deep is not waited for."""
_OF_HOST: Final = ("cpu_op", "cuda_runtime", "python_function", "user_annotation")
_WHOLE: Final = frozenset({"name", "pid", "tid", "ts", "dur"})
_NEAR: Final = 16
"""Objects beside a break among which one of a host is looked for."""
_ENDS_TRIED: Final = 1 << 17
"""Bytes that are mended in one damaged event for ends of the array in it: a file has one or few."""
_NESTED_TRIED: Final = 16
"""Times its own length that a chunk is read for events that hold others: each is read on its own,
so that a text of events within events would cost its length squared."""


@dataclass(slots=True)
class Recovered:
    """The sound objects of a chunk in order, and the faults as (text, offset, lost, example)."""

    objects: list[Any] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    """Their JSON, sound or mended; several objects between which nothing is wrong are one text."""
    faults: list[tuple[str, int, int, str]] = field(default_factory=list)
    rest: int = 0
    ended: bool = False


def recover(text: bytes, *, last: bool) -> Recovered:
    """Take a damaged chunk apart.

    Args:
        text: The chunk, which begins at an event.
        last: Whether the file ends with the chunk, so that nothing can complete its last event.
    """
    salvage = _Salvage(text, last=last)
    while salvage.step():
        pass
    salvage.find_other_processes()
    return salvage.found


class _Salvage:
    """The reading of one damaged chunk: how far it has come, and what it has found."""

    def __init__(self, text: bytes, *, last: bool) -> None:
        self.text, self.view, self.last = text, memoryview(text), last
        self.begins = [match.end() for match in EVENT_BEGIN.finditer(text)]
        self.headers = self._find_headers()
        holes = [match.end() for match in re.finditer(re.escape(HOLE), text)]
        if holes or self.headers:
            self.begins = sorted({*self.begins, *holes, *self.headers})
        self.at = 0
        self.after_event = False
        self.breaks: list[int] = []
        """How many objects had been found where something was left out."""
        self.tried = 0
        """Bytes that were read as the first value of the text, and were not one."""
        self.found = Recovered(rest=len(text))

    def _find_headers(self) -> dict[int, int]:
        """Where other traces begin, and where the events of each do."""
        found = {}
        for array in EVENTS_KEY.finditer(self.text):
            after = self.text.rfind(b'"ph"', 0, array.start()) + 1
            header = HEADER.search(self.text, after, array.end())
            place = bisect_left(self.begins, after)
            if header is not None:
                found[header.start()] = array.end()
            elif place < len(self.begins) and self.begins[place] < array.start():
                found[self.begins[place]] = array.end()
        return found

    def step(self) -> bool:
        """Read what comes next; whether there is more to read."""
        self._skip_between()
        mark = self.text[self.at : self.at + 1]
        if self.at in self.headers:
            self._fault(ANOTHER, self.text[self.at :][:_EXAMPLE])
            self.at, self.after_event = self.headers[self.at], False
        elif _CLOSE.match(self.text, self.at):
            self._end(self.at + 1)
        elif mark == b"{":
            self._read_event()
        elif mark:
            self._leave_out()
        return bool(mark) and not self.found.ended and self.found.rest == len(self.text)

    def _end(self, rest: int) -> None:
        self.found.ended, self.found.rest = True, rest

    def _fault(self, what: str, sample: bytes, *, lost: int = 0) -> None:
        example = sample[:_EXAMPLE].decode("utf-8", "backslashreplace")
        self.found.faults.append((what, self.at, lost, example))

    def _next_begin(self) -> int:
        """The first place behind this one that looks like the begin of an event."""
        place = bisect_left(self.begins, self.at + 1)
        return self.begins[place] if place < len(self.begins) else len(self.text)

    def _skip_between(self) -> None:
        gap = _BETWEEN.match(self.text, self.at)
        if gap is None:  # the pattern matches nothing, too
            return
        between, commas = gap[0].replace(HOLE, b""), gap[0].count(b",")
        follows = self.text[gap.end() : gap.end() + 1]
        if b"\x00" in between:
            self._fault("NUL bytes: left out", b"%d NUL bytes" % between.count(0))
        if self.after_event and follows == b"{" and not commas:
            self._fault("a missing comma between two events", self.text[gap.end() :][:_EXAMPLE])
        if commas > 1 or (self.after_event and follows == b"]" and commas):
            self._fault("a comma too many", between)
        self.at = gap.end()

    def _read_event(self) -> None:
        upto = self._next_begin()
        piece = self.text[self.at : upto].rstrip(b" \t\r\n,\x00")
        objects = _objects(piece)
        if objects is not None:
            self._keep(objects, piece, self.at + len(piece))
            return
        try:
            value, end, cut = self._first(upto)
        except RecursionError:
            self._read_deep(upto)
            return
        if end:
            self._keep([value], self.text[self.at : self.at + end], self.at + end)
        elif cut and not self.last:
            self.found.rest = self.at
        elif not self._mended(piece):
            self._give_up(upto, cut=cut)

    def _read_deep(self, upto: int) -> None:
        """Read an event that is nested deeper than JSON is read: what lies too deep is left out."""
        if self._tried_enough():
            self._give_up(upto, cut=False)
            return
        self.tried += len(self.text) - self.at
        end = value_end(self.text, self.at)
        if end is None and not self.last and len(self.text) - self.at < _LONGEST:
            self.found.rest = self.at
        elif end is None or not self._mended(self.text[self.at : end]):
            self._give_up(upto, cut=False)

    def _tried_enough(self) -> bool:
        return self.tried > _NESTED_TRIED * len(self.text)

    def _first(self, upto: int) -> tuple[Any, int, bool]:
        """The value that begins here, as `_first` tells; up to there, if much was tried in vain."""
        if self._tried_enough():
            value, end, _, _ = _first(self.view[self.at : upto])
            return value, end, False
        value, end, cut, tried = _first(self.view[self.at :])
        self.tried += tried
        return value, end, cut

    def _keep(self, objects: list[Any], text: bytes, upto: int) -> None:
        self.found.objects += objects
        self.found.texts.append(text)
        self.at, self.after_event = upto, True

    def _mended(self, piece: bytes) -> bool:
        """Whether the piece, or the part of it up to the end of the array, could be mended."""
        if HOLE in piece:
            return False
        most = max(1, _ENDS_TRIED // max(len(piece), 1))
        ends = [match.start() + 1 for match in islice(_END.finditer(piece), most)]
        seeming = [match.start() + 1 for match in islice(_SEEMS.finditer(piece), most)]
        for upto in sorted({*ends, *seeming, len(piece)}):
            mended, faults = mend(piece[:upto])
            objects = _objects(mended) if faults else None
            if objects and (QUOTES.isdisjoint(faults) or _is_one(piece[:upto])):
                for fault in faults:
                    self._fault(fault, piece)
                self._keep(objects, mended, self.at + upto)
                return True
        return False

    def _give_up(self, upto: int, *, cut: bool) -> None:
        """The event is damaged, or the file ends within it."""
        piece = self.text[self.at : upto]
        if cut:
            self._fault("the file ends inside an event", piece, lost=not HEADER.match(piece))
            self.at = len(self.text)
            return
        self.tried += len(piece)
        other = _SEEMS.search(piece)
        if other is not None and not self._tried_enough():
            upto = self.at + other.end()
            piece = piece[: other.end()]
        lost = max(1, len(_PHASE.findall(piece)))
        what = DECIMAL_COMMA if _COMMA.search(piece) else "an event that is not JSON: left out"
        self._fault(what, piece, lost=lost)
        self.breaks.append(len(self.found.objects))
        ends = list(_END.finditer(piece))
        self._go_on(upto, ends[-1] if ends else None)

    def _leave_out(self) -> None:
        upto = self._next_begin()
        piece = self.text[self.at : upto]
        lost = len(_PHASE.findall(piece))
        another = EVENTS_KEY.search(piece) is not None
        self._fault(ANOTHER if another else "text that is no event: left out", piece, lost=lost)
        self.breaks.append(len(self.found.objects))
        self._go_on(upto, _END_OF_REST.search(piece))

    def find_other_processes(self) -> None:
        """Note where what breaks off is of one process, and what comes next of another.

        There, halves of two events may have become one that is sound JSON: it lacks a field, or has
        one twice.
        """
        objects = self.found.objects
        known = len(self.found.faults)
        for at in sorted(set(self.breaks)):
            before = _process(reversed(objects[max(at - _NEAR, 0) : at]))
            after = _process(objects[at : at + _NEAR])
            if before is not None and after is not None and before != after:
                self._fault(ELSEWHERE, b"%d, then %d" % (before, after))
        if (self.headers or len(self.found.faults) > known) and len(objects) == len(
            self.found.texts
        ):
            self._leave_out_halves()

    def _leave_out_halves(self) -> None:
        both = list(zip(self.found.objects, self.found.texts, strict=True))
        kept = [(value, text) for value, text in both if not _is_of_halves(value, text)]
        for _ in range(len(both) - len(kept)):
            self._fault("the halves of two events: left out", b"", lost=1)
        self.found.objects = [value for value, _ in kept]
        self.found.texts = [text for _, text in kept]

    def _go_on(self, upto: int, end: "re.Match[bytes] | None") -> None:
        """Read on behind what was left out: behind the array, if it ends therein."""
        if end is not None:
            self._end(self.text.index(b"]", self.at + end.end()) + 1)
        self.at, self.after_event = upto, False


def _is_one(piece: bytes) -> bool:
    """Whether a piece is one event, and not what is left of two: it has each field once at most."""
    fields = Counter(_ONCE.findall(piece))
    return fields[b"ph"] == 1 and max(fields.values()) == 1


def _is_of_halves(value: Any, text: bytes) -> bool:
    """Whether a complete event has no time, place or name, or has one of its fields twice."""
    if not isinstance(value, dict):
        return False
    complete = value.get("ph") == "X"
    return len(str(value.get("ph"))) > 1 or (
        complete and (not value.keys() >= _WHOLE or not _is_one(text))
    )


def _process(objects: Iterable[Any]) -> int | None:
    """The process of the first of some objects that is work of a host."""
    for value in objects:
        if isinstance(value, dict) and value.get("cat") in _OF_HOST:
            process = value.get("pid")
            return process if isinstance(process, int) else None
    return None


def _objects(piece: bytes) -> list[Any] | None:
    try:
        return list(loose_decoder.decode(b"[%b]" % piece))
    except MALFORMED:
        return None


def _first(view: memoryview) -> tuple[Any, int, bool, int]:
    """The first value of a text and where it ends; else 0, whether it is cut off, and bytes tried.

    msgspec names the byte at which a text is damaged; `test_recover` holds it to its words.
    """
    try:
        return value_decoder.decode(view), len(view), False, 0
    except UnicodeDecodeError as error:
        return None, 0, False, view.tobytes().find(error.object)
    except msgspec.DecodeError as error:
        trailing = _TRAILING.search(str(error))
        if trailing is None:
            place = _AT_BYTE.search(str(error))
            return None, 0, _is_cut(str(error), len(view)), int(place[1]) if place else len(view)
        end = int(trailing[1]) - 1
    return value_decoder.decode(view[:end]), end, False, 0


def _is_cut(error: str, size: int) -> bool:
    """Whether the fault is that the text ends: it is sound up to its last byte."""
    place = _AT_BYTE.search(error)
    return int(place[1]) >= size if place else "truncated" in error
