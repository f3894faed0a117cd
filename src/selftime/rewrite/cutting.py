"""A file's text with only the events of a part, which every viewer shows in full.

Events stand as they were written. Other values have only those that were clipped, and those that
cross others of their thread: these lie on further threads, named `stream 7 (2)`, and the key
`selftime_tracks` tells whose they are, so that reading puts them back.
"""

from collections.abc import Iterator, Mapping
from itertools import compress
from typing import Any, Final

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.arrays import Ints
from selftime.ingest.links.arrange import homes_of
from selftime.ingest.text.parts import TextParts, split
from selftime.ingest.text.placed import Marks, Placed, marks_of
from selftime.rewrite.event_times import FileClock, with_values
from selftime.rewrite.part import Part
from selftime.rewrite.threads import AddedThreads, number_of

ENDS: Final = "stf"
"""Phases of an arrow's points: its begin, a step on the way, its end."""

_SEPARATOR: Final = b",\n  "
_FACTS: Final = "selftime"
_TRACKS: Final = "selftime_tracks"


class Arrows:
    """Holds back an arrow's points until it has a begin and an end."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, bytes], list[bytes]] = {}
        self._seen: dict[tuple[str, bytes], set[str]] = {}

    def add(self, group: tuple[str, bytes], phase: str, text: bytes) -> Iterator[bytes]:
        """Take a point; give those that can be written now."""
        seen = self._seen.setdefault(group, set())
        seen.add(phase)
        waiting = self._waiting.setdefault(group, [])
        waiting.append(text)
        if {"s", "f"} <= seen:
            yield from waiting
            waiting.clear()


class Cut:
    """Takes a file's parts and hands on what belongs to a part of it."""

    def __init__(self, target: TextParts, placed: Placed, part: Part) -> None:
        self.target, self.placed, self.part = target, placed, part
        self.count = 0
        """How many events were handed on."""
        self._threads = AddedThreads(placed.trace, part.kept, part.start, part.end)
        self._arrows = Arrows()
        self._begun: dict[tuple[str, str], list[bool]] = {}
        self._clock = FileClock(placed.zero)
        self._at = 0
        self._starts = _starts(part)
        self._ids = _external_ids(placed, part)
        self._homes = homes_of(placed.trace.metadata)

    @property
    def moved(self) -> int:
        """How many events lie on threads that were added."""
        return int((self._threads.lane > 0).sum())

    def key(self, name: str, value: bytes) -> None:
        """Every key; of our facts those on the operators that are left."""
        if name == _TRACKS and self._homes:  # threads are added anew
            return
        if name == _FACTS:
            value = _with_operators(value, self._ids)
        self.target.key(name, value)

    def events(self, text: bytes, _count: int) -> None:
        """The events of the part."""
        texts, marks = split(text), marks_of(text)
        away = self._at_home(texts, marks)
        at = np.flatnonzero(marks.is_complete)
        slices = self.placed.slice_of[self._at : self._at + at.size]
        self._at += at.size
        part = self.part
        times = self._clock.instants(marks, at, part.written[slices], part.is_timed[slices])
        wanted = np.zeros(times.size, bool)
        wanted[at] = part.kept[slices]
        changed = (part.clipped[slices] | (self._threads.lane[slices] > 0)) & wanted[at]
        for where, number in zip(at[changed].tolist(), slices[changed].tolist(), strict=True):
            values = self._values(number, marks, where)
            texts[where] = msgspec.Raw(with_values(bytes(texts[where]), values))
        for where in np.flatnonzero(~marks.is_complete).tolist():
            is_label = away[where] and marks.phase[where] == "M"
            kept = not is_label and self._keeps(marks, where, int(times[where]), texts[where])
            wanted[where] = kept
        arrows = [where for where in np.flatnonzero(wanted).tolist() if marks.phase[where] in ENDS]
        written = [bytes(one) for one in compress(texts, wanted & ~_at(arrows, wanted.size))]
        for where in arrows:
            point = marks.group[where], marks.phase[where], bytes(texts[where])
            written += self._arrows.add(*point)
        self._hand_on(written)

    def _at_home(self, texts: list[msgspec.Raw], marks: Marks) -> NDArray[np.bool_]:
        """Put events back on the threads that they were on before an earlier cut; which they are.

        Else a thread that is added now could have the number of one that was added then.
        """
        away = np.zeros(len(texts), bool)
        if self._homes:
            away = np.array([thread in self._homes for thread in marks.thread], bool)
        for where in np.flatnonzero(away).tolist():
            _, own = self._homes[marks.thread[where]]
            texts[where] = msgspec.Raw(with_values(bytes(texts[where]), {"tid": number_of(own)}))
        return away

    def _hand_on(self, texts: list[bytes]) -> None:
        if texts:
            self.count += len(texts)
            self.target.events(_SEPARATOR.join(texts), len(texts))

    def end(self) -> None:
        """What is written behind the last events: the threads that were added."""
        labels = self._threads.labels()
        if labels:
            self._hand_on(labels)
            self.target.key(_TRACKS, self._threads.told())

    def _values(self, number: int, marks: Marks, at: int) -> dict[str, Any]:
        """The values in which a slice is other than written."""
        values: dict[str, Any] = {}
        if self.part.clipped[number]:
            start, end = int(self.part.start[number]), int(self.part.end[number])
            values["ts"] = self._clock.text(marks, at, start - int(self.part.written[number]))
            whole = bool(marks.in_nanoseconds[at])
            values["dur"] = self._clock.length(end - start, whole=whole)
        if self._threads.lane[number]:
            values["tid"] = self._threads.tid(number)
        return values

    def _keeps(self, marks: Marks, at: int, time: int, text: msgspec.Raw) -> bool:
        """Whether an event is kept that is no slice by itself."""
        phase = marks.phase[at]
        if phase == "M":
            self._threads.note(marks.thread[at], marks.name[at], bytes(text))
            return True
        inside = self.part.begin <= time < self.part.done
        if phase in ENDS:
            found = np.searchsorted(self._starts, time)
            return bool(found < self._starts.size and self._starts[found] == time)
        if phase == "B":
            self._begun.setdefault(marks.thread[at], []).append(inside)
        elif phase == "E":
            begun = self._begun.get(marks.thread[at], [])
            return begun.pop() if begun else False
        return inside


