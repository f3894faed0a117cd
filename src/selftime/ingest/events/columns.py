"""Converts the events of one chunk of a trace file to columns.

A chunk's columns refer to its own strings and threads by number; `chunk_merging` merges the
chunks of a file and renumbers them. Absent values are `NO_INT`, NaN or `NO_STRING_CODE`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np

from selftime import names
from selftime.ingest.damage.repair_json import repair_json
from selftime.ingest.events.arguments import (
    ARGUMENT_COLUMNS_BY_GROUP,
    Array,
    Columns,
    DistinctValueCodes,
    argument_columns,
    indices_of_present_values,
    parse_arguments,
)
from selftime.ingest.events.event_types import EMPTY_ARGS, NO_INT, Event, value_decoder
from selftime.ingest.times.nanosecond_conversion import to_nanoseconds, to_nanoseconds_and_unit

__all__ = [
    "ARGUMENT_COLUMNS_BY_GROUP",
    "NO_END_FAULT",
    "NO_NAME",
    "ChunkEventColumns",
    "Columns",
    "chunk_columns",
    "thread_key",
]

NO_END_FAULT: Final = "events without an end: left out of totals"
NO_NAME: Final = "(no name)"
"""The name given to an event that has no name."""

_MAX_ARGUMENT_TEXT_BYTES: Final = 1 << 20
"""Largest text of an argument that is kept, in bytes; longer texts are cut."""
_KEPT_BYTES_OF_TOO_LONG_ARGUMENT: Final = 80

_ARGUMENT_GROUP_BY_TRACK_KIND: Final = {
    "python": "frame",
    "device": "device",
    "device sync": "sync",
}
_COLLECTIVE_RECORD_EVENT_NAME: Final = "record_param_comms"


@dataclass(slots=True)
class ChunkEventColumns:
    """The events of one chunk of trace text as columns, with labels, counters and faults."""

    strings: list[str] = field(default_factory=list)
    threads: list[tuple[str, str]] = field(default_factory=list)
    slices: Columns = field(default_factory=dict)
    columns_by_group: dict[str, Columns] = field(default_factory=dict)
    """Columns of each group of events, such as `op`, `device` or `memory`, by the group's name."""
    begin_end_events: list[tuple[str, int, int, int, int]] = field(default_factory=list)
    """Begin and end events of slices: phase, time in ns, and codes of name, category and thread."""
    async_span_events: list[tuple[str, int, int, int, int, str]] = field(default_factory=list)
    """Events of asynchronous spans: phase, time in ns, codes of name, category and thread, and the
    span's id.
    """
    process_and_thread_labels: list[tuple[str, str, str, str]] = field(default_factory=list)
    """Names from metadata events: what is named (process or thread), process, thread, name."""
    counter_samples: list[tuple[int, int, str, str, float]] = field(default_factory=list)
    """Counter samples: time in ns, thread code, counter, series, value."""
    event_counts_by_phase_and_category: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of events by phase (`ph`) and category; an absent category is an empty text."""
    fault_counts: Counter[str] = field(default_factory=Counter)
    """Number of events with a fault, by the message that describes it."""
    rows_written_in_ns: list[int] = field(default_factory=list)
    """Row numbers in `slices` whose times were written in integer nanoseconds, not microseconds."""


_MEMORY_EVENT_NAMES: Final = frozenset({names.ALLOCATION_EVENT, names.OUT_OF_MEMORY_EVENT})
_INSTANT_EVENT_PHASES: Final = frozenset("iIR")
_PHASES_READ_ONE_BY_ONE: Final = frozenset("BEMbneSTpF")
_CURRENT_PHASE_OF_ASYNC_PHASE: Final = {
    **dict.fromkeys("bS", "b"),
    **dict.fromkeys("nTp", "n"),
    "e": "e",
    "F": "e",
}
"""Maps the phases of asynchronous spans, legacy ones too, to begin (b), instant (n) and end (e)."""
_LABEL_EVENT_NAMES: Final = frozenset({"process_name", "process_labels", "thread_name"})


def chunk_columns(events: Sequence[Event]) -> ChunkEventColumns:
    """Returns the events of a chunk as columns, in the order of the file.

    Raises:
        msgspec.ValidationError: An argument of an event has the wrong type.
    """
    chunk = ChunkEventColumns()
    string_codes, thread_codes = DistinctValueCodes(), DistinctValueCodes()
    complete: list[Any] = [e for e in events if e.phase == "X"]
    others: list[Any] = [e for e in events if e.phase != "X"]
    phases = {phase for phase, _ in _count_events_by_phase(chunk, others)}
    marks = (
        []
        if phases.isdisjoint(_INSTANT_EVENT_PHASES)
        else [e for e in others if e.phase in _INSTANT_EVENT_PHASES]
    )
    memory = [e for e in marks if e.name in _MEMORY_EVENT_NAMES]
    marks = [e for e in marks if e.name not in _MEMORY_EVENT_NAMES]
    if not _MEMORY_EVENT_NAMES.isdisjoint(map(attrgetter("name"), complete)):
        before = [e for e in complete if e.name in _MEMORY_EVENT_NAMES]  # as PyTorch 1.8 wrote them
        complete = [e for e in complete if e.name not in _MEMORY_EVENT_NAMES]
        _count_events_by_phase(chunk, before)
        memory += before
    _add_complete_events(chunk, complete, string_codes, thread_codes)
    chunk.columns_by_group["memory"] = _memory_event_columns(
        chunk, memory, string_codes, thread_codes
    )
    chunk.columns_by_group["instants"] = _instant_event_columns(marks, string_codes, thread_codes)
    if not phases.isdisjoint(_PHASES_READ_ONE_BY_ONE):
        for e in others:
            if e.phase in _PHASES_READ_ONE_BY_ONE:
                _add_event_of_rare_phase(chunk, e, string_codes, thread_codes)
    chunk.strings = [_string_of_json_value(value) for value in string_codes.code_by_value]
    chunk.threads = list(thread_codes.code_by_value)
    return chunk


def _count_events_by_phase(
    chunk: ChunkEventColumns, events: list[Any]
) -> Counter[tuple[str, str | None]]:
    """Counts a chunk's events by (phase, category); adds the counts to `chunk` and returns them."""
    counts = Counter(map(attrgetter("phase", "cat"), events))
    for (phase, cat), count in counts.items():
        chunk.event_counts_by_phase_and_category[phase, cat or ""] += count
    return counts


