"""Says what a trace holds for the page: the panel that opens first, and what views lack."""

from typing import Any, Final

import msgspec
import polars as pl

from selftime.analysis.recording_requirements import REQUIREMENT_BY_NEED
from selftime.analysis.steps.step_boundaries import find_steps
from selftime.ingest.job_ranks import identity_of_trace
from selftime.ingest.trace_listing import ListedTrace
from selftime.reports.page_data.jobs import is_from_multi_process_job
from selftime.trace import Trace
from selftime.views import VIEWS

_SINGLE_PROCESS_SENTENCE: Final = (
    "other ranks: this is a recording of one process; open the folder into which each rank of a "
    "job writes its trace"
)
"""What views across ranks lack for a trace that belongs to no job of several processes."""


class TraceContents(msgspec.Struct, array_like=True, frozen=True):
    """What a trace holds: of each view what it lacks, and what the list of traces shows."""

    lacks: dict[str, list[str]]
    """Sentences on missing data by view; views that lack nothing are left out."""
    is_from_job: bool
    """Whether the trace was recorded in a job of several processes."""
    is_memory_only: bool
    """Whether it has memory records alone, as a snapshot of an allocator has."""
    is_ledger: bool
    """Whether it is the ledger of a run alone."""
    device: str | None
    """The name of the device whose work was recorded; None if there is none, or several."""
    step_count: int | None
    """The number of recorded steps; None if there are none."""


def contents_of_trace(trace: Trace, listed: ListedTrace) -> TraceContents:
    """Returns what a trace holds, from its tables alone: no view is computed."""
    is_from_job = is_from_multi_process_job(listed, identity_of_trace(trace))
    present = {need: one.present(trace) for need, one in REQUIREMENT_BY_NEED.items()}
    lacks = {
        name: [_SINGLE_PROCESS_SENTENCE]
        if view.compares_ranks and not is_from_job
        else view.missing_data(trace)
        for name, view in VIEWS.items()
    }
    devices = trace.devices["name"].cast(pl.String).drop_nulls().unique().to_list()
    steps = find_steps(trace) if present["steps"] else None
    return TraceContents(
        lacks={name: sentences for name, sentences in lacks.items() if sentences},
        is_from_job=is_from_job,
        is_memory_only=present["memory"] and not (present["operators"] or present["device"]),
        is_ledger=listed.is_ledger,
        device=devices[0] if len(devices) == 1 else None,
        step_count=None if steps is None else steps.height,
    )


def contents_data(
    contents: TraceContents, *, has_other_ranks: bool, compared_with: TraceContents | None = None
) -> dict[str, Any]:
    """Returns what a trace holds as the JSON object `Contents` of the page's interface.

    Args:
        contents: What the trace holds.
        has_other_ranks: Whether traces of other ranks of its job are shown, too.
        compared_with: What the other trace holds where the two were named as a pair.
    """
    landing = _first_panel(contents, has_other_ranks, compared_with)
    return {"landing": landing, "lacks": contents.lacks}


def _first_panel(
    contents: TraceContents, has_other_ranks: bool, compared_with: TraceContents | None
) -> str:
    """Returns the name of the panel that answers first what such a trace is asked."""
    is_rank_of_shown_job = contents.is_from_job and has_other_ranks
    if compared_with is not None and not is_rank_of_shown_job:
        both = contents, compared_with
        if not any(one.is_ledger or one.is_memory_only for one in both):
            return "compare"
    if contents.is_ledger:
        return "run"
    if contents.is_memory_only:
        return "memory"
    return "distributed" if is_rank_of_shown_job else "answer"
