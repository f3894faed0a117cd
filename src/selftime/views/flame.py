"""Frames, modules, operators and kernels folded to a tree by their time: a flame graph."""

from typing import Final, Literal, NamedTuple

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_tree.call_tree import call_tree
from selftime.analysis.call_tree.costs import Launched, launched
from selftime.analysis.call_tree.forest import levels, preorder
from selftime.analysis.call_tree.name_tree import OTHER, Folded, fold, pruned, without
from selftime.analysis.call_tree.passes import passes_of
from selftime.analysis.call_tree.self_times import STEPS_NAME
from selftime.analysis.grouping import grouped
from selftime.analysis.steps.steady_steps import counted_windows, is_within
from selftime.arrays import Flags, Ints
from selftime.errors import UsageError
from selftime.nesting import NONE
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.base import Share, Top, view

_KINDS: Final = ("frame", "module", "annotation", "operator", "call", "kernel", "copy", "other")
_KIND: Final = {
    **dict.fromkeys(names.FRAMES, "frame"),
    **dict.fromkeys(names.ANNOTATIONS, "annotation"),
    **dict.fromkeys(names.OPERATORS, "operator"),
    **dict.fromkeys(names.CALLS, "call"),
    **dict.fromkeys(names.DEVICE, "kernel"),
    **dict.fromkeys(names.COPIES, "copy"),
}
"""Of the categories; a frame of a module is a module."""

_OTHER: Final = "(other)"


@view(
    Column("name", pl.String, "name", "The frame, module, annotation, operator, call or kernel."),
    Column("kind", pl.Enum(_KINDS), "name", f"One of {', '.join(_KINDS)}."),
    Column("depth", pl.Int64, "count", "How many nodes are around it."),
    Column("total_time", pl.Int64, "ns", "Time of it and all within."),
    Column("share", pl.Float64, "ratio", "That by the time of all roots."),
    Column("self_time", pl.Int64, "ns", "Time of it and of nothing within."),
    Column("count", pl.Int64, "count", "How many slices it stands for."),
    Column("file", pl.String, "text", "For frames: the source file.", True),
    Column("line", pl.Int32, "id", "For frames: the line that defines the function.", True),
    Column("id", pl.Int64, "id", "The row's number, to which `parent` refers."),
    Column("parent", pl.Int64, "id", "The row of the node around it; null at a root.", True),
    needs=("stacks",),
    sums=("self_time",),
)
def flame(  # noqa: PLR0913 - keyword-only options of the command
    trace: Trace,
    *,
    metric: Literal["auto", "host", "device"] = "auto",
    by: Literal["stack", "module"] = "stack",
    thread: str = "",
    counted: bool = False,
    min_share: Share = 0.001,
    top: Top = 0,
) -> pl.DataFrame:
    """Frames, modules, operators and kernels folded to a tree by host or device time.

    Slices of equal names within equal names are one node; each node comes before what is within it,
    the heaviest branch first. `metric` is the time that is folded: of the host, or of the device
    (auto) where there is any, then kernels are the leaves and calls are left out. `by` stack shows
    what ran within what; by module plain frames are left out, and backward operators are within the
    module of their forward operator. `thread` keeps one host thread, as the trace numbers it, and
    the work that it launched; `counted` what began in the steps that count for medians.

    Nodes below `min_share` of the whole, less than a pixel of a screen, are joined to `(other)`
    below their parent; `top` keeps the largest nodes; 0 keeps all. Totals stay whole.
    """
    _check(trace, thread)
    on_device = metric == "device" or (metric == "auto" and trace.device_args.height > 0)
    stacked = _stacked(trace, by=by, on_device=on_device)
    chosen = _chosen(trace, stacked, thread=thread, counted=counted)
    code, table = _called(trace, stacked.id)
    own = np.where(chosen, stacked.own, 0)
    whole = fold(stacked.parent, code, own, chosen.astype(np.int64))
    everything = int(own.sum())
    return _rows(pruned(whole, least=min_share * everything, top=top), table, everything)


class _Stacked(NamedTuple):
    """The slices that are folded; arrays of shape (n,)."""

    id: Ints
    parent: Ints
    own: Ints
    """Time in ns."""
    host: Ints
    """The slice itself; of device work the one that launched it, or NONE."""


def _check(trace: Trace, thread: str) -> None:
    known = trace.tracks.filter(pl.col("kind").is_in(["host", "python"]))["tid"].unique().sort()
    if thread and thread not in known:
        listed = ", ".join(known)
        raise UsageError(f"`thread` is `{thread}`; the trace has the host threads {listed}")


def _stacked(trace: Trace, *, by: str, on_device: bool) -> _Stacked:
    if by == "module":
        tree = passes_of(trace)
        entries, parent = tree.entries, tree.parent
    else:
        entries = call_tree(trace)
        parent = entries.parent
    dropped = np.zeros(entries.id.size, bool)
    if by == "module":
        dropped |= _plain_frames(trace)[entries.id] & (parent != NONE)
    if on_device:
        dropped |= _of_category(trace, names.CALLS)[entries.id]
    above = without(parent, dropped)
    holder = np.where(dropped, above, np.arange(above.size))
    if on_device:
        return _with_work(launched(trace, entries), entries.id, above, holder)
    own = np.zeros(holder.size, np.int64)
    np.add.at(own, holder[holder != NONE], entries.self_time[holder != NONE])
    return _Stacked(*_some(~dropped, above, entries.id, own, entries.id))