def _at(places: list[int], size: int) -> NDArray[np.bool_]:
    found = np.zeros(size, bool)
    found[places] = True
    return found


def _starts(part: Part) -> Ints:
    """When the kept slices begin, in order: where an arrow may begin or end."""
    return np.unique(part.start[part.kept])


def _external_ids(placed: Placed, part: Part) -> frozenset[int]:
    """The recorder's numbers of the operators that are kept."""
    ops = placed.trace.op_args
    kept = pl.Series(part.kept[ops["id"].to_numpy()])
    return frozenset(ops.filter(kept)["external_id"].drop_nulls().to_list())


def _with_operators(facts: bytes, ids: frozenset[int]) -> bytes:
    """The facts, their columns on operators cut to those that are left."""
    told = msgspec.json.decode(facts)
    if not isinstance(told, dict):
        return facts
    ops, lines = told.get("ops"), told.get("lines")
    if isinstance(lines, dict):
        told["lines"] = _of_columns(lines, ids, ("file", "line", "function", "how"))
    if isinstance(ops, dict):
        ops = _of_columns(ops, ids, ("overload",))
        if isinstance(ops.get("flops"), dict):
            ops["flops"] = _of_columns(ops["flops"], ids, ("value",))
        if isinstance(ops.get("async"), list):
            ops["async"] = [number for number in ops["async"] if number in ids]
        told["ops"] = ops
    return msgspec.json.encode(told)


def _of_columns(
    table: Mapping[str, Any], ids: frozenset[int], columns: tuple[str, ...]
) -> dict[str, Any]:
    """A table of columns with the rows of these ids; one whose columns do not fit stays."""
    told = table.get("id")
    lists = {name: table.get(name) for name in columns}
    if not isinstance(told, list) or any(
        not isinstance(one, list) or len(one) != len(told) for one in lists.values()
    ):
        return dict(table)
    rows = [isinstance(number, int) and number in ids for number in told]
    cut = {name: list(compress(one or [], rows)) for name, one in lists.items()}
    return {**table, "id": list(compress(told, rows)), **cut}
