"""Turn the events of one chunk into columns: the work of each reading process.

A chunk's columns refer to its own strings and threads by number; `assemble` merges the chunks of a
file and renumbers them. Columns hold `NO_INT`, NaN or `NO_CODE` where the trace has no value.
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
    GROUPS,
    Array,
    Codes,
    Columns,
    group_columns,
    indices_of_present,
    read_args,
)
from selftime.ingest.events.event import EMPTY_ARGS, NO_INT, Event, value_decoder
from selftime.ingest.times.nanoseconds import nanoseconds, nanoseconds_and_unit

__all__ = [
    "GROUPS",
    "NO_END",
    "NO_NAME",
    "ChunkColumns",
    "Columns",
    "chunk_columns",
    "thread_key",
]

NO_END: Final = "no end: left out of totals"
NO_NAME: Final = "(no name)"
"""The name given to an event without a name."""

_LONGEST: Final = 1 << 20
"""The longest text of an argument in bytes (the sizes of 50,000 tensors); longer ones are cut."""
_SHORTENED: Final = 80

_GROUP_OF_KIND: Final = {
    "python": "frame",
    "device": "device",
    "device sync": "sync",
}
_COLLECTIVE_RECORD: Final = "record_param_comms"


@dataclass(slots=True)
class ChunkColumns:
    """The columns of one chunk, with its labels, counters, phases and faults."""

    strings: list[str] = field(default_factory=list)
    threads: list[tuple[str, str]] = field(default_factory=list)
    slices: Columns = field(default_factory=dict)
    groups: dict[str, Columns] = field(default_factory=dict)
    halves: list[tuple[str, int, int, int, int]] = field(default_factory=list)
    """Separate begin and end events: phase, time, name, category, thread."""
    spans: list[tuple[str, int, int, int, int, str]] = field(default_factory=list)
    """Events of asynchronous spans: phase, time, name, category, thread, the span's id."""
    labels: list[tuple[str, str, str, str]] = field(default_factory=list)
    """Metadata: kind, process, thread, text."""
    counters: list[tuple[int, int, str, str, float]] = field(default_factory=list)
    """Samples: time, thread, counter, series, value."""
    phases: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    """Counts of events that lack something, by what is missing."""
    in_nanoseconds: list[int] = field(default_factory=list)
    """Rows of `slices` whose times were written in integer nanoseconds."""


_MEMORY_NAMES: Final = frozenset({names.ALLOCATION, names.OUT_OF_MEMORY})
_INSTANTS: Final = frozenset("iIR")
_RARE: Final = frozenset("BEMbneSTpF")
_ASYNCHRONOUS: Final = {**dict.fromkeys("bS", "b"), **dict.fromkeys("nTp", "n"), "e": "e", "F": "e"}
"""Current and legacy phases of asynchronous spans, mapped to begin (b), instant (n) and end (e)."""
_LABELS: Final = frozenset({"process_name", "process_labels", "thread_name"})


def chunk_columns(events: Sequence[Event]) -> ChunkColumns:
    """Returns the columns of a chunk's events, in the file's order.

    Raises:
        msgspec.ValidationError: An argument of an event has the wrong type.
    """
    chunk = ChunkColumns()
    strings, threads = Codes(), Codes()
    complete: list[Any] = [e for e in events if e.phase == "X"]
    others: list[Any] = [e for e in events if e.phase != "X"]
    phases = {phase for phase, _ in _count(chunk, others)}
    marks = [] if phases.isdisjoint(_INSTANTS) else [e for e in others if e.phase in _INSTANTS]
    memory = [e for e in marks if e.name in _MEMORY_NAMES]
    marks = [e for e in marks if e.name not in _MEMORY_NAMES]
    if not _MEMORY_NAMES.isdisjoint(map(attrgetter("name"), complete)):
        before = [e for e in complete if e.name in _MEMORY_NAMES]  # as PyTorch 1.8 wrote them
        complete = [e for e in complete if e.name not in _MEMORY_NAMES]
        _count(chunk, before)
        memory += before
    _add_slices(chunk, complete, strings, threads)
    chunk.groups["memory"] = _memory_columns(chunk, memory, strings, threads)
    chunk.groups["instants"] = _mark_columns(marks, strings, threads)
    if not phases.isdisjoint(_RARE):
        for e in others:
            if e.phase in _RARE:
                _read_rare(chunk, e, strings, threads)
    chunk.strings = [_as_text(value) for value in strings.of]
    chunk.threads = list(threads.of)
    return chunk


