"""Waits of the host for a device, and the idle time of the device that each wait causes."""

from typing import Final, Literal

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.idle.host_waits import host_waits_with_idle_time
from selftime.analysis.slice_arguments import parent_of_every_slice
from selftime.analysis.slice_grouping import slice_codes_by_category_and_name
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.nesting import NO_SLICE
from selftime.schema import Column, NameType
from selftime.trace import Trace
from selftime.views.view_declaration import LINE_EVIDENCE_DOC, RowLimit, view

_GROUPING_COLUMNS_BY_OPTION: Final = {
    "call": ("id",),
    "line": (*SOURCE_SITE_COLUMNS, "operator", "kind"),
    "operator": ("operator", "call", "kind"),
}
_SUMMED_WAIT_COLUMNS: Final = ("wait", "idle_after", "idle")
_WAIT_SORT_COLUMNS: Final = ("idle_after", "wait", "start")


@view(
    Column(
        "operator",
        NameType,
        "name",
        "The outermost operator around the wait; null if none.",
        True,
    ),
    Column(
        "file", pl.String, "text", "The source file that made the host wait; null if unknown.", True
    ),
    Column(
        "line", pl.Int32, "id", "The source line that made the host wait; null if unknown.", True
    ),
    Column(
        "idle_after",
        pl.Int64,
        "ns",
        "Idle time of the device from the host wait's end to the device's next work; null if none.",
        True,
    ),
    Column("wait", pl.Int64, "ns", "Host time in the calls that waited for the device."),
    Column("idle", pl.Int64, "ns", "The part of `wait` in which the device had no work."),
    Column(
        "count",
        pl.Int64,
        "count",
        "The number of waits for the device; null for a single wait.",
        True,
    ),
    Column(
        "count_per_step",
        pl.Float64,
        "count",
        "Waits per counted step; null for a single wait or without steps.",
        True,
    ),
    Column(
        "kind",
        pl.String,
        "name",
        "The kind of wait for the device; the view's description lists the kinds.",
    ),
    Column(
        "call",
        NameType,
        "name",
        "The name of the call that waited; for several calls, of the longest.",
    ),
    Column(
        "function",
        pl.String,
        "name",
        "The function that contains the source line; null if unknown.",
        True,
    ),
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column(
        "ended", NameType, "name", "The device work whose end ended the wait; null if none.", True
    ),
    Column(
        "inner",
        NameType,
        "name",
        "The innermost operator around the call that waited; null if none.",
        True,
    ),
    Column(
        "step",
        pl.Int64,
        "id",
        "The number of the step in which the wait began; null if none or several.",
        True,
    ),
    Column(
        "start",
        pl.Int64,
        "instant",
        "When the wait began; for several waits, when the longest began.",
    ),
    Column(
        "device",
        pl.Int32,
        "id",
        "The number of the device that the waiting thread works with; null if unknown.",
        True,
    ),
    Column(
        "stream",
        pl.Int64,
        "id",
        "The number of the stream that was waited for; null if unknown.",
        True,
    ),
    Column(
        "id",
        pl.Int64,
        "id",
        "The slice id of the call that waited; for several calls, of the longest.",
    ),
    needs=("device",),
    sums=("wait", "idle", "count", "count_per_step"),
)
def syncs(
    trace: Trace,
    *,
    by: Literal["call", "line", "operator"] = "call",
    counted: bool = False,
    top: RowLimit = 0,
) -> pl.DataFrame:
    """Waits of the host for the device, sorted by the device idle time that follows each wait.

    The duration of a wait is not its cost, because the device mostly works meanwhile. Its cost is
    `idle_after`: idle time of the device from the end of the wait to the begin of the work launched
    next, or to the next wait. Null: nothing was launched after it.

    `kind` is stream, device or event for a synchronising call; copy_to_host for a copy to the host
    and the synchronisation right after it (`item`, `cpu`, `nonzero`); copy_to_device for a copy
    from pageable memory, which is staged first; copy for others. `by` sums waits by source line and
    operator, or by operator and call. `counted` keeps those in steps that count for medians, `top`
    the first rows; 0 keeps all.

    `wait` includes copies that block the host; `waits` in `lines` does not, and includes waits for
    a lock, a timer or a socket.
    """
    steps = steps_with_counted_flags(trace)
    if not steps["counted"].any():  # then all count, as in the other views
        steps = steps.with_columns(counted=pl.lit(value=True))
    rows = _waits_with_names_and_steps(trace, host_waits_with_idle_time(trace), steps)
    if counted:
        rows = rows.filter("counted")
    table = _sum_waits_by_group(rows, by, int(steps["counted"].sum()))
    return table.head(top) if top > 0 else table


