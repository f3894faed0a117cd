"""Join the columns of a file's chunks: one numbering of strings and threads for the whole file."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.ingest.events.arguments import GROUPS, NO_CODE, Columns
from selftime.ingest.events.columns import NO_NAME, ChunkColumns
from selftime.ingest.events.pairing import Half, Numbers, paired, span_rows

__all__ = ["FileColumns", "assemble"]

Ints = NDArray[np.int64]

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
    notes: Counter[str] = field(default_factory=Counter)
    """What is odd and sound."""
    ruins: Counter[str] = field(default_factory=Counter)
    """What nothing can be concluded from."""
    in_nanoseconds: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Places of the slices whose times were written in integer nanoseconds."""

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


def assemble(
    chunks: list[ChunkColumns], homes: Mapping[tuple[str, str], tuple[str, str]]
) -> FileColumns:
    """The columns of all chunks, one after the other; they are taken from the chunks.

    `homes` holds threads whose events belong to another, and which that is.
    """
    strings: dict[str, int] = {}
    threads: dict[tuple[str, str], int] = {}
    slices: list[Columns] = []
    groups: dict[str, list[Columns]] = {}
    halves: list[Half] = []
    spans: list[tuple[Half, str]] = []
    written: list[Ints] = []
    whole = FileColumns(pl.Series(), [], {}, {}, [], [], Counter())
    at = 0
    for chunk in chunks:
        codes = np.array([strings.setdefault(s, len(strings)) for s in chunk.strings], np.uint32)
        at_home = [homes.get(thread, thread) for thread in chunk.threads]
        places = np.array([threads.setdefault(t, len(threads)) for t in at_home], np.uint32)
        slices.append(_recoded(chunk.slices, codes, places, _CODED))
        for group, columns in chunk.groups.items():
            moved = _recoded(columns, codes, places, _coded(group))
            if "row" in moved:
                moved["row"] = moved["row"] + at
            groups.setdefault(group, []).append(moved)
        halves += [_moved(half, codes, places) for half in chunk.halves]
        spans += [(_moved(half, codes, places), span) for *half, span in chunk.spans]
        written.append(np.array(chunk.in_nanoseconds, np.int64) + at)
        whole.counters += [
            (time, at_home[thread], name, series, value)
            for time, thread, name, series, value in chunk.counters
        ]
        whole.labels += chunk.labels
        whole.phases += chunk.phases
        whole.faults += chunk.faults
        at += chunk.slices["name"].size
        chunk.slices.clear()
        chunk.groups.clear()
    slices.append(paired(halves, strings.get(NO_NAME, -1), whole.faults))
    lasting, marks = span_rows(spans, Numbers(strings, threads), whole.faults)
    slices.append(lasting)
    groups.setdefault("instants", []).append(marks)
    whole.in_nanoseconds = np.concatenate([*written, whole.in_nanoseconds])
    whole.strings = pl.Series(list(strings), dtype=pl.String).cast(pl.Categorical)
    whole.threads = list(threads)
    whole.slices = _joined(slices)
    whole.groups = {group: _joined(parts) for group, parts in groups.items()}
    return whole


def _moved(half: Sequence[Any], codes: NDArray[Any], places: NDArray[Any]) -> Half:
    """A begin or an end with the file's numbers for strings and threads."""
    phase, time, name, category, thread = half
    return phase, time, int(codes[name]), int(codes[category]), int(places[thread])


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
    """The parts' columns end to end; each is taken from them, so that none is held twice."""
    return {name: np.concatenate([part.pop(name) for part in parts]) for name in list(parts[0])}
