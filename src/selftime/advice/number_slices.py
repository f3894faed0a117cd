"""Finds the slices that each number of the advice stands for: of a finding, and of the account.

A number has a key, which stays the same as long as its finding or row is: `finding:ID` is what the
fix changes, `finding:ID:count` the count in a step, `finding:ID:2` the second number measured, and
`account:ID` a row of the account.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal, TypeAlias

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.account.account_rows import AccountRow
from selftime.advice.advice_result import Advice
from selftime.advice.replay import CutHostTime, RemoveWaits, ScaleDeviceWork
from selftime.advice.rule_outcomes import Evidence, Finding
from selftime.analysis.graph.serial_threads import (
    host_states,
    is_host_track,
    serial_threads,
)
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import parent_of_every_slice
from selftime.analysis.slice_filters import filter_by_name
from selftime.array_types import Flags, Ints
from selftime.intervals import Intervals, union
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace

NumberKind: TypeAlias = Literal["changed", "count", "measured", "row"]
"""What a number is: what a fix changes, how often that is a step, a measurement, a row."""

_ROW_ID_DIGITS: Final = 6
"""Number of hexadecimal digits in the id of a row of the account."""
_NO_IDS: Final = np.zeros(0, np.int64)
_WORK_CATEGORIES: Final = (*names.OPERATOR_CATEGORIES, *names.RUNTIME_CALL_CATEGORIES)


@dataclass(frozen=True, slots=True, eq=False)
class NumberSlices:
    """A number of the advice, and the slices that it stands for."""

    key: str
    kind: NumberKind
    place: int
    """The place of the finding among the findings, or of the row among the rows, from 0."""
    slices: Ints
    """Ids of the slices, ascending."""
    stretches: Intervals
    """Time of the number that is of no slice, such as that before device work begins."""
    are_examples: bool = False
    """Whether the slices are only examples, as the rule names no others."""
    measurement: int | None = None
    """The place of the measurement among the finding's, from 0; None for other numbers."""


def slices_of_numbers(advice: Advice) -> tuple[NumberSlices, ...]:
    """Returns the numbers of the advice that stand for slices, or for time of no slice."""
    if advice.trace is None:
        return ()
    numbers = [
        *(one for at, _ in enumerate(advice.findings) for one in _of_finding(advice, at)),
        *_of_account(advice),
    ]
    return tuple(one for one in numbers if one.slices.size or one.stretches.starts.size)


def account_row_ids(rows: Iterable[AccountRow]) -> list[str]:
    """Returns an id of each row: its class, and digits of a hash of what tells rows apart."""
    seen: dict[str, int] = {}
    found = []
    for row in rows:
        where = row.where
        parts = (row.what, where.file, where.line, row.finding, row.verdict, row.places > 1)
        told = "\0".join(map(str, parts)).encode("utf-8", "surrogatepass")
        id_ = f"{row.time_class}-{sha256(told).hexdigest()[:_ROW_ID_DIGITS]}"
        seen[id_] = seen.get(id_, 0) + 1
        found.append(id_ if seen[id_] == 1 else f"{id_}-{seen[id_]}")
    return found


def _of_account(advice: Advice) -> Iterator[NumberSlices]:
    rows = () if advice.account is None else advice.account.rows
    for at, (row, id_) in enumerate(zip(rows, account_row_ids(rows), strict=True)):
        yield NumberSlices(f"account:{id_}", "row", at, row.slices, row.stretches)


def _of_finding(advice: Advice, place: int) -> Iterator[NumberSlices]:
    """Yields what the fix changes, the count and the measurements of the finding at a place."""
    finding = advice.findings[place]
    key = f"finding:{finding.id or finding.rule}"
    slices, stretches = _changed_by_fix(advice, finding)
    yield NumberSlices(key, "changed", place, slices, stretches)
    if finding.count_per_step is not None:
        counted = _counted_slices(advice, finding, slices)
        none = union([], [])
        yield NumberSlices(f"{key}:count", "count", place, _unique(counted), none)
    for number, evidence in enumerate(finding.evidence):
        yield NumberSlices(
            f"{key}:{number + 1}",
            "measured",
            place,
            _measured_slices(advice, evidence),
            union([], []),
            are_examples=evidence.slices is None,
            measurement=number,
        )


def _measured_slices(advice: Advice, evidence: Evidence) -> Ints:
    """Returns the slices of a measurement, without those that another rank's trace has."""
    ids = _unique(evidence.events if evidence.slices is None else evidence.slices)
    count = 0 if advice.trace is None else advice.trace.slices.height
    return ids[(ids >= 0) & (ids < count)]


