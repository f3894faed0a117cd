"""Describes as JSON for the page which slices the numbers of the advice stand for.

The timeline shows the slices of a number; a slice tells of which findings and rows it is a part.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
import polars as pl

from selftime.advice import Advice
from selftime.advice.number_slices import NumberKind, NumberSlices, slices_of_numbers
from selftime.analysis.timeline import slice_lanes
from selftime.array_types import Ints
from selftime.intervals import Intervals, length
from selftime.reports.advice import wording
from selftime.reports.advice.account_table import account_row_cells, account_row_texts
from selftime.reports.page_data.table_queries import RowQuery, prepare_table
from selftime.schema import Column, NameType
from selftime.trace import Trace
from selftime.units import count_text, milliseconds_text, truncate_middle, whole_percent_text

MAX_SHOWN_SLICES: Final = 50_000
"""Largest number of slices of a number that the page is sent: the longest."""
MAX_SHOWN_STRETCHES: Final = 10_000
"""Largest number of stretches of time of no slice that the page is sent: the longest."""

_WHAT_A_FIX_CHANGES: Final = "what the fix removes or shortens"
_WHAT_IS_COUNTED: Final = "what is counted a step"
_PLACED_COLUMNS: Final = (
    Column("id", pl.UInt32, "id", ""),
    Column("track", pl.UInt32, "id", ""),
    Column("row", pl.Int64, "id", ""),
    Column("start", pl.Int64, "instant", ""),
    Column("duration", pl.Int64, "ns", "", nullable=True),
    Column("name", NameType, "name", ""),
    Column("category", NameType, "name", ""),
)
_STRETCH_COLUMNS: Final = (
    Column("start", pl.Int64, "instant", ""),
    Column("duration", pl.Int64, "ns", ""),
)


@dataclass(frozen=True, slots=True)
class DescribedNumber:
    """A number of the advice with the texts that the page shows, and its slices."""

    key: str
    kind: NumberKind
    title: str
    """The finding's title, or what the time of the row was spent on."""
    what: str
    """What of the finding the slices are; empty for a row."""
    detail: str
    """What the finding saves, or the row's time."""
    answer: Mapping[str, str]
    """Parameters of the panel Answer that open the finding or row."""
    are_examples: bool
    slices: Ints
    stretches: Intervals

    @property
    def memory_bytes(self) -> int:
        """The size in memory, without the texts."""
        return int(self.slices.nbytes + self.stretches.starts.nbytes + self.stretches.ends.nbytes)

    def to_dict(self) -> dict[str, Any]:
        """Returns the number as the JSON object `AdviceNumber`, without its slices."""
        return {
            "of": self.key,
            "kind": self.kind,
            "title": self.title,
            "what": self.what,
            "detail": self.detail,
            "answer": dict(self.answer),
            "are_examples": self.are_examples,
            "slice_count": int(self.slices.size),
            "stretch_count": int(self.stretches.starts.size),
            "stretch_time": length(self.stretches),
            "text": slices_text(self),
        }


def described_numbers(advice: Advice, root: str | None) -> tuple[DescribedNumber, ...]:
    """Returns the numbers of the advice that stand for slices, with their texts."""
    account = advice.account
    rows = [] if account is None else account_row_texts(account, root)
    cells = [] if account is None else account_row_cells(account, root)

    def described(number: NumberSlices) -> DescribedNumber:
        if number.kind == "row" and account is not None:
            row, name = account.rows[number.place], cells[number.place].name
            is_named = name is not None and row.places == 1 and name not in rows[number.place]
            title = rows[number.place] + (f", {name}" if is_named else "")
            detail = f"{milliseconds_text(row.ms)}, {whole_percent_text(row.share)} of the step"
            what, answer = "", {"why": str(number.place + 1), "rows": "all"}
        else:
            finding = advice.findings[number.place]
            title, detail = finding.title, wording.saving_text_parts(finding.saving)[0]
            what, answer = _what_of_finding(advice, number, root), {"open": finding.id}
        return DescribedNumber(
            number.key,
            number.kind,
            truncate_middle(title),
            truncate_middle(what),
            detail.rstrip(";,"),
            answer,
            number.are_examples,
            number.slices,
            number.stretches,
        )

    return tuple(map(described, slices_of_numbers(advice)))


def _what_of_finding(advice: Advice, number: NumberSlices, root: str | None) -> str:
    """Returns what of a finding the slices of a number are, in words."""
    if number.measurement is not None:
        evidence = advice.findings[number.place].evidence[number.measurement]
        return wording.evidence_metric_text(evidence, root)
    return _WHAT_IS_COUNTED if number.kind == "count" else _WHAT_A_FIX_CHANGES


def slices_text(number: DescribedNumber) -> str:
    """Returns how many slices a number stands for, and how many stretches of time of no slice."""
    slices, stretches = int(number.slices.size), int(number.stretches.starts.size)
    noun = "example" if number.are_examples else "slice"
    parts = []
    if slices:
        parts.append(_counted(slices, noun))
    if stretches:
        parts.append(f"{_counted(stretches, 'stretch', 'stretches')} of time")
    return " and ".join(parts)


def _counted(count: int, noun: str, plural: str = "") -> str:
    return f"{count_text(count)} {noun if count == 1 else plural or noun + 's'}"


def number_links(numbers: Iterable[DescribedNumber]) -> dict[str, dict[str, str]]:
    """Returns by key the JSON object `NumberLink`: the address, and how many slices it shows."""
    return {one.key: {"of": one.key, "text": slices_text(one)} for one in numbers}


def links_of_finding(
    links: Mapping[str, dict[str, str]], finding_id: str, evidence_count: int
) -> dict[str, Any]:
    """Returns the links of a finding's numbers; null for those without slices."""
    key = f"finding:{finding_id}"
    return {
        "changed": links.get(key),
        "count": links.get(f"{key}:count"),
        "evidence": [links.get(f"{key}:{number + 1}") for number in range(evidence_count)],
    }


def number_slices_json(
    trace: Trace, number: DescribedNumber, max_slices: int = MAX_SHOWN_SLICES
) -> bytes:
    """Returns a number with its slices as they lie in the timeline, in order of time."""
    slices = prepare_table(_placed_slices(trace, number.slices, max_slices), _PLACED_COLUMNS)
    times = prepare_table(_longest_stretches(number.stretches, max_slices), _STRETCH_COLUMNS)
    every = RowQuery()
    return msgspec.json.encode(
        {
            **number.to_dict(),
            "slices": msgspec.Raw(slices.page_json(every, view="", options={})),
            "stretches": msgspec.Raw(times.page_json(every, view="", options={})),
        }
    )


def _placed_slices(trace: Trace, ids: Ints, max_slices: int) -> pl.DataFrame:
    """Returns id, track, row, times and name of the longest of some slices, in order of time."""
    index = slice_lanes(trace)
    lanes = index.lane[ids]
    table = trace.slices[ids].select("id", "track", "start", "duration", "name", "category")
    table = table.with_columns(row=pl.Series(index.lanes.row[lanes], dtype=pl.Int64))
    longest = table.sort("duration", "id", descending=[True, False], nulls_last=True)
    return longest.head(max_slices).sort("start", "id").select(c.name for c in _PLACED_COLUMNS)


def _longest_stretches(stretches: Intervals, max_slices: int) -> pl.DataFrame:
    most = min(max_slices, MAX_SHOWN_STRETCHES)
    time = stretches.ends - stretches.starts
    longest = np.sort(np.argsort(-time, kind="stable")[:most])
    return pl.DataFrame({"start": stretches.starts[longest], "duration": time[longest]})
