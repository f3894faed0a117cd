"""Join the columns of a file's chunks: one numbering of strings and threads for the whole file."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.ingest.columns import GROUPS, NO_CODE, NO_NAME, ChunkColumns, Columns
from selftime.ingest.events import NO_INT

__all__ = ["FileColumns", "assemble"]

_CODED: Final = frozenset({"name", "category"})
_MARK_CODED: Final = frozenset({"category", "name"})


@dataclass(slots=True)
class FileColumns:
    """The columns of a whole file, in the file's order; texts are codes into `strings`."""

    strings: pl.Series
    """Every text of the file, dictionary-encoded."""
    threads: list[tuple[str, str]]
    slices: Columns
    groups: dict[str, Columns]
    labels: list[tuple[str, str, str, str]]
    counters: list[tuple[int, tuple[str, str], str, str, float]]
    phases: Counter[tuple[str, str]]
    faults: Counter[str] = field(default_factory=Counter)

    def text(self, codes: NDArray[Any]) -> pl.Series:
        """The texts that codes stand for; null for `NO_CODE`."""
        known = pl.Series(np.where(codes == NO_CODE, 0, codes))
        missing = codes == NO_CODE
        if not self.strings.len():
            return pl.Series([None] * codes.size, dtype=pl.Categorical)
        texts = self.strings.gather(known)
        if missing.any():
            return texts.set(pl.Series(missing), None)
        return texts


def assemble(chunks: list[ChunkColumns]) -> FileColumns:
    """The columns of all chunks, one after the other."""
    strings: dict[str, int] = {}
    threads: dict[tuple[str, str], int] = {}
    slices: list[Columns] = []
    groups: dict[str, list[Columns]] = {}
    halves: list[tuple[str, int, int, int, int]] = []
    counters: list[tuple[int, tuple[str, str], str, str, float]] = []
    whole = FileColumns(pl.Series(), [], {}, {}, [], [], Counter())
    at = 0
    for chunk in chunks:
        codes = np.array([strings.setdefault(s, len(strings)) for s in chunk.strings], np.uint32)
        places = np.array([threads.setdefault(t, len(threads)) for t in chunk.threads], np.uint32)
        slices.append(_recoded(chunk.slices, codes, places, _CODED))
        for group, columns in chunk.groups.items():
            moved = _recoded(columns, codes, places, _coded(group))
            if "row" in moved:
                moved["row"] = moved["row"] + at
            groups.setdefault(group, []).append(moved)
        halves += [
            (phase, time, int(codes[name]), int(codes[category]), int(places[thread]))
            for phase, time, name, category, thread in chunk.halves
        ]
        counters += [
            (time, chunk.threads[thread], name, series, value)
            for time, thread, name, series, value in chunk.counters
        ]
        whole.labels += chunk.labels
        whole.phases += chunk.phases
        whole.faults += chunk.faults
        at += chunk.slices["name"].size
    slices.append(_paired(halves, strings.get(NO_NAME, -1), whole.faults))
    whole.strings = pl.Series(list(strings), dtype=pl.String).cast(pl.Categorical)
    whole.threads = list(threads)
    whole.slices = _joined(slices)
    whole.groups = {group: _joined(parts) for group, parts in groups.items()}
    whole.counters = counters
    return whole


def _coded(group: str) -> frozenset[str]:
    if group == "instants":
        return _MARK_CODED
    return frozenset(spec.name for spec in GROUPS[group] if spec.kind == "text")


def _recoded(
    columns: Columns, codes: NDArray[Any], places: NDArray[Any], coded: frozenset[str]
) -> Columns:
    """The chunk's columns with the file's numbers for strings and threads."""
    out: Columns = {}
    for name, column in columns.items():
        if name in coded:
            known = column != NO_CODE
            out[name] = np.full(column.size, NO_CODE, np.uint32)
            out[name][known] = codes[column[known]]
        elif name == "thread":
            out[name] = places[column] if column.size else column.astype(np.uint32)
        else:
            out[name] = column
    return out


def _joined(parts: list[Columns]) -> Columns:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _paired(
    halves: list[tuple[str, int, int, int, int]], nameless: int, faults: Counter[str]
) -> Columns:
    """Complete events from begins and ends: an end closes the last open begin of its thread.

    An end that names another event than the last begun closes the last begun of that name.
    """
    open_of: dict[int, list[tuple[int, int, int]]] = {}
    rows: list[tuple[int, int, int, int, int]] = []
    for phase, time, name, category, thread in sorted(halves, key=lambda half: half[1]):
        stack = open_of.setdefault(thread, [])
        if phase == "B":
            stack.append((time, name, category))
            continue
        names = [begun[1] for begun in stack]
        if not stack or (name != nameless and name not in names):
            faults["an end without a begin: left out"] += 1
            continue
        at = len(names) - 1 - names[::-1].index(name) if name in names else len(names) - 1
        if at < len(names) - 1:
            faults["an end that crosses another event: joined by name"] += 1
        begin, name_begun, category_begun = stack.pop(at)
        known = NO_INT not in (begin, time)
        rows.append((name_begun, category_begun, thread, begin, time - begin if known else NO_INT))
    for thread, stack in open_of.items():
        for begin, name, category in stack:
            faults["a begin without an end: left out of totals"] += 1
            rows.append((name, category, thread, begin, NO_INT))
    table = np.array(rows, np.int64).reshape(-1, 5)
    columns: Columns = {
        column: table[:, at].astype(np.uint32)
        for at, column in enumerate(("name", "category", "thread"))
    }
    columns["start"], columns["duration"] = table[:, 3], table[:, 4]
    return columns
