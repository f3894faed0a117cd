"""From the events of one chunk to columns: the work that each reading process does.

A chunk's columns speak of its own strings and threads by number; `assemble` joins the chunks of a
file and numbers them anew. Columns hold `NO_INT`, NaN or `NO_CODE` where the trace gives no value.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np

from selftime import names
from selftime.ingest.damage.mend import mend
from selftime.ingest.events.arguments import (
    GROUPS,
    Array,
    Codes,
    Columns,
    given,
    group_columns,
    read_args,
)
from selftime.ingest.events.event import EMPTY, NO_INT, Event, value_decoder
from selftime.ingest.times.nanoseconds import instants, nanoseconds

__all__ = [
    "GROUPS",
    "NO_END",
    "NO_NAME",
    "ChunkColumns",
    "Columns",
    "columns_of",
    "thread_key",
]

NO_END: Final = "no end: left out of totals"
NO_NAME: Final = "(no name)"
"""Shown for an event that has none."""

_LONGEST: Final = 1 << 20
"""Bytes of an argument's text: the sizes of 50,000 tensors. Longer ones are cut."""
_SHORTENED: Final = 80

_GROUP_OF_KIND: Final = {
    "python": "frame",
    "device": "device",
    "device sync": "sync",
}
_COLLECTIVE_RECORD: Final = "record_param_comms"


@dataclass(slots=True)
class ChunkColumns:
    """The columns of one chunk, and what was seen besides."""

    strings: list[str] = field(default_factory=list)
    threads: list[tuple[str, str]] = field(default_factory=list)
    slices: Columns = field(default_factory=dict)
    groups: dict[str, Columns] = field(default_factory=dict)
    halves: list[tuple[str, int, int, int, int]] = field(default_factory=list)
    """Begins and ends apart: phase, time, name, category, thread."""
    spans: list[tuple[str, int, int, int, int, str]] = field(default_factory=list)
    """Events of asynchronous spans: phase, time, name, category, thread, the span's id."""
    labels: list[tuple[str, str, str, str]] = field(default_factory=list)
    """Metadata: kind, process, thread, text."""
    counters: list[tuple[int, int, str, str, float]] = field(default_factory=list)
    """Samples: time, thread, counter, series, value."""
    phases: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    """Events kept with something missing, by what is missing."""
    in_nanoseconds: list[int] = field(default_factory=list)
    """Places in `slices` of events whose times were written in integer nanoseconds."""


_MEMORY_NAMES: Final = frozenset({names.ALLOCATION, names.OUT_OF_MEMORY})
_MARKS: Final = frozenset("iIR")
_RARE: Final = frozenset("BEMbneSTpF")
_ASYNCHRONOUS: Final = {**dict.fromkeys("bS", "b"), **dict.fromkeys("nTp", "n"), "e": "e", "F": "e"}
"""Phases of asynchronous spans, today's and those of old, by what they mean: begin, mark, end."""
_LABELS: Final = frozenset({"process_name", "process_labels", "thread_name"})


def columns_of(events: Sequence[Event]) -> ChunkColumns:
    """The columns of a chunk's events, in the file's order.

    Raises:
        msgspec.ValidationError: An event's arguments hold what a field of theirs cannot hold.
    """
    chunk = ChunkColumns()
    strings, threads = Codes(), Codes()
    complete: list[Any] = [e for e in events if e.phase == "X"]
    others: list[Any] = [e for e in events if e.phase != "X"]
    phases = {phase for phase, _ in _count(chunk, others)}
    marks = [] if phases.isdisjoint(_MARKS) else [e for e in others if e.phase in _MARKS]
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
    chunk.strings = [_plain(value) for value in strings.of]
    chunk.threads = list(threads.of)
    return chunk


def _count(chunk: ChunkColumns, events: list[Any]) -> Counter[tuple[str, str | None]]:
    """Count events by phase and category."""
    counted = Counter(map(attrgetter("phase", "cat"), events))
    for (phase, cat), count in counted.items():
        chunk.phases[phase, cat or ""] += count
    return counted