def _waits_with_names_and_steps(
    trace: Trace, waits: pl.DataFrame, steps: pl.DataFrame
) -> pl.DataFrame:
    """Returns the waits with names, source line, step number, and whether the step is counted."""
    name = trace.slices["name"]
    inner, outer = _innermost_and_outermost_operators(trace, waits["operator"])
    site = source_sites_of_slices(trace, waits["id"])
    begun = waits["start"].to_numpy()
    at = pl.Series(np.searchsorted(steps["start"].to_numpy(), begun, side="right") - 1)
    at = at.set(at < 0, None)
    within = (steps["end"].gather(at) > waits["start"]).fill_null(value=False)
    return waits.with_columns(
        *(site[column] for column in SOURCE_SITE_COLUMNS),
        call=name.gather(waits["id"]),
        inner=name.gather(inner),
        operator=name.gather(outer),
        ended=name.gather(waits["ended"]),
        step=steps["number"].gather(at).set(~within, None),
        counted=steps["counted"].gather(at).fill_null(value=False) & within,
    )


def _innermost_and_outermost_operators(
    trace: Trace, slices: pl.Series
) -> tuple[pl.Series, pl.Series]:
    """Returns the ids of the innermost and the outermost operator around each slice, or null.

    The outermost is what the program called: `aten::is_nonzero`, not the `aten::item` in it.
    Annotations, and autograd's slices around a node, are ignored.
    """
    is_operator = _is_dispatched_operator_slice(trace)
    parent = parent_of_every_slice(trace)
    at = slices.cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    inner, outer = np.full(at.size, NO_SLICE, np.int64), np.full(at.size, NO_SLICE, np.int64)
    while (open_ := at != NO_SLICE).any():
        found = open_ & is_operator[at]
        inner = np.where((inner == NO_SLICE) & found, at, inner)
        outer = np.where(found, at, outer)
        at = np.where(open_, parent[at], NO_SLICE)
    return _slice_ids_with_nulls(inner), _slice_ids_with_nulls(outer)


def _is_dispatched_operator_slice(trace: Trace) -> np.ndarray:
    def is_dispatched_operator(category: str, name: str) -> bool:
        return category in names.OPERATOR_CATEGORIES and names.is_dispatched_operator(name)

    return slice_codes_by_category_and_name(trace.slices, is_dispatched_operator) > 0


def _slice_ids_with_nulls(slice_indexes: np.ndarray) -> pl.Series:
    found = pl.Series(slice_indexes, dtype=pl.Int64)
    return found.set(found == NO_SLICE, None).cast(pl.UInt32)


def _sum_waits_by_group(rows: pl.DataFrame, by: str, step_count: int) -> pl.DataFrame:
    """Returns one row per group of waits: summed times, and further values of its longest wait."""
    keys = _GROUPING_COLUMNS_BY_OPTION[by]
    summed = by != "call"
    sums = [
        pl.when(pl.col(n).count() > 0).then(pl.col(n).sum()).alias(n) for n in _SUMMED_WAIT_COLUMNS
    ]
    others = [
        c.name
        for c in syncs.columns
        if c.name not in (*keys, *_SUMMED_WAIT_COLUMNS, "count", "count_per_step", "step")
    ]
    per_step = pl.col("counted").sum() / step_count if summed and step_count else pl.lit(None)
    return (
        rows.sort("wait", "start", descending=[True, False], maintain_order=True)
        .group_by(keys, maintain_order=True)
        .agg(
            *sums,
            pl.col(others).first(),
            (pl.len() if summed else pl.lit(None)).alias("count"),
            per_step.alias("count_per_step"),
            (pl.lit(None) if summed else pl.col("step").first()).alias("step"),
        )
        .sort(
            _WAIT_SORT_COLUMNS, descending=[True, True, False], nulls_last=True, maintain_order=True
        )
        .select(pl.col(column.name).cast(column.dtype) for column in syncs.columns)
    )
