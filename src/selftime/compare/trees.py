"""The modules and operators of two recordings as one tree: what is called the same is one node.

Kernels are left out, since their names differ between versions and vendors: their time is that of
the operator that launched them. Modules are told apart by their class and their place among those
of that class within one module, so a layer more elsewhere shifts none. Frames that are no module's
are left out, as one recording may lack them.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.call_tree.costs import launched
from selftime.analysis.call_tree.forest import levels
from selftime.analysis.call_tree.module_tree import module_tree
from selftime.analysis.call_tree.name_tree import Nodes, joined, without
from selftime.analysis.call_tree.passes import Passes, passes_of
from selftime.analysis.grouping import grouped
from selftime.arrays import Floats, Ints
from selftime.compare.amounts import Amounts, Windows, spread, windows, with_inner
from selftime.compare.noise import Spread
from selftime.compare.rows import DIFFERENCE, differences, verdicts
from selftime.nesting import NONE
from selftime.schema import Column, Table
from selftime.trace import Trace

Metric: TypeAlias = Literal["host", "device"]
Name: TypeAlias = tuple[str, str]
"""What a node is: module, annotation or operator; and what it is called."""

OUTSIDE: Final[Name] = ("other", "(in no operator)")

TREE: Final = Table(
    "tree",
    "Modules and operators of both recordings, by what each takes itself; rows add up to all.",
    (
        Column("path", pl.String, "name", "The modules, annotations and operators down to it."),
        *DIFFERENCE,
        Column("total_before", pl.Float64, "ns", "Before, with all within it."),
        Column("total_after", pl.Float64, "ns", "After, with all within it."),
        Column("total_difference", pl.Float64, "ns", "After less before, with all within it."),
        Column("total_verdict", pl.String, "name", "The verdict on that; null: not told.", True),
        Column("calls_before", pl.Float64, "count", "Times a step before."),
        Column("calls_after", pl.Float64, "count", "Times a step after."),
        Column("name", pl.String, "name", "What it is called."),
        Column("kind", pl.String, "name", "module, annotation, operator or other."),
        Column("depth", pl.Int64, "count", "How many nodes are around it."),
        Column("id", pl.Int64, "id", "The row's number, to which `parent` refers."),
        Column("parent", pl.Int64, "id", "The row of the node around it; null at a root.", True),
    ),
)


def compared_tree(before: Trace, after: Trace, metric: Metric) -> pl.DataFrame:
    """`TREE`: every node of either recording, the greatest difference of its own first.

    `metric` is what is compared: time of the device that operators launch, or of the host, of all
    its threads, without what waits in no operator where a recording has no Python frames.
    """
    with_modules = all(_has_modules(trace) for trace in (before, after))
    with_frames = all(trace.frame_args.height > 0 for trace in (before, after))
    codes: dict[Name, int] = {OUTSIDE: 0}
    sides = [
        _side(trace, metric, codes, with_modules=with_modules, with_frames=with_frames)
        for trace in (before, after)
    ]
    nodes, found = _one_tree(*sides)
    table = _table(nodes, list(codes), *found)
    table = table.filter(_with_parents(nodes.parent, _is_there(table)))
    order = pl.col("difference").abs()
    return table.sort(order, "path", descending=[True, False]).select(*TREE.dtypes)


@dataclass(frozen=True, slots=True)
class _Taken:
    """What the nodes take a step on one side; shape (nodes,)."""

    own: Spread
    total: Spread
    """With all within."""
    calls: Floats


def _one_tree(before: "_Side", after: "_Side") -> tuple[Nodes, list[_Taken]]:
    """The nodes of both sides, and what they take on each."""
    size = before.parent.size
    shifted = np.where(after.parent == NONE, NONE, after.parent + size)
    nodes = joined(
        np.concatenate([before.parent, shifted]), np.concatenate([before.code, after.code])
    )
    count = nodes.code.size
    found = []
    places = nodes.node[:size], nodes.node[size:]
    for side, node in zip((before, after), places, strict=True):
        own = Amounts(node[side.amounts.thing], side.amounts.step, side.amounts.much)
        once = Amounts(node, side.began, np.ones(node.size, np.int64))
        whole = with_inner(own, nodes.parent, side.steps)
        each, total, calls = (spread(one, count, side.steps) for one in (own, whole, once))
        found.append(_Taken(each, total, calls.mean))
    return nodes, found


def _is_there(table: pl.DataFrame) -> NDArray[np.bool_]:
    """Rows with time, or that are not called as often as before."""
    takes = (pl.col("total_before") > 0) | (pl.col("total_after") > 0)
    found = table.select(takes | (pl.col("calls_before") != pl.col("calls_after")))
    return found.to_series().to_numpy()


def _with_parents(parent: Ints, chosen: NDArray[np.bool_]) -> pl.Series:
    """The chosen nodes, and those around them, without which they would hang in the air."""
    kept = chosen.copy()
    for level in reversed(levels(parent)[1:]):
        kept[parent[level[kept[level]]]] = True
    return pl.Series(kept)


def _table(nodes: Nodes, named: list[Name], before: _Taken, after: _Taken) -> pl.DataFrame:
    depth = np.zeros(nodes.code.size, np.int64)
    for number, level in enumerate(levels(nodes.parent)):
        depth[level] = number
    calls = before.calls, after.calls
    texts = [named[code] for code in nodes.code.tolist()]
    return pl.DataFrame(
        {
            "path": _paths(nodes.parent, texts),
            **differences(before.own, after.own),
            "verdict": verdicts(before.own, after.own, *calls),
            "total_before": before.total.mean,
            "total_after": after.total.mean,
            "total_difference": after.total.mean - before.total.mean,
            "total_verdict": verdicts(before.total, after.total, *calls),
            "calls_before": before.calls,
            "calls_after": after.calls,
            "name": [name for _, name in texts],
            "kind": [kind for kind, _ in texts],
            "depth": depth,
            "id": np.arange(depth.size),
            "parent": pl.Series(nodes.parent).set(pl.Series(nodes.parent == NONE), None),
        },
        schema_overrides=TREE.dtypes,
    )


@dataclass(frozen=True, slots=True)
class _Side:
    """One recording's part of the tree; arrays over its places, parents before children."""

    parent: Ints
    code: Ints
    began: Ints
    """The step in which each began, or NONE."""
    amounts: Amounts
    """What each takes itself, by place."""
    steps: int