def _add_slices(chunk: ChunkColumns, events: list[Any], strings: Codes, threads: Codes) -> None:
    start, written = instants(list(map(attrgetter("ts"), events)))
    duration = nanoseconds(list(map(attrgetter("dur"), events)))
    if written is not None:
        _settle(chunk, written, duration)
    told, cats = Codes(), Codes()
    named, of_cat = told(map(attrgetter("name"), events)), cats(map(attrgetter("cat"), events))
    for cat, count in zip(cats.of, np.bincount(of_cat).tolist(), strict=True):
        chunk.phases["X", cat or ""] += count
    nameless = [at for at, name in enumerate(told.of) if not name]
    categories = [_category(cat) for cat in cats.of]
    chunk.slices = {
        "name": strings(name or NO_NAME for name in told.of)[named],
        "category": strings(categories)[of_cat],
        "thread": _threads(chunk, events, threads),
        "start": start,
        "duration": duration,
    }
    records = named == told.of.get(_COLLECTIVE_RECORD, -1)
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
    """The arguments of complete events by group, and their events' places."""

    unfinished: Array
    """Whether an event says that it had not ended."""
    found: dict[str, tuple[list[Any], Array]] = field(default_factory=dict)
    nulls: int = 0


def _read_groups(events: list[Any], groups: list[str], of_cat: Array, records: Array) -> _Groups:
    """Read the arguments of complete events: of each what its group has.

    Args:
        events: The complete events of a chunk.
        groups: The group of each category.
        of_cat: The category of each event, as its place in `groups`, shape (n,).
        records: Which events are records of collectives, shape (n,).
    """
    texts = list(map(attrgetter("args"), events))
    read = _Groups(np.zeros(len(events), bool))
    collective: list[int] = []
    for group in dict.fromkeys(groups):
        among = np.array([one == group for one in groups], bool)
        rows = np.flatnonzero(among[of_cat])
        args, nulls = read_args(group, [texts[row] for row in rows.tolist()])
        read.nulls += nulls
        finished = list(map(attrgetter("finished"), args))
        if False in finished:
            read.unfinished[rows] = ~np.array(finished, bool)
        if group:
            read.found[group] = args, rows
        if group in {"op", "device"}:
            with_collective = rows[given(list(map(attrgetter("collective"), args)))]
            are_told = (
                with_collective if group == "device" else with_collective[records[with_collective]]
            )
            collective += are_told.tolist()
        if group == "op":
            read.found["compiled"] = _again(
                "compiled", texts, rows[given(list(map(attrgetter("backend"), args)))]
            )
    read.found["collective"] = _again("collective", texts, np.sort(np.array(collective, np.int64)))
    return read


def _again(group: str, texts: list[Any], rows: Array) -> tuple[list[Any], Array]:
    """The arguments of these events as another group reads them."""
    return read_args(group, [texts[row] for row in rows.tolist()])[0], rows


def _settle(chunk: ChunkColumns, written: Array, duration: Array) -> None:
    """Events whose time is in nanoseconds have their durations in nanoseconds too."""
    chunk.in_nanoseconds = np.flatnonzero(written).tolist()
    shorter = written & (duration > 0)
    duration[shorter] //= 1000


def _category(text: str | None) -> str:
    """Today's name of a category; the first known one of a list such as `cpu_op,user`."""
    lower = (text or "").lower()
    if lower in names.TRACK_KIND:
        return lower
    for part in (lower, *lower.split(",")):
        today = names.TODAY.get(part.strip(), part.strip())
        if today in names.TRACK_KIND:
            return today
    return lower


def thread_key(event: Any) -> tuple[str, str]:
    """The thread of an event as two texts; an absent one is unlike any that is given."""
    return _key_text(event.pid), _key_text(event.tid)


def _key_text(key: int | str | None) -> str:
    if key is None:
        return _ABSENT
    return f"'{key}'" if key == _ABSENT else str(key)


_ABSENT: Final = "?"


def _threads(chunk: ChunkColumns, events: Sequence[Any], threads: Codes) -> Array:
    """The threads' numbers; each pair of keys is made text once."""
    told = Codes()
    codes = told(zip(map(attrgetter("pid"), events), map(attrgetter("tid"), events), strict=True))
    absent = [at for at, (pid, tid) in enumerate(told.of) if pid is None or tid is None]
    if absent:
        lacking = int(np.isin(codes, absent).sum())
        chunk.faults["no process or thread: on a track of its own"] += lacking
    numbers = threads((_key_text(pid), _key_text(tid)) for pid, tid in told.of)
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
    return instants([e.ts for e in events])[0]


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
        if event.name in _LABELS and event.args is not EMPTY:
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


def _plain(value: str | bytes) -> str:
    """A string of the chunk as text: raw JSON without its white space, a JSON string unquoted."""
    if isinstance(value, str):
        return value
    if len(value) > _LONGEST:
        return value[:_SHORTENED].decode("utf-8", "replace") + "…"
    if value.startswith(b'"'):
        return str(value_decoder.decode(mend(value)[0]))
    return msgspec.json.format(value, indent=-1).decode("utf-8", "replace")
