"""Finds for each moment of the account the finding whose fix removes or shortens it.

A finding claims the host time and the device work that its changes shorten. Waits of the host that
a fix removes do not show on the critical path, which passes through the device meanwhile. They keep
the host from running ahead: what they cost is the time of the host after a wait, until the device
has work again, and then as much more as the fix is estimated to save. A finding without changes
claims the time of the kind that its rule is about: at its line, or in the slices that it measured.
One about initialisation claims all work that is done only once, whatever its line.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice import rule_registry
from selftime.advice.detectors.first_time_work import first_time_work_slices
from selftime.advice.replay import CutHostTime, RemoveWaits, ScaleDeviceWork
from selftime.advice.rule_outcomes import Finding
from selftime.advice.savings.claims import RunClaim
from selftime.analysis.device.device_work import device_work
from selftime.analysis.slice_filters import covered_time, with_known_end
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.array_types import Flags, Ints
from selftime.intervals import Intervals, cut_intervals, union
from selftime.trace import Trace

CLAIMED_SEGMENT_COLUMN: Final = "finding"
"""The column of the number of the finding that claims a segment; null if none does."""

_TIME_CLASSES_BY_CHAPTER: Final[dict[str, tuple[str, ...]]] = {
    "A": ("data_wait",),
    "B": ("device_wait",),
    "C": ("copy",),
    "D": ("python", "launch"),
    "E": ("compute",),
    "F": ("python", "launch", "compute", "garbage_collection"),
    "H": ("compile", "python", "launch"),
    "I": ("communication",),
    "J": ("compute",),
    "K": ("compute", "python", "launch"),
    "L": ("compute", "python", "launch", "compile", "idle", "copy"),
}
"""Maps chapters of the catalogue of bottlenecks to the classes of time that their findings claim,
where a finding does not say what it changes."""
_TIME_CLASS_BY_RUN_CAUSE: Final = {"M10": "data_wait", "M5": "garbage_collection"}
"""Maps entries of the catalogue that are causes of the run, too, to the class of their time."""
_INITIALISATION: Final = "L1"
"""The entry of the catalogue on work that is done only once."""
_CHAPTERS_OF_WHOLE_CLASSES: Final = frozenset("AI")
"""Chapters that are about all time of their class, where their finding has no line."""


@dataclass(frozen=True, slots=True)
class _ClaimedTime:
    """What a finding claims: host time, device work by slice id, or time of some classes."""

    host_time: Intervals
    work: Ints
    wait_ends: Ints
    """When the waits end that a fix removes, in ns, ascending."""
    saved_per_wait_ns: float = 0.0
    """How much of the host's time after each of these waits the fix is estimated to hide."""
    time_classes: tuple[str, ...] = ()
    file: str | None = None
    line: int | None = None


def segments_with_claiming_finding(
    trace: Trace, segments: pl.DataFrame, findings: tuple[Finding, ...]
) -> pl.DataFrame:
    """Returns the segments of the account, cut where a claim begins or ends, with their finding.

    The column `finding` is the index of the finding in `findings`; null where none claims the
    time. Where several do, the first counts, and those of broad rules come last.
    """
    claims = [_claimed_time(trace, finding) for finding in findings]
    edges = [edge for one in claims for edge in (one.host_time.starts, one.host_time.ends)]
    pieces = _cut_host_segments(segments, np.unique(np.concatenate([np.zeros(0, int), *edges])))
    owner = np.full(pieces.height, -1, np.int64)
    for number in reversed(_findings_by_priority(findings)):
        owner[_is_claimed(pieces, claims[number])] = number
    numbers = pl.Series(CLAIMED_SEGMENT_COLUMN, owner)
    return pieces.with_columns(numbers.set(numbers < 0, None))


def _findings_by_priority(findings: tuple[Finding, ...]) -> list[int]:
    """Returns the indexes of the findings: first those with a specific fix, then the broad ones."""
    rules = rule_registry.rules_by_name()
    broad = [(rule := rules.get(one.rule)) is not None and rule.broad for one in findings]
    return sorted(range(len(findings)), key=lambda at: (broad[at], at))


def _claimed_time(trace: Trace, finding: Finding) -> _ClaimedTime:
    """Returns what a finding claims of the step.

    One about the whole run claims the waits for data, or the collections, of the step if these are
    its cause; else nothing.
    """
    nothing = _ClaimedTime(union([], []), np.zeros(0, np.int64), np.zeros(0, np.int64))
    if isinstance(finding.claim, RunClaim):
        found = [_TIME_CLASS_BY_RUN_CAUSE.get(code) for code in finding.covers]
        return replace(nothing, time_classes=tuple(filter(None, found)))
    if not finding.changes and _INITIALISATION in finding.covers:
        once = first_time_work_slices(trace)["id"]
        return replace(nothing, host_time=covered_time(with_known_end(trace.slices[once])))
    if not finding.changes:
        return _claimed_time_of_evidence(trace, finding)
    host_time, work, waits = [nothing.host_time], [nothing.work], [nothing.work]
    for change in finding.changes:
        match change:
            case CutHostTime(intervals):
                host_time.append(intervals)
            case RemoveWaits(calls):
                host_time.append(_time_until_device_works_again(trace, calls))
                waits.append(np.asarray(calls, np.int64))
            case ScaleDeviceWork(ids):
                work.append(np.asarray(ids, np.int64))
    ends = _ends_of_calls(trace, np.unique(np.concatenate(waits)))
    return _ClaimedTime(
        _union_of_all(host_time),
        np.unique(np.concatenate(work)),
        ends,
        _saved_per_wait_ns(trace, finding, ends),
    )


