"""Compare the modules and operators of two recordings as one tree, matched by name.

Kernels are left out, since their names differ between versions and vendors: their time counts for
the operator that launched them. Modules are matched by class and by position among those of the
same class within one module, so that an additional layer elsewhere shifts none. Frames that are not
modules are left out, as one recording may lack them.
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
from selftime.compare.amounts import Amounts, Windows, inclusive_amounts, spread, windows
from selftime.compare.noise import Spread
from selftime.compare.rows import DIFFERENCE, differences, verdicts
from selftime.nesting import NONE
from selftime.schema import Column, Table
from selftime.trace import Trace

Metric: TypeAlias = Literal["host", "device"]
Name: TypeAlias = tuple[str, str]
"""A node's kind (module, annotation or operator), and its name."""

OUTSIDE: Final[Name] = ("other", "(in no operator)")

TREE: Final = Table(
    "tree",
    "Modules and operators of both recordings, by self time; rows add up to the total.",
    (
        Column("path", pl.String, "name", "The names from the root to the node."),
        *DIFFERENCE,
        Column("total_before", pl.Float64, "ns", "Total time per step before."),
        Column("total_after", pl.Float64, "ns", "Total time per step after."),
        Column("total_difference", pl.Float64, "ns", "After minus before, of total time."),
        Column(
            "total_verdict", pl.String, "name", "The verdict on total time; null: unclear.", True
        ),
        Column("calls_before", pl.Float64, "count", "Calls per step before."),
        Column("calls_after", pl.Float64, "count", "Calls per step after."),
        Column("name", pl.String, "name", "The node's name."),
        Column("kind", pl.String, "name", "module, annotation, operator or other."),
        Column("depth", pl.Int64, "count", "The number of enclosing nodes."),
        Column("id", pl.Int64, "id", "The row's number, which `parent` refers to."),
        Column("parent", pl.Int64, "id", "The row of the enclosing node; null: a root.", True),
    ),
)


def compared_tree(before: Trace, after: Trace, metric: Metric) -> pl.DataFrame:
    """Returns `TREE`: every node of either recording, the greatest own difference first.

    `metric` selects the time: of the device work that operators launch, or of all host threads;
    host time outside of operators is left out if a recording has no Python frames.
    """
    with_modules = all(_has_modules(trace) for trace in (before, after))
    with_frames = all(trace.frame_args.height > 0 for trace in (before, after))
    codes: dict[Name, int] = {OUTSIDE: 0}
    sides = [
        _side(trace, metric, codes, with_modules=with_modules, with_frames=with_frames)
        for trace in (before, after)
    ]
    nodes, found = _merge_trees(*sides)
    table = _table(nodes, list(codes), *found)
    table = table.filter(_with_parents(nodes.parent, _is_relevant(table)))
    order = pl.col("difference").abs()
    return table.sort(order, "path", descending=[True, False]).select(*TREE.dtypes)


@dataclass(frozen=True, slots=True)
class _NodeAmounts:
    """The amounts of the nodes per step in one recording; shape (nodes,)."""

    own: Spread
    total: Spread
    """Including all nodes inside."""
    calls: Floats


def _merge_trees(before: "_Side", after: "_Side") -> tuple[Nodes, list[_NodeAmounts]]:
    """Returns the merged nodes of both recordings, and their amounts in each."""
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
        whole = inclusive_amounts(own, nodes.parent, side.steps)
        each, total, calls = (spread(one, count, side.steps) for one in (own, whole, once))
        found.append(_NodeAmounts(each, total, calls.mean))
    return nodes, found


def _is_relevant(table: pl.DataFrame) -> NDArray[np.bool_]:
    """Returns the rows that have time, or a changed number of calls."""
    takes = (pl.col("total_before") > 0) | (pl.col("total_after") > 0)
    found = table.select(takes | (pl.col("calls_before") != pl.col("calls_after")))
    return found.to_series().to_numpy()


def _with_parents(parent: Ints, chosen: NDArray[np.bool_]) -> pl.Series:
    """Returns a filter for the chosen nodes and all of their ancestors."""
    kept = chosen.copy()
    for level in reversed(levels(parent)[1:]):
        kept[parent[level[kept[level]]]] = True
    return pl.Series(kept)


def _table(
    nodes: Nodes, named: list[Name], before: _NodeAmounts, after: _NodeAmounts
) -> pl.DataFrame:
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
    """One recording's part of the tree, with parents before children."""

    parent: Ints
    code: Ints
    began: Ints
    """The step in which each entry began, or NONE."""
    amounts: Amounts
    """The own amounts of each entry."""
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
    # The first place is for time outside of all nodes.
    place = np.full(dropped.size, NONE, np.int64)
    place[kept] = np.arange(kept.size) + 1
    start = trace.slices["start"].to_numpy()
    began = steps.of(start[id_])
    parent = np.append(NONE, np.where(above[kept] == NONE, NONE, place[above[kept]]))
    node_of = np.where(holder == NONE, 0, place[holder])
    if metric == "device":
        amounts = _launched(trace, tree, node_of, steps)
    else:
        is_counted = (holder != NONE) | with_frames
        amounts = Amounts(
            node_of[is_counted], began[is_counted], tree.entries.self_time[is_counted]
        )
    code = np.append(
        0, _codes(trace, id_[kept], {place[e] - 1: m for e, m in of_module.items()}, codes)
    )
    return _Side(parent, code, np.append(NONE, began[kept]), amounts, steps.count)


def _launched(trace: Trace, tree: Passes, node_of: Ints, steps: Windows) -> Amounts:
    """Returns device time by the node that launched it, in the step of the launch."""
    work = launched(trace, tree.entries)
    owned = work.owner != NONE
    start = trace.slices["start"].to_numpy()
    begun = start[work.id].copy()
    begun[owned] = start[tree.entries.id[work.owner[owned]]]
    by = np.zeros(work.id.size, np.int64)
    by[owned] = node_of[work.owner[owned]]
    return Amounts(by, steps.of(begun), work.duration)


def _has_modules(trace: Trace) -> bool:
    return bool(trace.frame_args["module_id"].is_not_null().any())


def _left_out(trace: Trace) -> NDArray[np.bool_]:
    """Returns which slices are frames, calls or step annotations."""
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
    """Returns the name of each module call: its class, with a number within its parent."""
    found = module_tree(trace, tree)
    asked = trace.frame_args.select("id", "module_id").drop_nulls()["id"].to_numpy()
    entries = tree.entries.place[asked]
    entries = entries[entries != NONE]
    same_class: dict[tuple[int, str], list[int]] = {}
    for node, (instance, above) in enumerate(
        zip(found.instances, found.parent.tolist(), strict=True)
    ):
        same_class.setdefault((above, instance.kind), []).append(node)
    module_names: dict[int, str] = {}
    for (_, kind), every in same_class.items():
        numbered = sorted(every, key=lambda node: (found.instances[node].number or 0, node))
        for which, node in enumerate(numbered, 1):
            module_names[node] = kind if which == 1 else f"{kind} {which}"
    nodes = found.node[entries]
    return {
        entry: module_names[node]
        for entry, node in zip(entries.tolist(), nodes.tolist(), strict=True)
        if node != NONE
    }


def _codes(trace: Trace, ids: Ints, modules: dict[int, str], codes: dict[Name, int]) -> Ints:
    """Returns the code of each place's name; new names get the next code."""
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
    """Returns the names from the root to each node."""
    paths: list[str] = []
    for (_, name), above in zip(texts, parent.tolist(), strict=True):
        paths.append(name if above == NONE else f"{paths[above]} > {name}")
    return paths
