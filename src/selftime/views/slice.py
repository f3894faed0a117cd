"""Everything that a trace contains about one slice, and the slices related to it."""

from typing import Final

import polars as pl

from selftime.analysis.slice_facts import facts_of_slice
from selftime.errors import UsageError
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import view

_NO_SLICE_ID: Final = -1
"""Value of an option for a slice id that means that no slice is given."""


@view(
    Column(
        "group",
        pl.String,
        "name",
        "The group of values that the row belongs to, such as slice, where or links.",
    ),
    Column(
        "key",
        pl.String,
        "name",
        "The name of the value; for a link, how the other slice is related.",
    ),
    Column("value", pl.String, "text", "The value; for a link, the other slice's name.", True),
    Column("unit", pl.String, "name", "The unit of the row's value; null if it has none."),
    Column("slice", pl.UInt32, "id", "The id of the slice; for a link, of the other slice.", True),
    Column(
        "start",
        pl.Int64,
        "instant",
        "When the slice began; for a link, when the linked slice began.",
        True,
    ),
    Column(
        "duration",
        pl.Int64,
        "ns",
        "The slice's duration; for a link, the linked slice's; null if unknown.",
        True,
    ),
    Column(
        "track",
        pl.UInt32,
        "id",
        "The id of the slice's track; for a link, of the linked slice's track.",
        True,
    ),
    Column(
        "row",
        pl.Int64,
        "id",
        "The slice's row within its track in the timeline; for a link, the linked slice's.",
        True,
    ),
)
def slice(trace: Trace, *, id: int = _NO_SLICE_ID) -> pl.DataFrame:  # noqa: A001, A002 - the view's names
    """Everything known about the slice with this `id`; an empty table for the id -1.

    Groups: slice (name, category, times, step, process, thread or stream), where (source line),
    arguments (of an operator or call), frame, launch (how a kernel was launched), copy, collective,
    compiled, wait, device work (how much of it was launched by the slice or within), and links:
    other slices and their relation. These are launch and operator of
    device work, device work that it launched, forward, backward, parent, child (the first),
    previous and next on its row of the timeline, what it waits for and whose wait it ends.
    """
    if id == _NO_SLICE_ID:
        return slice.table_of(pl.DataFrame())
    if not 0 <= id < trace.slices.height:
        raise UsageError(
            f"`id` is `{id}`, which is no slice; slices have the ids from 0 to below"
            f" {trace.slices.height}"
        )
    return slice.table_of(facts_of_slice(trace, id))