def _add_complete_events(
    chunk: ChunkEventColumns,
    events: list[Any],
    string_codes: DistinctValueCodes,
    thread_codes: DistinctValueCodes,
) -> None:
    start, written = to_nanoseconds_and_unit(list(map(attrgetter("ts"), events)))
    duration = to_nanoseconds(list(map(attrgetter("dur"), events)))
    if written is not None:
        _divide_durations_written_in_ns(chunk, written, duration)
    event_names, cats = DistinctValueCodes(), DistinctValueCodes()
    named = event_names(map(attrgetter("name"), events))
    of_cat = cats(map(attrgetter("cat"), events))
    for cat, count in zip(cats.code_by_value, np.bincount(of_cat).tolist(), strict=True):
        chunk.event_counts_by_phase_and_category["X", cat or ""] += count
    nameless = [at for at, name in enumerate(event_names.code_by_value) if not name]
    categories = [_category_in_current_spelling(cat) for cat in cats.code_by_value]
    chunk.slices = {
        "name": string_codes(name or NO_NAME for name in event_names.code_by_value)[named],
        "category": string_codes(categories)[of_cat],
        "thread": _thread_code_of_each_event(chunk, events, thread_codes),
        "start": start,
        "duration": duration,
    }
    records = named == event_names.code_by_value.get(_COLLECTIVE_RECORD_EVENT_NAME, -1)
    read = _parse_arguments_by_group(
        events, [_argument_group_of_category(category) for category in categories], of_cat, records
    )
    for group, (args, rows) in read.args_and_rows_by_group.items():
        chunk.columns_by_group[group] = argument_columns(group, args, rows, string_codes)
    unknown = (duration < 0) | read.is_unfinished
    duration[unknown] = NO_INT
    chunk.fault_counts[NO_END_FAULT] += int((unknown & (start != NO_INT)).sum())
    if nameless:
        chunk.fault_counts["events without a name: shown as (no name)"] += int(
            np.isin(named, nameless).sum()
        )
    chunk.fault_counts["arguments that are not an object: read as none"] += read.null_count