def _count(chunk: ChunkColumns, events: list[Any]) -> Counter[tuple[str, str | None]]:
    """Count events by phase and category."""
    counted = Counter(map(attrgetter("phase", "cat"), events))
    for (phase, cat), count in counted.items():
        chunk.phases[phase, cat or ""] += count
    return counted


def _add_slices(chunk: ChunkColumns, events: list[Any], strings: Codes, threads: Codes) -> None:
    start, written = nanoseconds_and_unit(list(map(attrgetter("ts"), events)))
    duration = nanoseconds(list(map(attrgetter("dur"), events)))
    if written is not None:
        _correct_nanosecond_durations(chunk, written, duration)
    event_names, cats = Codes(), Codes()
    named = event_names(map(attrgetter("name"), events))
    of_cat = cats(map(attrgetter("cat"), events))
    for cat, count in zip(cats.of, np.bincount(of_cat).tolist(), strict=True):
        chunk.phases["X", cat or ""] += count
    nameless = [at for at, name in enumerate(event_names.of) if not name]
    categories = [_category(cat) for cat in cats.of]
    chunk.slices = {
        "name": strings(name or NO_NAME for name in event_names.of)[named],
        "category": strings(categories)[of_cat],
        "thread": _threads(chunk, events, threads),
        "start": start,
        "duration": duration,
    }
    records = named == event_names.of.get(_COLLECTIVE_RECORD, -1)
    read = _read_groups(events, [_group_of(category) for category in categories], of_cat, records)
    for group, (args, rows) in read.found.items():
        chunk.groups[group] = group_columns(group, args, rows, strings)
    unknown = (duration < 0) | read.unfinished
    duration[unknown] = NO_INT
    chunk.faults[NO_END] += int((unknown & (start != NO_INT)).sum())
    if nameless:
        chunk.faults["no name: shown as (no name)"] += int(np.isin(named, nameless).sum())
    chunk.faults["arguments that are no object: read as none"] += read.nulls


@dataclass(slots=True)
class _Groups:
    """The arguments of complete events by group, with the rows of their events."""

    unfinished: Array
    """Whether each event is marked as unfinished."""
    found: dict[str, tuple[list[Any], Array]] = field(default_factory=dict)
    nulls: int = 0


def _read_groups(events: list[Any], groups: list[str], of_cat: Array, records: Array) -> _Groups:
    """Read the arguments of complete events, for each event those of its group.

    Args:
        events: The complete events of a chunk.
        groups: The group of each category.
        of_cat: The category of each event, as its index in `groups`, shape (n,).
        records: Which events are records of collectives, shape (n,).
    """
    texts = list(map(attrgetter("args"), events))
    read = _Groups(np.zeros(len(events), bool))
    collective: list[int] = []
    for group in dict.fromkeys(groups):
        among = np.array([candidate == group for candidate in groups], bool)
        rows = np.flatnonzero(among[of_cat])
        args, nulls = read_args(group, [texts[row] for row in rows.tolist()])
        read.nulls += nulls
        finished = list(map(attrgetter("finished"), args))
        if False in finished:
            read.unfinished[rows] = ~np.array(finished, bool)
        if group:
            read.found[group] = args, rows
        if group in {"op", "device"}:
            with_collective = rows[indices_of_present(list(map(attrgetter("collective"), args)))]
            with_parameters = (
                with_collective if group == "device" else with_collective[records[with_collective]]
            )
            collective += with_parameters.tolist()
        if group == "op":
            read.found["compiled"] = _read_as_group(
                "compiled", texts, rows[indices_of_present(list(map(attrgetter("backend"), args)))]
            )
    read.found["collective"] = _read_as_group(
        "collective", texts, np.sort(np.array(collective, np.int64))
    )
    return read


def _read_as_group(group: str, texts: list[Any], rows: Array) -> tuple[list[Any], Array]:
    """Returns the arguments of these events, read as those of another group."""
    return read_args(group, [texts[row] for row in rows.tolist()])[0], rows


