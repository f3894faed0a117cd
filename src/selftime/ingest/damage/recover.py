"""Recover the sound events of damaged text, and note what is wrong where.

The text is read from the left, event by event. An event that is not JSON is repaired where its
writer's mistake is known; otherwise it is dropped and counted, and reading resumes at the next
place that looks like the start of an event: one bad byte costs one event.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import msgspec

from selftime.ingest.damage.faults import HOLE_MARK
from selftime.ingest.damage.repair_json import QUOTE_FAULTS, repair_json
from selftime.ingest.events.event import MALFORMED, loose_decoder, value_decoder
from selftime.ingest.text.window import EVENTS_KEY, value_end

EVENT_KEYS: Final = rb"(?:ph|cat|name|pid|tid|ts|dur|tts|id|bp|s|args|cname|scope)"
BEFORE_EVENT: Final = re.compile(
    rb'(?:(?:^|[,\[}\x00])\s*|\n[ \t\r\f\v]*)(?=\{\s*"' + EVENT_KEYS + rb'"\s*:)'
)
"""The text before an event, followed by an object whose first key is one of the format's.

Each new line matches only up to the next one: otherwise blank text would take quadratic time.
"""

_BETWEEN: Final = re.compile(rb"[\s,\x00]*(?:%b[\s,\x00]*)*" % re.escape(HOLE_MARK))
_FOLLOWS: Final = (
    rb'(?=\][\s\x00]*(?:,\s*"(?!'
    + EVENT_KEYS
    + rb'"\s*:)|\}[\s\x00]*(?:\]|\Z)|\Z))'  # a key, or the end
)
_SEEMING_BORDER: Final = re.compile(rb"[},]\s*(?=\{\s*[\"'](?:ph|cat|name|pid)[\"'])")
"""The text between two events of which the second may be invalid JSON."""

_END: Final = re.compile(rb"\}\s*" + _FOLLOWS)
"""An object at the end of the array of events."""

_END_OF_REST: Final = re.compile(rb"(?:\}\s*|\n[ \t\r\f\v]*|\A)" + _FOLLOWS)
"""The end of the array after text that is not an event."""

_CLOSE: Final = re.compile(rb'\][\s\x00]*(?:,\s*"|\}|\Z|\[\s*\{|\{)')
_ONCE: Final = re.compile(rb'"(ph|cat|pid|tid|ts|dur)"\s*:')
_PHASE: Final = re.compile(rb"""["']ph["']\s*:""")
"""The key that every event has once, even a damaged one."""

HEADER: Final = re.compile(
    rb'\{\s*"(?:schemaVersion|deviceProperties|distributedInfo|displayTimeUnit|traceName|traceEvents|'
    rb'baseTimeNanoseconds|record_shapes|with_stack|profile_memory|otherData)"\s*:'
)
"""The start of a trace, as profilers write it."""

_COMMA: Final = re.compile(rb'"(?:ts|dur)"\s*:\s*"?[-+]?\d+,\d+"?\s*[,}]')
"""A time with a decimal comma, which JSON reads as two values."""

ANOTHER_TRACE: Final = "another trace begins inside this one"
OTHER_PROCESS: Final = "the events of another process go on where one breaks off"
DECIMAL_COMMA: Final = "a number with a decimal comma: its event is left out"

_TRAILING: Final = re.compile(r"trailing characters \(byte (\d+)\)")
_AT_BYTE: Final = re.compile(r"\(byte (\d+)\)")
_EXAMPLE: Final = 80
_LONGEST: Final = 64 << 20
"""Bytes after which the end of an event that is nested too deep is not searched for."""
_OF_HOST: Final = ("cpu_op", "cuda_runtime", "python_function", "user_annotation")
_WHOLE: Final = frozenset({"name", "pid", "tid", "ts", "dur"})
_NEAR: Final = 16
"""Objects on each side of a break that are searched for an event of a host process."""
_ENDS_TRIED: Final = 1 << 17
"""Bytes per damaged event that are repaired up to possible ends of the array: a file has few."""
_NESTED_TRIED: Final = 16
"""The most text, in lengths of the chunk, parsed for events nested in others: each is parsed
separately, so that without a limit nested events would take quadratic time."""


@dataclass(slots=True)
class Recovered:
    """The sound objects of a chunk in order, and its faults as (text, offset, lost, example)."""

    objects: list[Any] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    """Their JSON, repaired where needed; consecutive sound objects share one text."""
    faults: list[tuple[str, int, int, str]] = field(default_factory=list)
    rest: int = 0
    ended: bool = False


def recover(text: bytes, *, last: bool) -> Recovered:
    """Returns the sound events of a damaged chunk, and its faults.

    Args:
        text: The chunk, which begins at an event.
        last: Whether the file ends with the chunk, so that nothing can complete its last event.
    """
    recovery = _Recovery(text, last=last)
    while recovery.step():
        pass
    recovery.find_other_processes()
    return recovery.found


class _Recovery:
    """Recovers one damaged chunk: holds the current offset, and what was found so far."""

    def __init__(self, text: bytes, *, last: bool) -> None:
        self.text, self.view, self.last = text, memoryview(text), last
        self.begins = [match.end() for match in BEFORE_EVENT.finditer(text)]
        self.headers = self._find_headers()
        holes = [match.end() for match in re.finditer(re.escape(HOLE_MARK), text)]
        if holes or self.headers:
            self.begins = sorted({*self.begins, *holes, *self.headers})
        self.at = 0
        self.after_event = False
        self.breaks: list[int] = []
        """For each place where text was left out, the number of objects found before it."""
        self.tried = 0
        """Bytes that were parsed in vain as the first value of the text."""
        self.found = Recovered(rest=len(text))

    def _find_headers(self) -> dict[int, int]:
        """Returns the offset of each further trace's start, and that of its events."""
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
        """Read the next piece of text; returns whether there is more to read."""
        self._skip_between()
        mark = self.text[self.at : self.at + 1]
        if self.at in self.headers:
            self._fault(ANOTHER_TRACE, self.text[self.at :][:_EXAMPLE])
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
        """Returns the next offset that looks like the start of an event."""
        place = bisect_left(self.begins, self.at + 1)
        return self.begins[place] if place < len(self.begins) else len(self.text)

    def _skip_between(self) -> None:
        gap = _BETWEEN.match(self.text, self.at)
        if gap is None:  # for the type checker: the pattern also matches empty text
            return
        between, commas = gap[0].replace(HOLE_MARK, b""), gap[0].count(b",")
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
        elif not self._repair_piece(piece):
            self._give_up(upto, cut=cut)

    def _read_deep(self, upto: int) -> None:
        """Read an event that is nested deeper than the parser accepts, without its depths."""
        if self._is_over_limit():
            self._give_up(upto, cut=False)
            return
        self.tried += len(self.text) - self.at
        end = value_end(self.text, self.at)
        if end is None and not self.last and len(self.text) - self.at < _LONGEST:
            self.found.rest = self.at
        elif end is None or not self._repair_piece(self.text[self.at : end]):
            self._give_up(upto, cut=False)

    def _is_over_limit(self) -> bool:
        return self.tried > _NESTED_TRIED * len(self.text)

    def _first(self, upto: int) -> tuple[Any, int, bool]:
        """Returns what `_first` returns; only up to `upto` once the limit of tries is reached."""
        if self._is_over_limit():
            value, end, _, _ = _first(self.view[self.at : upto])
            return value, end, False
        value, end, cut, tried = _first(self.view[self.at :])
        self.tried += tried
        return value, end, cut

    def _keep(self, objects: list[Any], text: bytes, upto: int) -> None:
        self.found.objects += objects
        self.found.texts.append(text)
        self.at, self.after_event = upto, True

    def _repair_piece(self, piece: bytes) -> bool:
        """Whether the piece, or the part of it up to the end of the array, could be mended."""
        if HOLE_MARK in piece:
            return False
        most = max(1, _ENDS_TRIED // max(len(piece), 1))
        ends = [match.start() + 1 for match in islice(_END.finditer(piece), most)]
        seeming = [match.start() + 1 for match in islice(_SEEMING_BORDER.finditer(piece), most)]
        for upto in sorted({*ends, *seeming, len(piece)}):
            mended, faults = repair_json(piece[:upto])
            objects = _objects(mended) if faults else None
            if objects and (QUOTE_FAULTS.isdisjoint(faults) or _is_single_event(piece[:upto])):
                for fault in faults:
                    self._fault(fault, piece)
                self._keep(objects, mended, self.at + upto)
                return True
        return False

    def _give_up(self, upto: int, *, cut: bool) -> None:
        """Drop an event that is damaged, or in which the file ends."""
        piece = self.text[self.at : upto]
        if cut:
            self._fault("the file ends inside an event", piece, lost=not HEADER.match(piece))
            self.at = len(self.text)
            return
        self.tried += len(piece)
        other = _SEEMING_BORDER.search(piece)
        if other is not None and not self._is_over_limit():
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
        self._fault(
            ANOTHER_TRACE if another else "text that is no event: left out", piece, lost=lost
        )
        self.breaks.append(len(self.found.objects))
        self._go_on(upto, _END_OF_REST.search(piece))

    def find_other_processes(self) -> None:
        """Note each break where the text changes from one process to another.

        At such a break the halves of two events may form one object of valid JSON, which lacks a
        field or has a duplicate one.
        """
        objects = self.found.objects
        known = len(self.found.faults)
        for at in sorted(set(self.breaks)):
            before = _process(reversed(objects[max(at - _NEAR, 0) : at]))
            after = _process(objects[at : at + _NEAR])
            if before is not None and after is not None and before != after:
                self._fault(OTHER_PROCESS, b"%d, then %d" % (before, after))
        if (self.headers or len(self.found.faults) > known) and len(objects) == len(
            self.found.texts
        ):
            self._leave_out_halves()

    def _leave_out_halves(self) -> None:
        both = list(zip(self.found.objects, self.found.texts, strict=True))
        kept = [(value, text) for value, text in both if not _is_joined_halves(value, text)]
        for _ in range(len(both) - len(kept)):
            self._fault("the halves of two events: left out", b"", lost=1)
        self.found.objects = [value for value, _ in kept]
        self.found.texts = [text for _, text in kept]

    def _go_on(self, upto: int, end: "re.Match[bytes] | None") -> None:
        """Resume after text that was left out; after the array, if it ends there."""
        if end is not None:
            self._end(self.text.index(b"]", self.at + end.end()) + 1)
        self.at, self.after_event = upto, False


def _is_single_event(piece: bytes) -> bool:
    """Returns whether a piece has each field at most once: one event, not the halves of two."""
    fields = Counter(_ONCE.findall(piece))
    return fields[b"ph"] == 1 and max(fields.values()) == 1


def _is_joined_halves(value: Any, text: bytes) -> bool:
    """Returns whether a complete event lacks a time, thread or name, or has a duplicate field."""
    if not isinstance(value, dict):
        return False
    complete = value.get("ph") == "X"
    return len(str(value.get("ph"))) > 1 or (
        complete and (not value.keys() >= _WHOLE or not _is_single_event(text))
    )


def _process(objects: Iterable[Any]) -> int | None:
    """Returns the process id of the first object that is an event of a host; else None."""
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
    """Returns the text's first value, its end (0 if none), whether it is cut off, and bytes tried.

    msgspec's error message names the byte at which a text is damaged; `test_recover` checks that.
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
    """Returns whether the only fault is that the text ends too early."""
    place = _AT_BYTE.search(error)
    return int(place[1]) >= size if place else "truncated" in error
