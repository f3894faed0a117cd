"""Where the host waits for the device, and what that costs."""

from typing import Final, Literal

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.grouping import by_kind
from selftime.analysis.idle.idle_after_waits import waits_with_idle_time
from selftime.analysis.parents import parents
from selftime.analysis.sites import SITE, sites
from selftime.analysis.steps.steady_steps import assessed_steps
from selftime.nesting import NONE
from selftime.schema import Column, Name
from selftime.trace import Trace
from selftime.views.base import Top, view

_KEYS: Final = {
    "call": ("id",),
    "line": (*SITE, "operator", "kind"),
    "operator": ("operator", "call", "kind"),
}
_SUMS: Final = ("wait", "starvation", "idle")
_ORDER: Final = ("starvation", "wait", "start")


@view(
    Column("operator", Name, "name", "The outermost operator around the wait, if any.", True),
    Column("file", pl.String, "text", "The source file, if known.", True),
    Column("line", pl.Int32, "id", "The source line, if known.", True),
    Column("starvation", pl.Int64, "ns", "Idle device time after it until work came.", True),
    Column("wait", pl.Int64, "ns", "Host time in the calls that waited; sum of the row."),
    Column("idle", pl.Int64, "ns", "Of the wait: the device had no work."),
    Column("count", pl.Int64, "count", "Waits of the row, if they are summed.", True),
    Column("count_per_step", pl.Float64, "count", "Waits in a step that counts, if known.", True),
    Column("kind", pl.String, "name", "What was waited for; see the description."),
    Column("call", Name, "name", "The call that waited; of several the longest."),
    Column("function", pl.String, "name", "The function the line is in, if known.", True),
    Column("how", pl.String, "name", "How the line is known: stack or definition.", True),
    Column("ended", Name, "name", "The device work that ended the wait, if any did.", True),
    Column("inner", Name, "name", "The innermost operator around the call, if any.", True),
    Column("step", pl.Int64, "id", "The step it began in, if in one.", True),
    Column("start", pl.Int64, "instant", "When it began, or the longest of the row."),
    Column("device", pl.Int32, "id", "The device that the thread works with, if known.", True),
    Column("stream", pl.Int64, "id", "The stream waited for, if told.", True),
    Column("id", pl.Int64, "id", "The slice of the call, or of the longest."),
    needs=("device",),
    sums=("wait", "idle", "count", "count_per_step"),
)
def syncs(
    trace: Trace,
    *,
    by: Literal["call", "line", "operator"] = "call",
    counted: bool = False,
    top: Top = 0,
) -> pl.DataFrame:
    """Waits of the host for the device, those first after which the device stood idle longest.

    How long a wait lasts is not what it costs: while it lasts the device mostly works. It costs
    what the device then lacks, the starvation: idle time from the end of the wait to the begin of
    the work launched next, or to the next wait. Null: nothing was launched after it.

    `kind` is stream, device or event for a synchronising call; copy_to_host for a copy to the host
    and what synchronises right after it (`item`, `cpu`, `nonzero`); copy_to_device for one from
    pageable memory, which is staged first; copy for others. `by` sums waits by source line and
    operator, or by operator and call. `counted` keeps those in steps that count for medians, `top`
    the first rows; 0 keeps all.
    """
    steps = assessed_steps(trace)
    rows = _told(trace, waits_with_idle_time(trace), steps)
    if counted:
        rows = rows.filter("counted")
    table = _summed(rows, by, int(steps["counted"].sum()))
    return table.head(top) if top > 0 else table


def _told(trace: Trace, held: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Waits with names, site, step, and whether the step counts."""
    name = trace.slices["name"]
    inner, outer = _operators(trace, held["operator"])
    site = sites(trace, held["id"])
    begun = held["start"].to_numpy()
    at = pl.Series(np.searchsorted(steps["start"].to_numpy(), begun, side="right") - 1)
    at = at.set(at < 0, None)
    within = (steps["end"].gather(at) > held["start"]).fill_null(value=False)
    return held.with_columns(
        *(site[column] for column in SITE),
        call=name.gather(held["id"]),
        inner=name.gather(inner),
        operator=name.gather(outer),
        ended=name.gather(held["ended"]),
        step=steps["number"].gather(at).set(~within, None),
        counted=steps["counted"].gather(at).fill_null(value=False) & within,
    )


def _operators(trace: Trace, around: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The innermost and the outermost operator around each call; null where there is none.

    The outermost is what the program called: `aten::is_nonzero`, not the `aten::item` in it.
    Annotations, and autograd's rows around a node, are none.
    """
    is_operator = _are_operators(trace)
    parent = parents(trace)
    at = around.cast(pl.Int64).fill_null(NONE).to_numpy()
    inner, outer = np.full(at.size, NONE, np.int64), np.full(at.size, NONE, np.int64)
    while (open_ := at != NONE).any():
        found = open_ & is_operator[at]
        inner = np.where((inner == NONE) & found, at, inner)
        outer = np.where(found, at, outer)
        at = np.where(open_, parent[at], NONE)
    return _ids(inner), _ids(outer)


def _are_operators(trace: Trace) -> np.ndarray:
    def is_so(category: str, name: str) -> bool:
        return category in names.OPERATORS and names.is_dispatched(name)

    return by_kind(trace.slices, is_so) > 0


def _ids(slices: np.ndarray) -> pl.Series:
    found = pl.Series(slices, dtype=pl.Int64)
    return found.set(found == NONE, None).cast(pl.UInt32)


def _summed(rows: pl.DataFrame, by: str, steps: int) -> pl.DataFrame:
    """One row for each of the keys; what cannot be summed is that of the longest wait."""
    keys = _KEYS[by]
    summed = by != "call"
    sums = [pl.when(pl.col(n).count() > 0).then(pl.col(n).sum()).alias(n) for n in _SUMS]
    others = [
        c.name
        for c in syncs.columns
        if c.name not in (*keys, *_SUMS, "count", "count_per_step", "step")
    ]
    per_step = pl.col("counted").sum() / steps if summed and steps else pl.lit(None)
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
        .sort(_ORDER, descending=[True, True, False], nulls_last=True, maintain_order=True)
        .select(pl.col(column.name).cast(column.dtype) for column in syncs.columns)
    )