@dataclass(slots=True)
class _ParsedArgumentsByGroup:
    """The parsed arguments of complete events by kind of event, with the row of each event."""

    is_unfinished: Array
    """Whether each event is marked as unfinished, shape (n,)."""
    args_and_rows_by_group: dict[str, tuple[list[Any], Array]] = field(default_factory=dict)
    """Maps each kind of event to its events' parsed arguments and row numbers."""
    null_count: int = 0
    """Number of events whose arguments are null or not an object."""


def _parse_arguments_by_group(
    events: list[Any], groups: list[str], category_codes: Array, is_collective_record: Array
) -> _ParsedArgumentsByGroup:
    """Parses the arguments of complete events; an event's kind determines which are read.

    Args:
        events: The complete events of a chunk.
        groups: The group of each category.
        category_codes: The category of each event, as its index in `groups`, shape (n,).
        is_collective_record: Which events are records of collectives, shape (n,).
    """
    texts = list(map(attrgetter("args"), events))
    read = _ParsedArgumentsByGroup(np.zeros(len(events), bool))
    collective: list[int] = []
    for group in dict.fromkeys(groups):
        among = np.array([candidate == group for candidate in groups], bool)
        rows = np.flatnonzero(among[category_codes])
        args, nulls = parse_arguments(group, [texts[row] for row in rows.tolist()])
        read.null_count += nulls
        finished = list(map(attrgetter("is_finished"), args))
        if False in finished:
            read.is_unfinished[rows] = ~np.array(finished, bool)
        if group:
            read.args_and_rows_by_group[group] = args, rows
        if group in {"op", "device"}:
            with_collective = rows[
                indices_of_present_values(list(map(attrgetter("collective"), args)))
            ]
            with_parameters = (
                with_collective
                if group == "device"
                else with_collective[is_collective_record[with_collective]]
            )
            collective += with_parameters.tolist()
        if group == "op":
            read.args_and_rows_by_group["compiled"] = _parse_arguments_of_rows(
                "compiled",
                texts,
                rows[indices_of_present_values(list(map(attrgetter("kernel_backend"), args)))],
            )
    read.args_and_rows_by_group["collective"] = _parse_arguments_of_rows(
        "collective", texts, np.sort(np.array(collective, np.int64))
    )
    return read


def _parse_arguments_of_rows(group: str, texts: list[Any], rows: Array) -> tuple[list[Any], Array]:
    """Returns the parsed arguments of the events in `rows`, all of one kind, and `rows`."""
    return parse_arguments(group, [texts[row] for row in rows.tolist()])[0], rows


def _divide_durations_written_in_ns(
    chunk: ChunkEventColumns, is_in_nanoseconds: Array, duration: Array
) -> None:
    """Divides by 1,000 the durations that were written in ns but read as microseconds."""
    chunk.rows_written_in_ns = np.flatnonzero(is_in_nanoseconds).tolist()
    shorter = is_in_nanoseconds & (duration > 0)
    duration[shorter] //= 1000


def _category_in_current_spelling(text: str | None) -> str:
    """Returns a category's current name; for a comma-separated list, of its first known member."""
    lower = (text or "").lower()
    if lower in names.TRACK_KIND_BY_CATEGORY:
        return lower
    for part in (lower, *lower.split(",")):
        today = names.CURRENT_CATEGORY_BY_OLD_NAME.get(part.strip(), part.strip())
        if today in names.TRACK_KIND_BY_CATEGORY:
            return today
    return lower


def thread_key(event: Any) -> tuple[str, str]:
    """Returns an event's process and thread ids as texts; an absent id becomes `?`."""
    return _process_or_thread_id_text(event.pid), _process_or_thread_id_text(event.tid)


def _process_or_thread_id_text(process_or_thread_id: int | str | None) -> str:
    if process_or_thread_id is None:
        return _ABSENT_PROCESS_OR_THREAD_ID_TEXT
    return (
        f"'{process_or_thread_id}'"
        if process_or_thread_id == _ABSENT_PROCESS_OR_THREAD_ID_TEXT
        else str(process_or_thread_id)
    )


