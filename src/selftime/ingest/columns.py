"""From the events of one chunk to columns: the work that each reading process does.

A chunk's columns speak of its own strings and threads by number; `assemble` joins the chunks of a
file and numbers them anew. Columns hold `NO_INT`, NaN or `NO_CODE` where the trace gives no value.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from selftime import names
from selftime.ingest.events import NO_INT, NO_TEXT, Args, Event, value_decoder
from selftime.ingest.mend import mend
from selftime.ingest.times import nanoseconds

__all__ = ["GROUPS", "NO_CODE", "NO_NAME", "ChunkColumns", "Spec", "columns_of"]

NO_CODE: Final = 0xFFFF_FFFF
"""Stands for a string that the trace does not give."""

NO_NAME: Final = "(no name)"
"""Shown for an event that has none."""

Array: TypeAlias = NDArray[Any]
Columns: TypeAlias = dict[str, Array]
Kind = Literal["int", "unsigned", "float", "text", "triple"]


@dataclass(frozen=True, slots=True)
class Spec:
    """One column of a group: its name, the argument it is read from, and how."""

    name: str
    kind: Kind
    attribute: str
    instead: str = ""
    """The argument's older name, read where the first is absent."""


def _ints(*pairs: str) -> tuple[Spec, ...]:
    return tuple(Spec(name, "int", name) for name in pairs)


def _texts(*pairs: str) -> tuple[Spec, ...]:
    return tuple(Spec(name, "text", name) for name in pairs)


_EXTERNAL: Final = Spec("external_id", "int", "external_id", "external_id_2021")
_COLLECTIVE: Final = (
    *_texts("collective", "dtype", "group", "group_description", "group_ranks"),
    *_ints("in_elements", "out_elements", "group_size", "rank", "source", "destination"),
    Spec("group_sequence", "int", "group_sequence"),
)

GROUPS: Final[dict[str, tuple[Spec, ...]]] = {
    "op": (
        _EXTERNAL,
        *_ints("sequence", "forward_thread"),
        Spec("input_shapes", "text", "input_shapes", "input_shapes_2021"),
        *_texts("input_types", "input_strides", "concrete_inputs", "call_stack"),
    ),
    "compiled": (
        *_texts("backend", "kernel_file", "kernel_hash", "kernel_arguments", "grid"),
        *_ints("warps", "stages"),
    ),
    "call": (_EXTERNAL, *_ints("correlation"), Spec("bytes", "int", "bytes", "size")),
    "frame": _ints("python_id", "python_parent", "module_id"),
    "device": (
        _EXTERNAL,
        *_ints("correlation", "device", "stream", "registers", "shared_memory", "bytes"),
        *_ints("graph", "graph_node"),
        *(Spec(n, "triple", n) for n in ("grid", "block")),
        *(Spec(n, "float", n) for n in ("blocks_per_sm", "warps_per_sm", "occupancy")),
        Spec("bandwidth", "float", "bandwidth"),
        *_texts("kind"),
    ),
    "collective": _COLLECTIVE,
    "sync": (
        *_texts("sync_kind"),
        *_ints("device", "stream", "correlation", "waits_on_stream", "recorded_by"),
        Spec("event", "int", "event", "event_id"),
    ),
    "memory": (
        Spec("bytes", "int", "memory_bytes"),
        Spec("address", "unsigned", "address"),
        *_ints("allocated", "reserved", "device_type"),
        Spec("device", "int", "device_id"),
    ),
}
"""The columns of each group of arguments, by group."""

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
    labels: list[tuple[str, str, str, str]] = field(default_factory=list)
    """Metadata: kind, process, thread, text."""
    counters: list[tuple[int, int, str, str, float]] = field(default_factory=list)
    """Samples: time, thread, counter, series, value."""
    phases: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    """Events kept with something missing, by what is missing."""


class _Codes:
    """Numbers for values, in order of their first appearance."""

    def __init__(self) -> None:
        self.of: dict[Any, int] = {}

    def __call__(self, values: Iterable[Any]) -> Array:
        of = self.of
        return np.array([of.setdefault(value, len(of)) for value in values], np.uint32)


def columns_of(events: Sequence[Event]) -> ChunkColumns:
    """The columns of a chunk's events, in the file's order."""
    chunk = ChunkColumns()
    chunk.phases.update((e.ph, e.cat or "") for e in events)
    strings, threads = _Codes(), _Codes()
    complete = [e for e in events if e.ph == "X" and e.name not in _MEMORY_NAMES]
    memory = [e for e in events if e.name in _MEMORY_NAMES and e.ph in _MARKS + "X"]
    instants = [e for e in events if e.ph in _MARKS and e.name not in _MEMORY_NAMES and e.ph]
    chunk.slices = _slice_columns(chunk, complete, strings, threads)
    for group, rows in _rows_by_group(complete).items():
        chunk.groups[group] = _group_columns(GROUPS[group], complete, rows, strings)
    chunk.groups["memory"] = _memory_columns(memory, strings, threads)
    chunk.groups["instants"] = _mark_columns(instants, strings, threads)
    for e in events:
        if e.ph in _RARE:
            _read_rare(chunk, e, strings, threads)
    chunk.strings = [_plain(value) for value in strings.of]
    chunk.threads = list(threads.of)
    return chunk


_MEMORY_NAMES: Final = frozenset({names.ALLOCATION, names.OUT_OF_MEMORY})
_MARKS: Final = "iIR"
_RARE: Final = frozenset("BEM")
_EARLIEST: Final = -(1 << 61)
_LATEST: Final = (1 << 62) - 1
_LONGEST: Final = (1 << 61) - 1
"""Times in ns, 73 and 146 years, beyond which a number is no time; sums of them fit 63 bits."""
_LABELS: Final = frozenset({"process_name", "process_labels", "thread_name"})