def _changed_by_fix(advice: Advice, finding: Finding) -> tuple[Ints, Intervals]:
    """Returns what the fix removes or shortens; if that is unknown, the finding's time in the step.

    A finding without both is about the slices that were measured.
    """
    trace = advice.trace
    if trace is not None and finding.changes:
        return _changed_slices(trace, finding)
    own_id = finding.id or finding.rule
    rows = () if advice.account is None else advice.account.rows
    own = [row for row in rows if row.finding == own_id]
    slices = _unique(*(row.slices for row in own))
    stretches = union(
        np.concatenate([_NO_IDS, *(row.stretches.starts for row in own)]),
        np.concatenate([_NO_IDS, *(row.stretches.ends for row in own)]),
    )
    if not slices.size and not stretches.starts.size:
        slices = _unique(*(_measured_slices(advice, one) for one in finding.evidence))
    return slices, stretches


def _changed_slices(trace: Trace, finding: Finding) -> tuple[Ints, Intervals]:
    ids, cuts = [_NO_IDS], list[Intervals]()
    for change in finding.changes:
        match change:
            case CutHostTime(intervals):
                cuts.append(intervals)
            case RemoveWaits(calls):
                ids.append(calls)
            case ScaleDeviceWork(work):
                ids.append(work)
    cut = union(
        np.concatenate([_NO_IDS, *(one.starts for one in cuts)]),
        np.concatenate([_NO_IDS, *(one.ends for one in cuts)]),
    )
    within, stretches = host_slices_within(trace, cut)
    return _unique(*ids, within), stretches


def _counted_slices(advice: Advice, finding: Finding, changed: Ints) -> Ints:
    """Returns the slices that are as many as the finding counts in all steps; else `changed`."""
    count = (finding.count_per_step or 0.0) * max(advice.step.count, 1)
    measured = (one.slices for one in finding.evidence if one.slices is not None)
    every = [*map(_unique, measured), changed]
    return next((ids for ids in every if ids.size == round(count)), changed)


def host_slices_within(trace: Trace, times: Intervals) -> tuple[Ints, Intervals]:
    """Returns the program's host slices that lie in some time, and what of it has none.

    These are the outermost operators and calls within an interval; where there are none, the
    outermost slices of any kind, such as frames; else the innermost slice around its middle.
    """
    of = _interval_of_slices(trace, times)
    is_work = trace.slices["category"].is_in(list(_WORK_CATEGORIES)).to_numpy()
    has_work = np.zeros(times.starts.size + 1, np.bool_)
    has_work[of[is_work & (of != NO_SLICE)]] = True
    is_chosen = (of != NO_SLICE) & (is_work | ~has_work[of])
    ids = _outermost(trace, is_chosen)
    has_slice = np.zeros(times.starts.size, np.bool_)
    has_slice[of[ids]] = True
    rest = Intervals(times.starts[~has_slice], times.ends[~has_slice])
    thread, middle = serial_threads(trace).main_thread, (rest.starts + rest.ends) // 2
    around = host_states(trace).open_frame_or_annotation(thread, middle)
    is_open = around != NO_SLICE
    without = Intervals(rest.starts[~is_open], rest.ends[~is_open])
    return _unique(ids, around[is_open]), without


def _interval_of_slices(trace: Trace, times: Intervals) -> Ints:
    """Returns for each slice the index of the interval in which it lies whole; -1 for none.

    Slices of threads that do not run the program's loop, and marks of steps, are in none.
    """
    found = np.full(trace.slices.height, NO_SLICE, np.int64)
    own = _slices_of_program(trace)
    if not times.starts.size or not own.height:
        return found
    start = own["start"].to_numpy()
    at = np.searchsorted(times.starts, start, side="right") - 1
    inside = (at >= 0) & (own["end"].to_numpy() <= times.ends[at])
    found[own["id"].to_numpy()[inside]] = at[inside]
    return found


@cached_per_trace
def _slices_of_program(trace: Trace) -> pl.DataFrame:
    """Returns id, start and end in ns of the slices of the threads that run the program's loop."""
    threads = serial_threads(trace)
    of_track = threads.number_by_thread[trace.tracks["thread"].cast(pl.Int64).to_numpy()]
    tracks = np.flatnonzero(is_host_track(trace) & (of_track == threads.main_thread))
    slices = trace.slices.filter(pl.col("track").is_in(tracks.tolist()), pl.col("duration") > 0)
    slices = filter_by_name(slices, lambda name: names.profiler_step_number(name) is None)
    return slices.select("id", "start", end=pl.col("start") + pl.col("duration"))


def _outermost(trace: Trace, is_chosen: Flags) -> Ints:
    """Returns the ids of the chosen slices that lie in no other chosen slice."""
    ids = np.flatnonzero(is_chosen)
    parent = parent_of_every_slice(trace)
    above = parent[ids]
    around = np.full(ids.size, NO_SLICE)
    known = above != NO_SLICE
    around[known] = nearest_ancestor(parent, is_chosen, above[known])
    return np.asarray(ids[around == NO_SLICE], np.int64)


def _unique(*some: object) -> Ints:
    return np.unique(np.concatenate([_NO_IDS, *(np.asarray(one, np.int64) for one in some)]))