_ABSENT_PROCESS_OR_THREAD_ID_TEXT: Final = "?"


def _thread_code_of_each_event(
    chunk: ChunkEventColumns, events: Sequence[Any], thread_codes: DistinctValueCodes
) -> Array:
    """Returns the integer code of each event's thread, shape (n,)."""
    keys = DistinctValueCodes()
    codes = keys(zip(map(attrgetter("pid"), events), map(attrgetter("tid"), events), strict=True))
    absent = [at for at, (pid, tid) in enumerate(keys.code_by_value) if pid is None or tid is None]
    if absent:
        lacking = int(np.isin(codes, absent).sum())
        chunk.fault_counts["events without a process or thread: shown on a track of their own"] += (
            lacking
        )
    numbers = thread_codes(
        (_process_or_thread_id_text(pid), _process_or_thread_id_text(tid))
        for pid, tid in keys.code_by_value
    )
    return numbers[codes] if codes.size else codes


def _argument_group_of_category(category: str) -> str:
    kind = names.TRACK_KIND_BY_CATEGORY.get(category, "other")
    if kind == "host":
        return "call" if category in names.RUNTIME_CALL_CATEGORIES else "op"
    return _ARGUMENT_GROUP_BY_TRACK_KIND.get(kind, "")


def _memory_event_columns(
    chunk: ChunkEventColumns,
    events: list[Any],
    string_codes: DistinctValueCodes,
    thread_codes: DistinctValueCodes,
) -> Columns:
    args, _ = parse_arguments("memory", [e.args for e in events])
    columns = argument_columns("memory", args, np.arange(len(events)), string_codes)
    columns["time"] = _event_times(events)
    columns["thread"] = _thread_code_of_each_event(chunk, events, thread_codes)
    columns["failed"] = np.array([e.name == names.OUT_OF_MEMORY_EVENT for e in events], bool)
    return columns


def _event_times(events: Sequence[Any]) -> Array:
    return to_nanoseconds_and_unit([e.ts for e in events])[0]


def _instant_event_columns(
    events: list[Any], string_codes: DistinctValueCodes, thread_codes: DistinctValueCodes
) -> Columns:
    return {
        "time": _event_times(events),
        "thread": thread_codes(map(thread_key, events)),
        "category": string_codes((e.cat or "").lower() for e in events),
        "name": string_codes(e.name or NO_NAME for e in events),
    }


def _add_event_of_rare_phase(
    chunk: ChunkEventColumns,
    event: Any,
    string_codes: DistinctValueCodes,
    thread_codes: DistinctValueCodes,
) -> None:
    thread = thread_key(event)
    if event.phase == "M":
        if event.name in _LABEL_EVENT_NAMES and event.args is not EMPTY_ARGS:
            [args], nulls = parse_arguments("label", [event.args])
            if nulls:
                return
            text = args.labels if event.name == "process_labels" else args.name
            chunk.process_and_thread_labels.append((str(event.name), *thread, str(text).strip()))
        return
    [time] = _event_times([event]).tolist()
    [name, category] = string_codes(
        (event.name or NO_NAME, _category_in_current_spelling(event.cat))
    ).tolist()
    [number] = thread_codes((thread,)).tolist()
    if event.phase in _CURRENT_PHASE_OF_ASYNC_PHASE:
        span = bytes(event.id).decode("utf-8", "replace").strip('"')
        phase = _CURRENT_PHASE_OF_ASYNC_PHASE[event.phase]
        chunk.async_span_events.append((phase, time, name, category, number, span))
        return
    chunk.begin_end_events.append((event.phase, time, name, category, number))


def _string_of_json_value(value: str | bytes) -> str:
    """Returns JSON bytes as compact text, without the quotes of a string; a str is unchanged."""
    if isinstance(value, str):
        return value
    if len(value) > _MAX_ARGUMENT_TEXT_BYTES:
        return value[:_KEPT_BYTES_OF_TOO_LONG_ARGUMENT].decode("utf-8", "replace") + "…"
    if value.startswith(b'"'):
        return str(value_decoder.decode(repair_json(value)[0]))
    return msgspec.json.format(value, indent=-1).decode("utf-8", "replace")
