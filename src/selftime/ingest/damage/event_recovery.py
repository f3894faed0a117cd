"""Recovers the undamaged events of a damaged chunk of trace text, and records each fault.

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

from selftime.ingest.damage.file_faults import LOST_TEXT_MARK
from selftime.ingest.damage.repair_json import QUOTE_FAULTS, repair_json
from selftime.ingest.events.event_types import MALFORMED_JSON_ERRORS, untyped_decoder, value_decoder
from selftime.ingest.text.text_window import EVENTS_KEY, json_value_end

EVENT_KEY_PATTERN: Final = rb"(?:ph|cat|name|pid|tid|ts|dur|tts|id|bp|s|args|cname|scope)"
TEXT_BEFORE_EVENT: Final = re.compile(
    rb'(?:(?:^|[,\[}\x00])\s*|\n[ \t\r\f\v]*)(?=\{\s*"' + EVENT_KEY_PATTERN + rb'"\s*:)'
)
"""Matches the text before an event: a separator, then an object whose first key is an event field.

Each new line matches only up to the next one: otherwise blank text would take quadratic time.
"""

_TEXT_BETWEEN_EVENTS: Final = re.compile(
    rb"[\s,\x00]*(?:%b[\s,\x00]*)*" % re.escape(LOST_TEXT_MARK)
)
_TEXT_AFTER_EVENT_LIST: Final = (
    rb'(?=\][\s\x00]*(?:,\s*"(?!'
    + EVENT_KEY_PATTERN
    + rb'"\s*:)|\}[\s\x00]*(?:\]|\Z)|\Z))'  # a key, or the end
)
_POSSIBLE_EVENT_BORDER: Final = re.compile(rb"[},]\s*(?=\{\s*[\"'](?:ph|cat|name|pid)[\"'])")
"""Matches the text between two objects that may be events, even if the second is invalid JSON."""

_LAST_OBJECT_OF_EVENT_LIST: Final = re.compile(rb"\}\s*" + _TEXT_AFTER_EVENT_LIST)
"""Matches the closing brace of the last object in a trace's list of events."""

_END_OF_EVENT_LIST: Final = re.compile(rb"(?:\}\s*|\n[ \t\r\f\v]*|\A)" + _TEXT_AFTER_EVENT_LIST)
"""Matches the text before the bracket that closes a trace's list of events."""

_EVENT_LIST_CLOSE: Final = re.compile(rb'\][\s\x00]*(?:,\s*"|\}|\Z|\[\s*\{|\{)')
_EVENT_FIELD_KEY: Final = re.compile(rb'"(ph|cat|pid|tid|ts|dur)"\s*:')
_PHASE_KEY: Final = re.compile(rb"""["']ph["']\s*:""")
"""Matches the key `ph`, which every event has exactly once, even a damaged event."""

TRACE_START: Final = re.compile(
    rb'\{\s*"(?:schemaVersion|deviceProperties|distributedInfo|displayTimeUnit|traceName|traceEvents|'
    rb'baseTimeNanoseconds|record_shapes|with_stack|profile_memory|otherData)"\s*:'
)
"""Matches the start of a trace's outermost object: its brace and a first key that profilers write.
"""

_TIME_WITH_DECIMAL_COMMA: Final = re.compile(rb'"(?:ts|dur)"\s*:\s*"?[-+]?\d+,\d+"?\s*[,}]')
"""Matches a `ts` or `dur` written with a decimal comma, which JSON reads as two values."""

ANOTHER_TRACE_FAULT: Final = "another trace begins inside this one"
OTHER_PROCESS_FAULT: Final = (
    "the events of one process break off, and events of another process follow"
)
DECIMAL_COMMA_FAULT: Final = "a number with a decimal comma: its event is left out"

_TRAILING_TEXT_ERROR: Final = re.compile(r"trailing characters \(byte (\d+)\)")
_ERROR_BYTE_OFFSET: Final = re.compile(r"\(byte (\d+)\)")
_FAULT_EXAMPLE_BYTES: Final = 80
_MAX_DEEPLY_NESTED_EVENT_BYTES: Final = 64 << 20
"""Largest event, in bytes, whose end is searched for if it is nested too deeply for the parser."""
_HOST_CATEGORIES: Final = ("cpu_op", "cuda_runtime", "python_function", "user_annotation")
_REQUIRED_COMPLETE_EVENT_KEYS: Final = frozenset({"name", "pid", "tid", "ts", "dur"})
_OBJECTS_SEARCHED_BESIDE_LOST_TEXT: Final = 16
"""Number of JSON objects on each side of lost text that are searched for a host event."""
_MAX_BYTES_OF_ALL_REPAIR_ATTEMPTS: Final = 1 << 17
"""Largest total size, in bytes, of all attempts to repair one damaged event."""
_MAX_REPARSED_CHUNK_LENGTHS: Final = 16
"""Largest amount of text parsed again to find events inside damaged ones, in chunk lengths."""


