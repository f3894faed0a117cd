"""From the events of one chunk to columns: the work that each reading process does.

A chunk's columns speak of its own strings and threads by number; `assemble` joins the chunks of a
file and numbers them anew. Columns hold `NO_INT`, NaN or `NO_CODE` where the trace gives no value.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np

from selftime import names
from selftime.ingest.damage.mend import mend
from selftime.ingest.events.arguments import GROUPS, Array, Codes, Columns, group_columns
from selftime.ingest.events.event import NO_INT, NO_TEXT, Args, Event, value_decoder
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


def columns_of(events: Sequence[Event]) -> ChunkColumns:
    """The columns of a chunk's events, in the file's order."""
    chunk = ChunkColumns()
    chunk.phases.update((e.ph, e.cat or "") for e in events)
    strings, threads = Codes(), Codes()
    complete = [e for e in events if e.ph == "X" and e.name not in _MEMORY_NAMES]
    memory = [e for e in events if e.name in _MEMORY_NAMES and (e.ph == "X" or e.ph in _MARKS)]
    instants = [e for e in events if e.ph in _MARKS and e.name not in _MEMORY_NAMES]
    chunk.slices = _slice_columns(chunk, complete, strings, threads)
    for group, rows in _rows_by_group(complete).items():
        chunk.groups[group] = group_columns(GROUPS[group], complete, rows, strings)
    chunk.groups["memory"] = _memory_columns(chunk, memory, strings, threads)
    chunk.groups["instants"] = _mark_columns(instants, strings, threads)
    for e in events:
        if e.ph in _RARE:
            _read_rare(chunk, e, strings, threads)
    chunk.strings = [_plain(value) for value in strings.of]
    chunk.threads = list(threads.of)
    return chunk


_MEMORY_NAMES: Final = frozenset({names.ALLOCATION, names.OUT_OF_MEMORY})
_MARKS: Final = frozenset("iIR")
_RARE: Final = frozenset("BEMbneSTpF")
_ASYNCHRONOUS: Final = {**dict.fromkeys("bS", "b"), **dict.fromkeys("nTp", "n"), "e": "e", "F": "e"}
"""Phases of asynchronous spans, today's and those of old, by what they mean: begin, mark, end."""
_LABELS: Final = frozenset({"process_name", "process_labels", "thread_name"})


def _slice_columns(
    chunk: ChunkColumns, events: list[Event], strings: Codes, threads: Codes
) -> Columns:
    start, written = instants([e.ts for e in events])
    duration = nanoseconds([e.dur for e in events])
    if written is not None:
        _settle(chunk, written, duration)
    args = [e.args for e in events]
    named = [e.name for e in events]
    unfinished = np.array([isinstance(a, Args) and not a.finished for a in args], bool)
    unknown = (duration < 0) | unfinished
    duration[unknown] = NO_INT
    chunk.faults[NO_END] += int((unknown & (start != NO_INT)).sum())
    chunk.faults["no name: shown as (no name)"] += named.count(None) + named.count("")
    chunk.faults["arguments that are no object: read as none"] += args.count(None)
    return {
        "name": strings(name or NO_NAME for name in named),
        "category": strings(_category(e.cat) for e in events),
        "thread": _threads(chunk, events, threads),
        "start": start,
        "duration": duration,
    }


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


def thread_key(event: Event) -> tuple[str, str]:
    """The thread of an event as two texts; an absent one is unlike any that is given."""
    return _key_text(event.pid), _key_text(event.tid)


def _key_text(key: int | str | None) -> str:
    if key is None:
        return _ABSENT
    return f"'{key}'" if key == _ABSENT else str(key)


_ABSENT: Final = "?"


def _threads(chunk: ChunkColumns, events: Sequence[Event], threads: Codes) -> Array:
    """The threads' numbers; each pair of keys is made text once."""
    keys = [(e.pid, e.tid) for e in events]
    told = Codes()
    codes = told(keys)
    absent = [at for at, (pid, tid) in enumerate(told.of) if pid is None or tid is None]
    if absent:
        lacking = int(np.isin(codes, absent).sum())
        chunk.faults["no process or thread: on a track of its own"] += lacking
    numbers = threads((_key_text(pid), _key_text(tid)) for pid, tid in told.of)
    return numbers[codes] if codes.size else codes


def _rows_by_group(events: list[Event]) -> dict[str, list[int]]:
    """Which events have which group of arguments."""
    kind_of: dict[str | None, str] = {}
    rows: dict[str, list[int]] = {}
    for at, e in enumerate(events):
        group = kind_of.get(e.cat)
        if group is None:
            group = kind_of[e.cat] = _group_of(_category(e.cat))
        if not group:
            continue
        rows.setdefault(group, []).append(at)
        if not e.args:
            continue
        if e.args.collective is not NO_TEXT and (group == "device" or _is_record(e)):
            rows.setdefault("collective", []).append(at)
        if group == "op" and e.args.backend is not NO_TEXT:
            rows.setdefault("compiled", []).append(at)
    return rows


def _is_record(event: Event) -> bool:
    return event.name == _COLLECTIVE_RECORD


def _group_of(category: str) -> str:
    kind = names.TRACK_KIND.get(category, "other")
    if kind == "host":
        return "call" if category in names.CALLS else "op"
    return _GROUP_OF_KIND.get(kind, "")


def _memory_columns(
    chunk: ChunkColumns, events: list[Event], strings: Codes, threads: Codes
) -> Columns:
    columns = group_columns(GROUPS["memory"], events, list(range(len(events))), strings)
    columns["time"] = _instants(events)
    columns["thread"] = _threads(chunk, events, threads)
    columns["failed"] = np.array([e.name == names.OUT_OF_MEMORY for e in events], bool)
    return columns


def _instants(events: Sequence[Event]) -> Array:
    return instants([e.ts for e in events])[0]


def _mark_columns(events: list[Event], strings: Codes, threads: Codes) -> Columns:
    return {
        "time": _instants(events),
        "thread": threads(map(thread_key, events)),
        "category": strings((e.cat or "").lower() for e in events),
        "name": strings(e.name or NO_NAME for e in events),
    }


def _read_rare(chunk: ChunkColumns, event: Event, strings: Codes, threads: Codes) -> None:
    thread = thread_key(event)
    if event.ph == "M":
        if event.name in _LABELS and event.args:
            text = event.args.labels if event.name == "process_labels" else event.args.name
            chunk.labels.append((str(event.name), *thread, str(text).strip()))
        return
    [time] = _instants([event]).tolist()
    [name, category] = strings((event.name or NO_NAME, _category(event.cat))).tolist()
    [number] = threads((thread,)).tolist()
    if event.ph in _ASYNCHRONOUS:
        span = bytes(event.id).decode("utf-8", "replace").strip('"')
        phase = _ASYNCHRONOUS[event.ph]
        chunk.spans.append((phase, time, name, category, number, span))
        return
    chunk.halves.append((event.ph, time, name, category, number))


def _plain(value: str | bytes) -> str:
    """A string of the chunk as text: raw JSON without its white space, a JSON string unquoted."""
    if isinstance(value, str):
        return value
    if len(value) > _LONGEST:
        return value[:_SHORTENED].decode("utf-8", "replace") + "…"
    if value.startswith(b'"'):
        return str(value_decoder.decode(mend(value)[0]))
    return msgspec.json.format(value, indent=-1).decode("utf-8", "replace")
