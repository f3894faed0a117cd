"""Views: pure functions from a trace to a table, one file each."""

from typing import Any

from selftime.errors import UsageError
from selftime.views.base import Option, View, view
from selftime.views.collectives import collectives
from selftime.views.copies import copies
from selftime.views.flame import flame
from selftime.views.health import health
from selftime.views.idle import idle
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
from selftime.views.regions import regions
from selftime.views.selection import selection
from selftime.views.slice import slice as slice_
from selftime.views.steps import steps
from selftime.views.syncs import syncs
from selftime.views.timeline import timeline
from selftime.views.worker_batches import worker_batches
from selftime.views.workers import workers

__all__ = ["VIEWS", "Option", "View", "find", "view"]

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
        memory_curve,
        memory_events,
        memory_operators,
        memory_peak,
        regions,
        occurrences,
        slice_,
        selection,
        matches,
        workers,
        worker_batches,
    )
}
"""Every view, by name."""


def find(name: str) -> View[Any]:
    """The view of that name, or one sentence that lists those there are."""
    if name not in VIEWS:
        raise UsageError(f"there is no view `{name}`; there are {', '.join(VIEWS)}")
    return VIEWS[name]
