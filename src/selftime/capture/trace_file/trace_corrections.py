"""Corrects event names and step times in the JSON that torch's profiler writes.

Names: the JSON has "unknown" for each name with a character outside printable ASCII. It drops line
feeds, replaces backslashes by slashes and does not escape quotes, which makes invalid JSON; since
PyTorch 2.14 quotes become apostrophes. The profiler's events in memory have the correct names.

Steps: under `selftime run` or `watch`, a step's annotation begins and ends within the recorder's
work between two steps. That work has a range of its own (see `steps.recorder_work`): a step is
trimmed to end where the range around its end begins, and to begin where the range around its begin
ends. The range itself gets the category `overhead`, so it is no operator.

An event in the JSON is matched with one in memory by its name in the JSON, its thread or stream,
and its start in nanoseconds.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from torch._C._autograd import _KinetoEvent

from selftime import names
from selftime.capture.trace_file.event_columns import without_own_work

_JSON_EVENT_START: Final = b"\n  {\n"
"""Text before each event in the profiler's JSON."""
_MAX_JSON_EVENT_BYTES: Final = 64 << 20
"""Largest size of an event in the JSON, in bytes, that is corrected; text with a larger one
stays unchanged."""
_BASE_TIME_KEY: Final = b'"baseTimeNanoseconds": '
_QUOTE, _APOSTROPHE = b'"', b"'"
_NAME_KEY: Final = b'"name": "'
_NAME_VALUE_END: Final = re.compile(rb'",(?:\n| "pid": )')
"""Text after an event's name in the profiler's JSON; the second one in releases such as 2.8."""
_THREAD_KEY: Final = b'"tid": '
_START_KEY: Final = b'"ts": '
_DURATION_KEY: Final = b'"dur": '
_ANNOTATION_CATEGORY: Final = b'"cat": "user_annotation"'
_OVERHEAD_CATEGORY: Final = b'"cat": "overhead"'


class _JsonEventKey(NamedTuple):
    """Identifies an event in the profiler's JSON: name, thread or stream id, and start in ns."""

    name: bytes
    thread: int
    start: int


class _TimeSpan(NamedTuple):
    """Start and end of an event, in ns."""

    start_ns: int
    end_ns: int


@dataclass(slots=True)
class _CheckedEventName:
    """An event's name in the JSON, its correct form, and whether it marks a step or own work."""

    name_in_json: bytes
    """The event's name as the profiler writes it."""
    correct_name: bytes | None
    """The correct name as JSON text; None if the written name is correct."""
    is_own_work: bool
    is_step: bool


@dataclass(slots=True)
class _EventCorrection:
    """New name and times for an event in the JSON; None leaves the old value."""

    name: bytes | None = None
    span: _TimeSpan | None = None
    is_own_work: bool = False