def _correct_nanosecond_durations(chunk: ChunkColumns, written: Array, duration: Array) -> None:
    """Correct the durations of events whose times were written in integer nanoseconds."""
    chunk.in_nanoseconds = np.flatnonzero(written).tolist()
    shorter = written & (duration > 0)
    duration[shorter] //= 1000


def _category(text: str | None) -> str:
    """Returns the current name of a category; of a list such as `cpu_op,user` the first known."""
    lower = (text or "").lower()
    if lower in names.TRACK_KIND:
        return lower
    for part in (lower, *lower.split(",")):
        today = names.CURRENT_CATEGORY.get(part.strip(), part.strip())
        if today in names.TRACK_KIND:
            return today
    return lower


def thread_key(event: Any) -> tuple[str, str]:
    """Returns an event's process and thread as texts; an absent one differs from any other."""
    return _key_text(event.pid), _key_text(event.tid)


def _key_text(key: int | str | None) -> str:
    if key is None:
        return _ABSENT
    return f"'{key}'" if key == _ABSENT else str(key)


_ABSENT: Final = "?"


def _threads(chunk: ChunkColumns, events: Sequence[Any], threads: Codes) -> Array:
    """Returns the number of each event's thread; each distinct pair is converted once."""
    keys = Codes()
    codes = keys(zip(map(attrgetter("pid"), events), map(attrgetter("tid"), events), strict=True))
    absent = [at for at, (pid, tid) in enumerate(keys.of) if pid is None or tid is None]
    if absent:
        lacking = int(np.isin(codes, absent).sum())
        chunk.faults["no process or thread: on a track of its own"] += lacking
    numbers = threads((_key_text(pid), _key_text(tid)) for pid, tid in keys.of)
    return numbers[codes] if codes.size else codes


def _group_of(category: str) -> str:
    kind = names.TRACK_KIND.get(category, "other")
    if kind == "host":
        return "call" if category in names.CALLS else "op"
    return _GROUP_OF_KIND.get(kind, "")


def _memory_columns(
    chunk: ChunkColumns, events: list[Any], strings: Codes, threads: Codes
) -> Columns:
    args, _ = read_args("memory", [e.args for e in events])
    columns = group_columns("memory", args, np.arange(len(events)), strings)
    columns["time"] = _instants(events)
    columns["thread"] = _threads(chunk, events, threads)
    columns["failed"] = np.array([e.name == names.OUT_OF_MEMORY for e in events], bool)
    return columns


def _instants(events: Sequence[Any]) -> Array:
    return nanoseconds_and_unit([e.ts for e in events])[0]


def _mark_columns(events: list[Any], strings: Codes, threads: Codes) -> Columns:
    return {
        "time": _instants(events),
        "thread": threads(map(thread_key, events)),
        "category": strings((e.cat or "").lower() for e in events),
        "name": strings(e.name or NO_NAME for e in events),
    }


def _read_rare(chunk: ChunkColumns, event: Any, strings: Codes, threads: Codes) -> None:
    thread = thread_key(event)
    if event.phase == "M":
        if event.name in _LABELS and event.args is not EMPTY_ARGS:
            [args], nulls = read_args("label", [event.args])
            if nulls:
                return
            text = args.labels if event.name == "process_labels" else args.name
            chunk.labels.append((str(event.name), *thread, str(text).strip()))
        return
    [time] = _instants([event]).tolist()
    [name, category] = strings((event.name or NO_NAME, _category(event.cat))).tolist()
    [number] = threads((thread,)).tolist()
    if event.phase in _ASYNCHRONOUS:
        span = bytes(event.id).decode("utf-8", "replace").strip('"')
        phase = _ASYNCHRONOUS[event.phase]
        chunk.spans.append((phase, time, name, category, number, span))
        return
    chunk.halves.append((event.phase, time, name, category, number))


def _as_text(value: str | bytes) -> str:
    """Returns a chunk's string as text: JSON without white space, a JSON string unquoted."""
    if isinstance(value, str):
        return value
    if len(value) > _LONGEST:
        return value[:_SHORTENED].decode("utf-8", "replace") + "…"
    if value.startswith(b'"'):
        return str(value_decoder.decode(repair_json(value)[0]))
    return msgspec.json.format(value, indent=-1).decode("utf-8", "replace")