def _claimed_time_of_evidence(trace: Trace, finding: Finding) -> _ClaimedTime:
    """Returns the time of a finding's classes at its line; else in the slices that it measured.

    One with evidence, none of which is of a slice, is about the run around the recorded steps.
    """
    chapters = {code[:1] for code in finding.covers}
    of_classes = [_TIME_CLASSES_BY_CHAPTER.get(chapter, ()) for chapter in sorted(chapters)]
    classes = tuple(dict.fromkeys(name for some in of_classes for name in some))
    nothing = union([], [])
    none = np.zeros(0, np.int64)
    at_line = _ClaimedTime(
        nothing, none, none, 0.0, classes, finding.where.file, finding.where.line
    )
    events = [id_ for one in finding.evidence for id_ in one.events if id_ < trace.slices.height]
    if finding.evidence and not events and not chapters <= _CHAPTERS_OF_WHOLE_CLASSES:
        return replace(at_line, time_classes=())
    if finding.where.file is not None or chapters <= _CHAPTERS_OF_WHOLE_CLASSES:
        return at_line
    measured = trace.slices.filter(pl.col("id").is_in(events))
    is_work = measured["category"].is_in(list(names.DEVICE_WORK_CATEGORIES))
    on_host = measured.filter(~is_work & pl.Series(measured["category"] != "user_annotation"))
    return replace(
        at_line,
        host_time=covered_time(on_host),
        work=measured["id"].filter(is_work).cast(pl.Int64).to_numpy(),
        time_classes=(),
    )


def _time_until_device_works_again(trace: Trace, calls: Ints) -> Intervals:
    """Returns the time (ns) from the begin of each call until device work begins after its end."""
    waits = trace.slices[np.asarray(calls, np.int64)].drop_nulls("duration")
    begin, end = waits["start"].to_numpy(), (waits["start"] + waits["duration"]).to_numpy()
    starts = np.sort(device_work(trace)["start"].to_numpy())
    at = np.searchsorted(starts, end, side="left")
    known = at < starts.size
    return union(begin[known], starts[at[known]])


def _ends_of_calls(trace: Trace, calls: Ints) -> Ints:
    """Returns when host calls of known end end, in ns, ascending."""
    known = trace.slices[calls].drop_nulls("duration")
    return np.sort((known["start"] + known["duration"]).to_numpy())


def _saved_per_wait_ns(trace: Trace, finding: Finding, wait_ends: Ints) -> float:
    """Returns how much each of a finding's waits is estimated to cost, in ns; 0 if unknown."""
    saved_ms, steps = finding.saving.estimate_ms, steps_with_counted_flags(trace).height
    if saved_ms is None or not wait_ends.size:
        return 0.0
    return saved_ms * 1e6 * steps / wait_ends.size


def _union_of_all(some: Iterable[Intervals]) -> Intervals:
    every = list(some)
    return union(
        np.concatenate([one.starts for one in every]), np.concatenate([one.ends for one in every])
    )


def _cut_host_segments(segments: pl.DataFrame, cuts: Ints) -> pl.DataFrame:
    """Returns the segments, those of the host cut at the given instants (ns, ascending)."""
    start, end = segments["start"].to_numpy(), segments["end"].to_numpy()
    on_device = segments["on_device"].to_numpy()
    host, device = np.flatnonzero(~on_device), np.flatnonzero(on_device)
    pieces = cut_intervals(start[host], end[host], cuts)
    row = np.append(host[pieces.of], device)
    start, end = np.append(pieces.starts, start[device]), np.append(pieces.ends, end[device])
    order = np.argsort(start, kind="stable")
    return segments[pl.Series(row[order])].with_columns(start=start[order], end=end[order])


def _is_claimed(pieces: pl.DataFrame, claim: _ClaimedTime) -> Flags:
    """Flags the pieces of segments that a finding claims; none of them is claimed in part."""
    is_work = pieces["on_device"] & pieces["slice"].is_in(claim.work).fill_null(value=False)
    found = is_work.to_numpy().copy()
    if claim.host_time.starts.size:
        middle = ((pieces["start"] + pieces["end"]) // 2).to_numpy()
        at = np.searchsorted(claim.host_time.starts, middle, side="right") - 1
        inside = (at >= 0) & (middle < claim.host_time.ends[at])
        found |= inside & ~pieces["on_device"].to_numpy()
    if claim.saved_per_wait_ns:
        found |= _is_hidden_without_waits(pieces, claim)
    if claim.time_classes:
        of_class = pieces["class"].cast(pl.String).is_in(list(claim.time_classes))
        if claim.file is not None:
            of_class &= pieces["file"].eq_missing(claim.file)
        if claim.line is not None:
            of_class &= pieces["line"].eq_missing(claim.line)
        found |= of_class.to_numpy()
    return np.asarray(found, np.bool_)


def _is_hidden_without_waits(pieces: pl.DataFrame, claim: _ClaimedTime) -> Flags:
    """Flags host time after each wait, as much as the removal of the wait is estimated to hide."""
    start, time = pieces["start"].to_numpy(), (pieces["end"] - pieces["start"]).to_numpy()
    may_hide = ~pieces["on_device"].to_numpy() & (pieces["class"] != "communication").to_numpy()
    host_time_before = np.cumsum(np.where(may_hide, time, 0)) - np.where(may_hide, time, 0)
    first_after_wait = np.searchsorted(start, claim.wait_ends, side="left")
    before_wait = np.append(host_time_before, host_time_before[-1:])[first_after_wait]
    wait = np.searchsorted(claim.wait_ends, start, side="right") - 1
    since_wait = host_time_before - before_wait[np.maximum(wait, 0)]
    return np.asarray((wait >= 0) & may_hide & (since_wait < claim.saved_per_wait_ns), np.bool_)
