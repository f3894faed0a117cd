"""Makes a finding about data loading one for each line that loads, where several do.

Two loaders are two calls, each with a fix of its own.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from selftime import names
from selftime.advice.detectors.counted_steps import recorded_step_count
from selftime.advice.detectors.exposed_loading import (
    MIN_EXPOSED_LOADING_MS,
    DataLoadingTimes,
    data_loading_annotations,
)
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.replay import CutHostTime
from selftime.advice.rule_outcomes import Evidence, Finding, where_from_row
from selftime.advice.savings.claims import ModelledClaim
from selftime.analysis.main_thread import slices_on_main_thread
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.intervals import intersect
from selftime.trace import Trace


def loading_lines(
    trace: Trace, loading: DataLoadingTimes
) -> list[tuple[LineSlices, DataLoadingTimes, float]]:
    """Returns the lines that load data for long, if several do: with their times, and their share.

    The share is that of the time in which the step loads and nothing else runs.
    """
    exposed_by_line = {
        where_from_row(row): row["exposed_time"] for row in data_loading_annotations(trace)
    }
    whole = sum(exposed_by_line.values())
    loads = filter_by_name(slices_on(trace, "host"), names.is_data_loading)
    found = []
    for line in slices_by_line(trace, slices_on_main_thread(trace, loads)):
        share = exposed_by_line.get(line.where, 0) / whole if whole else 0.0
        own = replace(loading, exposed_ms=share * loading.exposed_ms, mean_exposed_ms=0.0)
        if own.exposed_ms >= MIN_EXPOSED_LOADING_MS and not own.is_small_share:
            found.append((line, own, share))
    return found if len(found) > 1 else []


def findings_by_loading_line(
    trace: Trace,
    loading: DataLoadingTimes,
    finding: Finding,
    claim: ModelledClaim,
    title: Callable[[DataLoadingTimes], str],
) -> Iterator[Finding]:
    """Yields a finding for each line that loads data, if several do so for long; else `finding`."""
    found = []
    for line, own, share in loading_lines(trace, loading):
        changes = tuple(
            replace(change, intervals=intersect(change.intervals, line.times))
            for change in claim.changes
            if isinstance(change, CutHostTime)
        )
        found.append(
            replace(
                finding,
                title=title(own),
                where=line.where,
                count_per_step=line.slices.height / recorded_step_count(trace),
                claim=claim.part(share, changes),
                evidence=(
                    Evidence(
                        "exposed data loading time", own.exposed_ms, "ms", line.events(), line.ids
                    ),
                    *finding.evidence[1:],
                ),
            )
        )
    yield from found or [finding]