def _side(
    trace: Trace, metric: Metric, codes: dict[Name, int], *, with_modules: bool, with_frames: bool
) -> _Side:
    tree, steps = passes_of(trace), windows(trace)
    id_ = tree.entries.id
    of_module = _modules(trace, tree) if with_modules else {}
    dropped = _left_out(trace)[id_]
    dropped[list(of_module)] = False
    above = without(tree.parent, dropped)
    holder = np.where(dropped, above, np.arange(above.size))
    kept = np.flatnonzero(~dropped)
    # The place before all others stands for what is in no node.
    place = np.full(dropped.size, NONE, np.int64)
    place[kept] = np.arange(kept.size) + 1
    start = trace.slices["start"].to_numpy()
    began = steps.of(start[id_])
    parent = np.append(NONE, np.where(above[kept] == NONE, NONE, place[above[kept]]))
    held = np.where(holder == NONE, 0, place[holder])
    if metric == "device":
        amounts = _launched(trace, tree, held, steps)
    else:
        is_told = (holder != NONE) | with_frames
        amounts = Amounts(held[is_told], began[is_told], tree.entries.self_time[is_told])
    code = np.append(
        0, _codes(trace, id_[kept], {place[e] - 1: m for e, m in of_module.items()}, codes)
    )
    return _Side(parent, code, np.append(NONE, began[kept]), amounts, steps.count)


def _launched(trace: Trace, tree: Passes, held: Ints, steps: Windows) -> Amounts:
    """The device's time by what launched it, in the step in which it did."""
    work = launched(trace, tree.entries)
    owned = work.owner != NONE
    start = trace.slices["start"].to_numpy()
    begun = start[work.id].copy()
    begun[owned] = start[tree.entries.id[work.owner[owned]]]
    by = np.zeros(work.id.size, np.int64)
    by[owned] = held[work.owner[owned]]
    return Amounts(by, steps.of(begun), work.duration)


def _has_modules(trace: Trace) -> bool:
    return bool(trace.frame_args["module_id"].is_not_null().any())


def _left_out(trace: Trace) -> NDArray[np.bool_]:
    """Frames, calls, and marks of steps, by slice."""
    category = trace.slices["category"]
    left = category.is_in([*names.FRAMES, *names.CALLS]).to_numpy().copy()
    marks = {
        text
        for text in trace.slices["name"].unique().cast(pl.String).to_list()
        if names.step_number(text) is not None
    }
    left |= trace.slices["name"].cast(pl.String).is_in(marks).to_numpy() if marks else False
    return left


def _modules(trace: Trace, tree: Passes) -> dict[int, str]:
    """What each entry that is a module's call is called: its class, and which within its parent."""
    found = module_tree(trace, tree)
    asked = trace.frame_args.select("id", "module_id").drop_nulls()["id"].to_numpy()
    entries = tree.entries.place[asked]
    entries = entries[entries != NONE]
    alike: dict[tuple[int, str], list[int]] = {}
    for node, (instance, above) in enumerate(
        zip(found.instances, found.parent.tolist(), strict=True)
    ):
        alike.setdefault((above, instance.kind), []).append(node)
    called: dict[int, str] = {}
    for (_, kind), every in alike.items():
        numbered = sorted(every, key=lambda node: (found.instances[node].number or 0, node))
        for which, node in enumerate(numbered, 1):
            called[node] = kind if which == 1 else f"{kind} {which}"
    nodes = found.node[entries]
    return {
        entry: called[node]
        for entry, node in zip(entries.tolist(), nodes.tolist(), strict=True)
        if node != NONE
    }


def _codes(trace: Trace, ids: Ints, modules: dict[int, str], codes: dict[Name, int]) -> Ints:
    """The code of each place; names that are new get the next."""
    slices = trace.slices.select("name", "category")[pl.Series(ids, dtype=pl.UInt32)]
    group, first = grouped(slices)
    texts = slices[pl.Series(first)].cast({"name": pl.String, "category": pl.String})
    known = np.array(
        [
            codes.setdefault((_kind(category), names.without_address(name)), len(codes))
            for name, category in texts.iter_rows()
        ],
        np.int64,
    )
    code: Ints = known[group]
    for place, name in modules.items():
        code[place] = codes.setdefault(("module", name), len(codes))
    return code


def _kind(category: str) -> str:
    if category in names.ANNOTATIONS:
        return "annotation"
    return "operator" if category in names.OPERATORS else "other"


def _paths(parent: Ints, texts: list[Name]) -> list[str]:
    """The names down to each node."""
    paths: list[str] = []
    for (_, name), above in zip(texts, parent.tolist(), strict=True):
        paths.append(name if above == NONE else f"{paths[above]} > {name}")
    return paths
