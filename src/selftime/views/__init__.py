"""Views: pure functions from a trace to a table, one file each."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import polars as pl

from selftime.errors import UsageError
from selftime.schema import Column
from selftime.trace import Job, Member
from selftime.views.annotations import annotations
from selftime.views.arrivals import arrivals
from selftime.views.base import Option, View, view
from selftime.views.collectives import collectives
from selftime.views.copies import copies
from selftime.views.critical_path import critical_path
from selftime.views.flame import flame
from selftime.views.health import health
from selftime.views.idle import idle
from selftime.views.job_path import job_path
from selftime.views.kernels import kernels
from selftime.views.launches import launches
from selftime.views.lines import lines
from selftime.views.matches import matches
from selftime.views.memory_curve import memory_curve
from selftime.views.memory_events import memory_events
from selftime.views.memory_operators import memory_operators
from selftime.views.memory_peak import memory_peak
from selftime.views.modules import modules
from selftime.views.occurrences import occurrences
from selftime.views.operators import operators
from selftime.views.overlap import overlap
from selftime.views.overview import overview
from selftime.views.ranks import ranks
from selftime.views.selection import selection
from selftime.views.slice import slice as slice_
from selftime.views.steps import steps
from selftime.views.stragglers import stragglers
from selftime.views.syncs import syncs
from selftime.views.timeline import timeline
from selftime.views.worker_batches import worker_batches
from selftime.views.workers import workers

__all__ = ["FORMER_NAMES", "OF_RANK", "VIEWS", "Option", "View", "below", "find", "of_job", "view"]

VIEWS: dict[str, View[Any]] = {
    v.name: v
    for v in (
        health,
        overview,
        steps,
        operators,
        kernels,
        lines,
        modules,
        flame,
        timeline,
        idle,
        launches,
        copies,
        syncs,
        overlap,
        collectives,
        critical_path,
        job_path,
        ranks,
        stragglers,
        arrivals,
        memory_curve,
        memory_events,
        memory_operators,
        memory_peak,
        annotations,
        occurrences,
        slice_,
        selection,
        matches,
        workers,
        worker_batches,
    )
}
"""Every view, by name."""

FORMER_NAMES: Final = {"regions": "annotations"}
"""Names that views had in the release before, and what they are called now."""


def find(name: str) -> View[Any]:
    """The view of that name, or one sentence that lists those there are."""
    name = FORMER_NAMES.get(name, name)
    if name not in VIEWS:
        raise UsageError(f"there is no view `{name}`; there are {', '.join(VIEWS)}")
    return VIEWS[name]


OF_RANK: Final = (
    Column("rank", pl.Int64, "id", "The rank that the row is of, if it is known.", True),
    Column("label", pl.String, "name", "What the rank or the recording is called."),
)
"""Columns before those of a view that was asked of each trace of a job."""


def of_job(job: Job, asked: View[Any], options: Mapping[str, Any]) -> pl.DataFrame:
    """A view of a job: across its ranks, or of each of its traces, below one another."""
    if asked.across:
        return asked(job, **options)
    tables = ((job.members[path], asked(trace, **options)) for path, trace in job.traces.items())
    return below(asked, tables)


def below(asked: View[Any], tables: Iterable[tuple[Member, pl.DataFrame]]) -> pl.DataFrame:
    """The tables of some ranks below one another, in order of rank, the unknown last."""
    ordered = sorted(tables, key=lambda one: (one[0].rank is None, one[0].rank, one[0].label))
    told = {column.name: column.dtype for column in (*OF_RANK, *asked.columns)}
    named = [
        table.select(
            pl.lit(member.rank, pl.Int64).alias("rank"),
            pl.lit(member.label).alias("label"),
            pl.all(),
        )
        for member, table in ordered
    ]
    return pl.concat(named) if named else pl.DataFrame(schema=told)