def _slice_columns(
    chunk: ChunkColumns, events: list[Event], strings: _Codes, threads: _Codes
) -> Columns:
    start = nanoseconds([e.ts for e in events])
    duration = nanoseconds([e.dur for e in events])
    unfinished = np.array([e.args is not None and not e.args.finished for e in events], bool)
    timeless = (start < _EARLIEST) | (start > _LATEST)
    start[timeless] = NO_INT
    unknown = (duration < 0) | (duration > _LONGEST) | unfinished
    duration[unknown | timeless] = NO_INT
    chunk.faults["no time: kept without one, out of totals"] += int(timeless.sum())
    chunk.faults["no name: shown as (no name)"] += sum(not e.name for e in events)
    chunk.faults["no end: left out of totals"] += int((unknown & ~timeless).sum())
    return {
        "name": strings(e.name or NO_NAME for e in events),
        "category": strings(_category(e.cat) for e in events),
        "thread": threads(map(thread_key, events)),
        "start": start,
        "duration": duration,
    }


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
    pid, tid = event.pid, event.tid
    return ("?" if pid is None else str(pid), "?" if tid is None else str(tid))


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
        if e.args is None:
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


_NO_ARGS: Final = Args()


def _group_columns(
    specs: tuple[Spec, ...], events: list[Event], rows: list[int], strings: _Codes
) -> Columns:
    args = [events[row].args or _NO_ARGS for row in rows]
    columns: Columns = {"row": np.array(rows, np.int64)}
    for spec in specs:
        values = list(map(attrgetter(spec.attribute), args))
        if spec.instead:
            older = map(attrgetter(spec.instead), args)
            absent = NO_TEXT if spec.kind == "text" else NO_INT
            values = [o if v is absent or v == absent else v for v, o in zip(values, older)]  # noqa: B905 - as long
        columns[spec.name] = _column(spec.kind, values, strings)
    return columns


def _column(kind: Kind, values: list[Any], strings: _Codes) -> Array:
    match kind:
        case "int":
            return _int_column(values)
        case "unsigned":
            return np.array(
                [v if isinstance(v, int) and 0 <= v < 2**64 else 0 for v in values], "u8"
            )
        case "float":
            return np.array(values, np.float64)
        case "text":
            of = strings.of
            return np.array(
                [NO_CODE if v is NO_TEXT else of.setdefault(bytes(v), len(of)) for v in values],
                np.uint32,
            )
        case "triple":
            known: dict[bytes, tuple[int, int, int]] = {}
            return np.array([_triple(v, known) for v in values], np.int32).reshape(-1, 3)


def _int_column(values: list[Any]) -> Array:
    try:
        return np.fromiter(values, np.int64, len(values))
    except (TypeError, ValueError, OverflowError):
        return np.fromiter(map(_int, values), np.int64, len(values))


def _int(value: object) -> int:
    """An integer written as text, null, or beyond 63 bits (an unsigned -1)."""
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            return NO_INT
    if not isinstance(value, int) or not -(2**63) <= value < 2**64:
        return NO_INT
    return value if value < 2**63 else value - 2**64


def _triple(value: msgspec.Raw, known: dict[bytes, tuple[int, int, int]]) -> tuple[int, int, int]:
    text = bytes(value)
    if text not in known:
        try:
            x, y, z = msgspec.json.decode(text, type=tuple[int, int, int])
            known[text] = (x, y, z)
        except msgspec.DecodeError:
            known[text] = (-1, -1, -1)
    return known[text]


def _memory_columns(events: list[Event], strings: _Codes, threads: _Codes) -> Columns:
    columns = _group_columns(GROUPS["memory"], events, list(range(len(events))), strings)
    columns["time"] = _instants(events)
    columns["thread"] = threads(map(thread_key, events))
    columns["failed"] = np.array([e.name == names.OUT_OF_MEMORY for e in events], bool)
    return columns


def _instants(events: Sequence[Event]) -> Array:
    time = nanoseconds([e.ts for e in events])
    time[(time < _EARLIEST) | (time > _LATEST)] = NO_INT
    return time


def _mark_columns(events: list[Event], strings: _Codes, threads: _Codes) -> Columns:
    return {
        "time": _instants(events),
        "thread": threads(map(thread_key, events)),
        "category": strings((e.cat or "").lower() for e in events),
        "name": strings(e.name or NO_NAME for e in events),
    }


def _read_rare(chunk: ChunkColumns, event: Event, strings: _Codes, threads: _Codes) -> None:
    thread = thread_key(event)
    if event.ph == "M":
        if event.name in _LABELS and event.args is not None:
            text = event.args.labels if event.name == "process_labels" else event.args.name
            chunk.labels.append((str(event.name), *thread, str(text).strip()))
        return
    [time] = _instants([event]).tolist()
    [name, category] = strings((event.name or NO_NAME, _category(event.cat))).tolist()
    [number] = threads((thread,)).tolist()
    chunk.halves.append((event.ph, time, name, category, number))


def _plain(value: str | bytes) -> str:
    """A string of the chunk as text: raw JSON without its white space, a JSON string unquoted."""
    if isinstance(value, str):
        return value
    if value.startswith(b'"'):
        return str(value_decoder.decode(mend(value)[0]))
    return msgspec.json.format(value, indent=-1).decode("utf-8", "replace")