@dataclass(slots=True)
class RecoveredChunk:
    """The undamaged JSON objects of a damaged chunk, in file order, and the faults found."""

    objects: list[Any] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    """The JSON text of the recovered objects, repaired where needed."""
    faults: list[tuple[str, int, int, str]] = field(default_factory=list)
    """Each fault: message, byte offset, number of lost events, example."""
    unread_offset: int = 0
    """The offset of the first byte that was not read."""
    is_list_ended: bool = False
    """Whether the list of events ends at `unread_offset`."""


def recover_events(text: bytes, *, is_last_chunk: bool) -> RecoveredChunk:
    """Returns the undamaged events of a damaged chunk, and its faults.

    Args:
        text: The chunk, which begins at an event.
        is_last_chunk: Whether the file ends with the chunk, so that its last event may be cut off.
    """
    recovery = _ChunkRecovery(text, is_last_chunk=is_last_chunk)
    while recovery.read_next_event_or_text():
        pass
    recovery.add_process_change_faults()
    return recovery.found


class _ChunkRecovery:
    """Recovers the events of one damaged chunk; holds the read position and results so far."""

    def __init__(self, text: bytes, *, is_last_chunk: bool) -> None:
        self.text, self.view, self.is_last_chunk = text, memoryview(text), is_last_chunk
        self.begins = [match.end() for match in TEXT_BEFORE_EVENT.finditer(text)]
        self.headers = self._event_list_offset_by_trace_offset()
        holes = [match.end() for match in re.finditer(re.escape(LOST_TEXT_MARK), text)]
        if holes or self.headers:
            self.begins = sorted({*self.begins, *holes, *self.headers})
        self.at = 0
        self.after_event = False
        self.breaks: list[int] = []
        """The number of recovered objects before each stretch of text that was left out."""
        self.reparsed_bytes = 0
        """Number of bytes parsed so far in attempts to read a JSON value that failed."""
        self.found = RecoveredChunk(unread_offset=len(text))

    def _event_list_offset_by_trace_offset(self) -> dict[int, int]:
        """Returns for each trace in the text, by its byte offset, the offset of its event list."""
        events_by_start = {}
        for array in EVENTS_KEY.finditer(self.text):
            after = self.text.rfind(b'"ph"', 0, array.start()) + 1
            header = TRACE_START.search(self.text, after, array.end())
            index = bisect_left(self.begins, after)
            if header is not None:
                events_by_start[header.start()] = array.end()
            elif index < len(self.begins) and self.begins[index] < array.start():
                events_by_start[self.begins[index]] = array.end()
        return events_by_start

    def read_next_event_or_text(self) -> bool:
        """Reads or skips the next event or damaged text; returns whether unread text is left."""
        self._skip_separators()
        mark = self.text[self.at : self.at + 1]
        if self.at in self.headers:
            self._add_fault(ANOTHER_TRACE_FAULT, self.text[self.at :][:_FAULT_EXAMPLE_BYTES])
            self.at, self.after_event = self.headers[self.at], False
        elif _EVENT_LIST_CLOSE.match(self.text, self.at):
            self._mark_event_list_as_ended(self.at + 1)
        elif mark == b"{":
            self._read_event()
        elif mark:
            self._skip_text_without_event()
        found = self.found
        return bool(mark) and not found.is_list_ended and found.unread_offset == len(self.text)

    def _mark_event_list_as_ended(self, rest_offset: int) -> None:
        self.found.is_list_ended, self.found.unread_offset = True, rest_offset

    def _add_fault(self, message: str, sample: bytes, *, lost_events: int = 0) -> None:
        example = sample[:_FAULT_EXAMPLE_BYTES].decode("utf-8", "backslashreplace")
        self.found.faults.append((message, self.at, lost_events, example))

    def _next_event_start(self) -> int:
        """Returns the next offset that looks like the start of an event."""
        place = bisect_left(self.begins, self.at + 1)
        return self.begins[place] if place < len(self.begins) else len(self.text)

    def _skip_separators(self) -> None:
        gap = _TEXT_BETWEEN_EVENTS.match(self.text, self.at)
        if gap is None:  # for the type checker: the pattern also matches empty text
            return
        between, commas = gap[0].replace(LOST_TEXT_MARK, b""), gap[0].count(b",")
        follows = self.text[gap.end() : gap.end() + 1]
        if b"\x00" in between:
            self._add_fault("NUL bytes: left out", b"%d NUL bytes" % between.count(0))
        if self.after_event and follows == b"{" and not commas:
            self._add_fault(
                "a missing comma between two events", self.text[gap.end() :][:_FAULT_EXAMPLE_BYTES]
            )
        if commas > 1 or (self.after_event and follows == b"]" and commas):
            self._add_fault("a comma too many", between)
        self.at = gap.end()

    def _read_event(self) -> None:
        end_offset = self._next_event_start()
        piece = self.text[self.at : end_offset].rstrip(b" \t\r\n,\x00")
        objects = _json_objects_or_none(piece)
        if objects is not None:
            self._add_recovered_objects(objects, piece, self.at + len(piece))
            return
        try:
            value, end, cut = self._read_first_json_value(end_offset)
        except RecursionError:
            self._read_deeply_nested_event(end_offset)
            return
        if end:
            self._add_recovered_objects([value], self.text[self.at : self.at + end], self.at + end)
        elif cut and not self.is_last_chunk:
            self.found.unread_offset = self.at
        elif not self._add_repaired_event(piece):
            self._drop_damaged_event(end_offset, is_truncated=cut)

    def _read_deeply_nested_event(self, end_offset: int) -> None:
        """Reads an event nested deeper than the parser accepts; its deepest levels become null."""
        if self._has_reached_reparse_limit():
            self._drop_damaged_event(end_offset, is_truncated=False)
            return
        self.reparsed_bytes += len(self.text) - self.at
        end = json_value_end(self.text, self.at)
        if (
            end is None
            and not self.is_last_chunk
            and len(self.text) - self.at < _MAX_DEEPLY_NESTED_EVENT_BYTES
        ):
            self.found.unread_offset = self.at
        elif end is None or not self._add_repaired_event(self.text[self.at : end]):
            self._drop_damaged_event(end_offset, is_truncated=False)

    def _has_reached_reparse_limit(self) -> bool:
        return self.reparsed_bytes > _MAX_REPARSED_CHUNK_LENGTHS * len(self.text)

    def _read_first_json_value(self, end_offset: int) -> tuple[Any, int, bool]:
        """Returns the next JSON value, its length in bytes (0 if none), and whether it is cut off.

        Once the limit of reparsed text is reached, only the text up to `end_offset` is searched.
        """
        if self._has_reached_reparse_limit():
            value, end, _, _ = _first_complete_json_value(self.view[self.at : end_offset])
            return value, end, False
        value, end, cut, reparsed_bytes = _first_complete_json_value(self.view[self.at :])
        self.reparsed_bytes += reparsed_bytes
        return value, end, cut

    def _add_recovered_objects(self, objects: list[Any], text: bytes, end_offset: int) -> None:
        self.found.objects += objects
        self.found.texts.append(text)
        self.at, self.after_event = end_offset, True

    def _add_repaired_event(self, event_text: bytes) -> bool:
        """Repairs and adds the event at the start of a text; returns whether that was possible."""
        if LOST_TEXT_MARK in event_text:
            return False
        most = max(1, _MAX_BYTES_OF_ALL_REPAIR_ATTEMPTS // max(len(event_text), 1))
        ends = [
            match.start() + 1
            for match in islice(_LAST_OBJECT_OF_EVENT_LIST.finditer(event_text), most)
        ]
        seeming = [
            match.start() + 1 for match in islice(_POSSIBLE_EVENT_BORDER.finditer(event_text), most)
        ]
        for end_offset in sorted({*ends, *seeming, len(event_text)}):
            mended, faults = repair_json(event_text[:end_offset])
            objects = _json_objects_or_none(mended) if faults else None
            if objects and (
                QUOTE_FAULTS.isdisjoint(faults) or _is_single_event(event_text[:end_offset])
            ):
                for fault in faults:
                    self._add_fault(fault, event_text)
                self._add_recovered_objects(objects, mended, self.at + end_offset)
                return True
        return False

    def _drop_damaged_event(self, end_offset: int, *, is_truncated: bool) -> None:
        """Drops a damaged or cut-off event, and records a fault with the number of lost events."""
        piece = self.text[self.at : end_offset]
        if is_truncated:
            self._add_fault(
                "the file ends inside an event", piece, lost_events=not TRACE_START.match(piece)
            )
            self.at = len(self.text)
            return
        self.reparsed_bytes += len(piece)
        other = _POSSIBLE_EVENT_BORDER.search(piece)
        if other is not None and not self._has_reached_reparse_limit():
            end_offset = self.at + other.end()
            piece = piece[: other.end()]
        lost_events = max(1, len(_PHASE_KEY.findall(piece)))
        what = (
            DECIMAL_COMMA_FAULT
            if _TIME_WITH_DECIMAL_COMMA.search(piece)
            else "an event that is not JSON: left out"
        )
        self._add_fault(what, piece, lost_events=lost_events)
        self.breaks.append(len(self.found.objects))
        ends = list(_LAST_OBJECT_OF_EVENT_LIST.finditer(piece))
        self._move_after_skipped_text(end_offset, ends[-1] if ends else None)

    def _skip_text_without_event(self) -> None:
        end_offset = self._next_event_start()
        piece = self.text[self.at : end_offset]
        lost_events = len(_PHASE_KEY.findall(piece))
        another = EVENTS_KEY.search(piece) is not None
        self._add_fault(
            ANOTHER_TRACE_FAULT if another else "text that is not an event: left out",
            piece,
            lost_events=lost_events,
        )
        self.breaks.append(len(self.found.objects))
        self._move_after_skipped_text(end_offset, _END_OF_EVENT_LIST.search(piece))

    def add_process_change_faults(self) -> None:
        """Adds a fault for each skipped text whose neighbouring events have different process ids.

        There the halves of two events may form one object of valid JSON, which lacks a field or
        has a duplicate one.
        """
        objects = self.found.objects
        fault_count = len(self.found.faults)
        for at in sorted(set(self.breaks)):
            before = _first_host_process_id(
                reversed(objects[max(at - _OBJECTS_SEARCHED_BESIDE_LOST_TEXT, 0) : at])
            )
            after = _first_host_process_id(objects[at : at + _OBJECTS_SEARCHED_BESIDE_LOST_TEXT])
            if before is not None and after is not None and before != after:
                self._add_fault(OTHER_PROCESS_FAULT, b"%d, then %d" % (before, after))
        if (self.headers or len(self.found.faults) > fault_count) and len(objects) == len(
            self.found.texts
        ):
            self._drop_objects_made_of_two_events()

    def _drop_objects_made_of_two_events(self) -> None:
        both = list(zip(self.found.objects, self.found.texts, strict=True))
        kept = [(value, text) for value, text in both if not _is_made_of_two_events(value, text)]
        for _ in range(len(both) - len(kept)):
            self._add_fault("text joined from halves of two events: left out", b"", lost_events=1)
        self.found.objects = [value for value, _ in kept]
        self.found.texts = [text for _, text in kept]

    def _move_after_skipped_text(self, end_offset: int, list_end: "re.Match[bytes] | None") -> None:
        """Moves the offset to `end_offset`; marks the event list as ended if its end is skipped."""
        if list_end is not None:
            self._mark_event_list_as_ended(self.text.index(b"]", self.at + list_end.end()) + 1)
        self.at, self.after_event = end_offset, False


def _is_single_event(event_text: bytes) -> bool:
    """Returns whether a text has `ph` exactly once, and each other event field at most once."""
    fields = Counter(_EVENT_FIELD_KEY.findall(event_text))
    return fields[b"ph"] == 1 and max(fields.values()) == 1


def _is_made_of_two_events(event: Any, text: bytes) -> bool:
    """Returns whether an object mixes two events: it lacks a required field or repeats a field."""
    if not isinstance(event, dict):
        return False
    complete = event.get("ph") == "X"
    return len(str(event.get("ph"))) > 1 or (
        complete
        and (not event.keys() >= _REQUIRED_COMPLETE_EVENT_KEYS or not _is_single_event(text))
    )


def _first_host_process_id(objects: Iterable[Any]) -> int | None:
    """Returns the process id of the first host event among JSON objects; None if there is none."""
    for value in objects:
        if isinstance(value, dict) and value.get("cat") in _HOST_CATEGORIES:
            process = value.get("pid")
            return process if isinstance(process, int) else None
    return None


def _json_objects_or_none(text: bytes) -> list[Any] | None:
    try:
        return list(untyped_decoder.decode(b"[%b]" % text))
    except MALFORMED_JSON_ERRORS:
        return None


def _first_complete_json_value(view: memoryview) -> tuple[Any, int, bool, int]:
    """Parses a text's first JSON value; returns (value, end or 0, is cut off, bytes retried).

    msgspec's error message names the byte at which a text is damaged; `test_recover` checks that.
    """
    try:
        return value_decoder.decode(view), len(view), False, 0
    except UnicodeDecodeError as error:
        return None, 0, False, view.tobytes().find(error.object)
    except msgspec.DecodeError as error:
        trailing = _TRAILING_TEXT_ERROR.search(str(error))
        if trailing is None:
            place = _ERROR_BYTE_OFFSET.search(str(error))
            return (
                None,
                0,
                _is_json_cut_off(str(error), len(view)),
                int(place[1]) if place else len(view),
            )
        end = int(trailing[1]) - 1
    return value_decoder.decode(view[:end]), end, False, 0


def _is_json_cut_off(error_message: str, text_bytes: int) -> bool:
    """Returns whether a JSON error only means that the text ends too early."""
    place = _ERROR_BYTE_OFFSET.search(error_message)
    return int(place[1]) >= text_bytes if place else "truncated" in error_message