@dataclass(slots=True)
class TraceCorrections:
    """Corrections of one recording's events; `correct_json` applies them to its JSON text."""

    _corrections: dict[_JsonEventKey, list[_EventCorrection]] = field(default_factory=dict)
    """Maps each event to its corrections; for events with equal keys, one for each in order of
    occurrence."""

    @classmethod
    def from_events(cls, events: Iterable[_KinetoEvent]) -> "TraceCorrections":
        """Computes the corrections from the profiler's events."""
        corrections = cls()
        checked_names: dict[str, _CheckedEventName | None] = {}
        own_ranges: dict[int, list[_TimeSpan]] = {}
        step_spans: list[tuple[_JsonEventKey, _TimeSpan]] = []
        for event in events:
            try:
                text = event.name()
            except UnicodeDecodeError:  # the profiler may reference freed text
                continue
            if text not in checked_names:
                checked_names[text] = _checked_event_name(text)
            name = checked_names[text]
            if name is None:
                continue
            key = _JsonEventKey(name.name_in_json, event.device_resource_id(), event.start_ns())
            span = _TimeSpan(event.start_ns(), event.end_ns())
            if name.correct_name is not None:
                corrections._add_name_correction(key, name.correct_name)
            elif name.is_own_work:
                corrections.add_correction(key, _EventCorrection(is_own_work=True))
                own_ranges.setdefault(key.thread, []).append(span)
            elif event.activity_type() in names.ANNOTATION_CATEGORIES:
                step_spans.append((key, span))
        for key, span in step_spans:
            trimmed = _TimeSpan(*without_own_work(span, own_ranges.get(key.thread, [])))
            if trimmed != span:
                corrections.add_correction(key, _EventCorrection(span=trimmed))
        return corrections

    def _add_name_correction(self, key: _JsonEventKey, correct_name: bytes) -> None:
        """Adds a correction of a name for both ways in which torch writes quotes."""
        for name in {key.name, key.name.replace(_QUOTE, _APOSTROPHE)}:
            self.add_correction(key._replace(name=name), _EventCorrection(name=correct_name))

    def add_correction(self, key: _JsonEventKey, correction: _EventCorrection) -> None:
        self._corrections.setdefault(key, []).append(correction)

    def correct_json(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yields the corrected JSON text in chunks, of about the sizes of the given chunks."""
        if not self._corrections:
            yield from chunks
            return
        copy = _JsonTextCorrector(
            {key: [*corrections] for key, corrections in self._corrections.items()}
        )
        text = b""
        for chunk in chunks:
            text += chunk
            split_at = text.rfind(_JSON_EVENT_START)
            if split_at < 0 and len(text) >= _MAX_JSON_EVENT_BYTES:
                split_at = len(text)
            if split_at > 0:
                yield copy.correct_events(text[:split_at])
                text = text[split_at:]
        yield copy.correct_events(text)


class _JsonTextCorrector:
    """Applies the corrections to the events of one JSON text, in order."""

    def __init__(self, corrections: dict[_JsonEventKey, list[_EventCorrection]]) -> None:
        self._base_time_ns: int | None = None
        """Time in ns that all times in the text are relative to; None until it was read."""
        self._remaining = corrections
        self._names_to_correct = {key.name for key in corrections}

    def correct_events(self, text: bytes) -> bytes:
        """Returns a text of complete JSON events with corrected names and times."""
        if self._base_time_ns is None:
            self._base_time_ns = _read_json_integer(text, _BASE_TIME_KEY)
        events = text.split(_JSON_EVENT_START)
        for place, event in enumerate(events):
            start_at = event.find(_NAME_KEY) + len(_NAME_KEY)
            end = _NAME_VALUE_END.search(event, start_at)
            end_at = -1 if end is None else end.start()
            if event[start_at:end_at] in self._names_to_correct:
                events[place] = self._correct_event(event, start_at, end_at)
        return _JSON_EVENT_START.join(events)

    def _correct_event(self, event: bytes, start_at: int, end_at: int) -> bytes:
        """Returns the corrected JSON of one event, whose name is at `event[start_at:end_at]`."""
        before_name, after_name, base_ns = (
            event[: start_at - 1],
            event[end_at + 1 :],
            self._base_time_ns or 0,
        )
        thread, start = (
            _read_json_integer(after_name, _THREAD_KEY),
            _read_json_nanoseconds(after_name, _START_KEY),
        )
        if thread is None or start is None:
            return event
        corrections = self._remaining.get(
            _JsonEventKey(event[start_at:end_at], thread, start + base_ns)
        )
        if not corrections:
            return event
        correction = corrections.pop(0)
        if correction.is_own_work:
            before_name = before_name.replace(_ANNOTATION_CATEGORY, _OVERHEAD_CATEGORY, 1)
        if correction.span is not None:
            after_name = _replace_json_time(
                after_name, _START_KEY, correction.span.start_ns - base_ns
            )
            after_name = _replace_json_time(
                after_name, _DURATION_KEY, correction.span.end_ns - correction.span.start_ns
            )
        return b"".join(
            (before_name, correction.name or event[start_at - 1 : end_at + 1], after_name)
        )


def _checked_event_name(text: str) -> _CheckedEventName | None:
    """Returns how to correct events with the name `text`; None if they need no correction."""
    is_own_work, is_step = (
        text == names.SELFTIME_WORK_SLICE,
        names.profiler_step_number(text) is not None,
    )
    name_in_json = text.replace("\\", "/").replace("\n", "")
    if not (name_in_json.isascii() and name_in_json.isprintable()):
        name_in_json = "unknown"
    # On Windows, slashes instead of backslashes in paths are correct.
    is_right = name_in_json == text.replace(os.sep, "/") and '"' not in text
    if is_right and not is_own_work and not is_step:
        return None
    return _CheckedEventName(
        name_in_json.encode(), None if is_right else json.dumps(text).encode(), is_own_work, is_step
    )


def _find_json_number(text: bytes, key: bytes) -> tuple[int, int]:
    """Returns (start, end) offsets of the number after a JSON key; (0, 0) without the key."""
    start_at = text.find(key)
    if start_at < 0:
        return 0, 0
    start_at += len(key)
    end_at = start_at
    while text[end_at : end_at + 1] in b"0123456789." and end_at < len(text):
        end_at += 1
    return start_at, end_at


def _read_json_integer(text: bytes, key: bytes) -> int | None:
    start_at, end_at = _find_json_number(text, key)
    return int(text[start_at:end_at]) if text[start_at:end_at].isdigit() else None


def _read_json_nanoseconds(text: bytes, key: bytes) -> int | None:
    """Returns the time after a JSON key in ns (written in us); None without the key."""
    start_at, end_at = _find_json_number(text, key)
    whole, _, part = text[start_at:end_at].partition(b".")
    digits = whole + part.ljust(3, b"0")
    return int(digits) if digits.isdigit() and len(part) <= 3 else None


def _replace_json_time(text: bytes, key: bytes, nanoseconds: int) -> bytes:
    start_at, end_at = _find_json_number(text, key)
    return b"%b%d.%03d%b" % (text[:start_at], *divmod(nanoseconds, 1000), text[end_at:])
