"""All views: functions that compute a table from a trace or a job, with one file for each view."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import polars as pl

from selftime.errors import UsageError
from selftime.schema import Column
from selftime.trace import Job, TraceInJob
from selftime.views.account import account
from selftime.views.annotations import annotations
from selftime.views.arrivals import arrivals
from selftime.views.collective_waits import collective_waits
from selftime.views.collectives import collectives
from selftime.views.copies import copies
from selftime.views.critical_path import critical_path
from selftime.views.critical_path_band import critical_path_band
from selftime.views.flame import flame
from selftime.views.health import health
from selftime.views.idle import idle
from selftime.views.imbalance import imbalance
from selftime.views.job_path import job_path
from selftime.views.job_what_if import job_what_if
from selftime.views.kernels import kernels
from selftime.views.launches import launches
from selftime.views.lines import lines
from selftime.views.matches import matches
from selftime.views.memory_curve import memory_curve
from selftime.views.memory_events import memory_events
from selftime.views.memory_flame import memory_flame
from selftime.views.memory_holders import memory_holders
from selftime.views.memory_lifetimes import memory_lifetimes
from selftime.views.memory_operators import memory_operators
from selftime.views.memory_peak import memory_peak
from selftime.views.modules import modules
from selftime.views.occurrences import occurrences
from selftime.views.off_path import off_path
from selftime.views.op_profile import op_profile
from selftime.views.operators import operators
from selftime.views.overlap import overlap
from selftime.views.overview import overview
from selftime.views.ranks import ranks
from selftime.views.run import run
from selftime.views.run_curve import run_curve
from selftime.views.run_kinds import run_kinds
from selftime.views.run_lines import run_lines
from selftime.views.run_steps import run_steps
from selftime.views.run_summary import run_summary
from selftime.views.selection import selection
from selftime.views.slice import slice as slice_
from selftime.views.steps import steps
from selftime.views.stragglers import stragglers
from selftime.views.syncs import syncs
from selftime.views.timeline import timeline
from selftime.views.view_declaration import Option, View, view
from selftime.views.worker_batches import worker_batches
from selftime.views.workers import workers

__all__ = [
    "FORMER_NAMES",
    "RANK_COLUMNS",
    "VIEWS",
    "Option",
    "View",
    "find_view",
    "stack_tables",
    "view",
    "view_of_job",
]

VIEWS: dict[str, View[Any]] = {
    v.name: v
    for v in (
        health,
        overview,
        steps,
        run_summary,
        run,
        run_kinds,
        run_lines,
        run_steps,
        run_curve,
        operators,
        kernels,
        lines,
        modules,
        op_profile,
        flame,
        timeline,
        idle,
        launches,
        copies,
        syncs,
        overlap,
        collectives,
        account,
        critical_path,
        critical_path_band,
        off_path,
        job_path,
        imbalance,
        job_what_if,
        ranks,
        stragglers,
        arrivals,
        collective_waits,
        memory_curve,
        memory_holders,
        memory_events,
        memory_lifetimes,
        memory_operators,
        memory_peak,
        memory_flame,
        annotations,
        occurrences,
        slice_,
        selection,
        matches,
        workers,
        worker_batches,
    )
}
"""Maps the name of each view to the view."""

FORMER_NAMES: Final = {"regions": "annotations"}
"""Maps names of views in the previous release to their current names."""


def find_view(name: str) -> View[Any]:
    """Returns the view with a name; for an unknown name, raises an error that lists all views."""
    name = FORMER_NAMES.get(name, name)
    if name not in VIEWS:
        raise UsageError(f"there is no view `{name}`; there are {', '.join(VIEWS)}")
    return VIEWS[name]


RANK_COLUMNS: Final = (
    Column(
        "rank",
        pl.Int64,
        "id",
        "The number of the rank whose trace the row comes from; null if unknown.",
        True,
    ),
    Column(
        "label", pl.String, "name", "The name of the rank or the recording that the row comes from."
    ),
)
"""Columns that a job's table has before the columns of a view that is computed for each trace."""


def view_of_job(job: Job, view: View[Any], options: Mapping[str, Any]) -> pl.DataFrame:
    """Returns a view's table for a job: a comparison of its ranks, or all ranks' tables stacked."""
    if view.compares_ranks:
        return view(job, **options)
    tables = ((job.members[path], view(trace, **options)) for path, trace in job.traces.items())
    return stack_tables(view, tables)


def stack_tables(
    view: View[Any], tables: Iterable[tuple[TraceInJob, pl.DataFrame]]
) -> pl.DataFrame:
    """Returns the tables of several ranks as one, in order of rank; unknown ranks come last."""
    ordered = sorted(tables, key=lambda one: (one[0].rank is None, one[0].rank, one[0].label))
    told = {column.name: column.dtype for column in (*RANK_COLUMNS, *view.columns)}
    named = [
        table.select(
            pl.lit(member.rank, pl.Int64).alias("rank"),
            pl.lit(member.label).alias("label"),
            pl.all(),
        )
        for member, table in ordered
    ]
    return pl.concat(named) if named else pl.DataFrame(schema=told)