def _with_work(work: Launched, ids: Ints, above: Ints, holder: Ints) -> _Stacked:
    """Device work, and what it was launched within."""
    launcher = np.where(work.owner == NONE, NONE, holder[work.owner] if holder.size else NONE)
    around = np.zeros(ids.size, bool)
    at = np.unique(launcher[launcher != NONE])
    while at.size:
        around[at] = True
        at = np.unique(above[at])
        at = at[(at != NONE) & ~around[at]]
    size = work.id.size
    began = np.where(work.owner == NONE, NONE, ids[work.owner] if ids.size else NONE)
    return _Stacked(
        *_some(
            np.append(around, np.ones(size, bool)),
            np.append(above, launcher),
            np.append(ids, work.id),
            np.append(np.zeros(ids.size, np.int64), work.duration),
            np.append(ids, began),
        )
    )


def _some(kept: Flags, parent: Ints, *columns: Ints) -> tuple[Ints, ...]:
    """The first of the columns, the parents, and the other columns, of what is kept."""
    at = np.flatnonzero(kept)
    place = np.full(kept.size, NONE, np.int64)
    place[at] = np.arange(at.size)
    above = parent[at]
    first, *rest = (column[at] for column in columns)
    return first, np.where(above == NONE, NONE, place[above]), *rest


def _plain_frames(trace: Trace) -> Flags:
    """Frames that are no module's."""
    found = _of_category(trace, names.FRAMES)
    modules = trace.frame_args.select("id", "module_id").drop_nulls()["id"]
    found[modules.to_numpy()] = False
    return found


def _of_category(trace: Trace, categories: tuple[str, ...]) -> Flags:
    chosen = trace.slices["category"].is_in(list(categories))
    return chosen.to_numpy().copy()


def _chosen(trace: Trace, stacked: _Stacked, *, thread: str, counted: bool) -> Flags:
    chosen = np.ones(stacked.id.size, bool)
    known = stacked.host != NONE
    host = stacked.host[known]
    if thread:
        of_thread = (trace.tracks["tid"] == thread).to_numpy()
        chosen &= known
        chosen[known] &= of_thread[trace.slices["track"].to_numpy()[host]]
    if counted:
        chosen &= known
        chosen[known] &= is_within(trace.slices["start"].to_numpy()[host], counted_windows(trace))
    return chosen


def _called(trace: Trace, ids: Ints) -> tuple[Ints, pl.DataFrame]:
    """What each slice is called, as a place in a table: columns name, kind, file, line."""
    slices = trace.slices.select("name", "category")[pl.Series(ids, dtype=pl.UInt32)]
    module = np.zeros(trace.slices.height, bool)
    told = trace.frame_args.select("id", "module_id").drop_nulls()["id"]
    module[told.to_numpy()] = True
    slices = slices.with_columns(module=module[ids].view(np.uint8))
    group, first = grouped(slices)
    order = np.argsort(first)  # as they come
    texts = slices[pl.Series(first[order])].cast({"name": pl.String, "category": pl.String})
    named = [_read(name, category, bool(known)) for name, category, known in texts.iter_rows()]
    places = {row: place for place, row in enumerate(dict.fromkeys(named))}
    code = np.empty(first.size, np.int64)
    code[order] = [places[row] for row in named]
    schema = {"name": pl.String, "kind": pl.String, "file": pl.String, "line": pl.Int32}
    table = pl.DataFrame(list(places), schema=schema, orient="row")
    return code[group], table


def _read(name: str, category: str, module: bool) -> tuple[str, str, str | None, int | None]:
    if names.step_number(name) is not None:
        return STEPS_NAME, "annotation", None, None
    kind = "module" if module else _KIND.get(category, "other")
    frame = names.frame(name) if kind == "frame" else None
    place = (frame.file, frame.line) if frame else (None, None)
    return names.without_address(name), kind, *place


def _rows(tree: Folded, called: pl.DataFrame, everything: int) -> pl.DataFrame:
    """The nodes as rows, in order of reading."""
    other = {"name": [_OTHER], "kind": ["other"], "file": [None], "line": [None]}
    called = pl.concat([called, pl.DataFrame(other, schema=called.schema)])
    code = pl.Series(np.where(tree.code == OTHER, called.height - 1, tree.code), dtype=pl.UInt32)
    order = preorder(tree.parent, tree.total)
    row = np.empty(order.size, np.int64)
    row[order] = np.arange(order.size)
    depth = np.zeros(order.size, np.int64)
    for number, level in enumerate(levels(tree.parent)):
        depth[level] = number
    parent = pl.Series(np.where(tree.parent == NONE, NONE, row[tree.parent] if row.size else NONE))
    table = called[code].with_columns(
        depth=depth,
        total_time=tree.total,
        share=tree.total / max(everything, 1),
        self_time=tree.own,
        count=tree.count,
        id=row,
        parent=parent.set(parent == NONE, None),
    )
    return table[order].select(pl.col(c.name).cast(c.dtype) for c in flame.columns)
