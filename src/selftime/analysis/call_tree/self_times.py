"""What each host slice costs: host time, device time and memory, its own and with its children.

The entries are those of the call tree, as torch's tables have them: without Python frames unless
asked for, and with an operator that does nothing but call another of its name merged into one.
Where torch errs, this does not: device work of both merged operators counts, and memory counts on
the thread that recorded it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.call_tree.call_tree import CallTree, call_tree
from selftime.analysis.device.work import device_durations
from selftime.arrays import Flags, Ints
from selftime.devices import HOST_TYPES
from selftime.nesting import NONE, innermost_at, nearest
from selftime.trace import Trace

STEPS_NAME = "ProfilerStep*"
"""The one name under which torch's tables put all profiler steps."""


@dataclass(frozen=True, slots=True)
class SelfTimes:
    """One entry for each host slice that counts, ordered so that parents stand before children."""

    id: Ints
    name: pl.Series
    category: pl.Series
    parent: Ints
    """Place of the parent in these arrays, or NONE."""
    cpu: Ints
    self_cpu: Ints
    device: Ints
    self_device: Ints
    memory: dict[str, Ints]
    """Bytes allocated less released: `cpu`, `self_cpu`, `device`, `self_device`."""
    unclaimed: pl.DataFrame
    """Memory records that lie in no operator: columns `cpu` and `device`, in bytes."""
    owner: Ints
    """For each slice of the trace: the place of what it is charged to in these arrays, or NONE."""

    def own(self, slices: Ints, amounts: Ints) -> Ints:
        """Amounts of slices of the trace, added up by what they are charged to."""
        return _charged(self.owner, slices, amounts, self.id.size)


def self_times(trace: Trace, *, python: bool = False) -> SelfTimes:
    """Charge a trace's time and memory to its operators, annotations and calls.

    With `python` Python frames are entries too, so that what a frame does itself is not charged to
    the annotation around it.
    """
    tree = call_tree(trace, frames=python, cut=False)
    name = _names(trace).gather(tree.id)
    kept, above, self_cpu = _merge_same(name.to_physical().to_numpy(), tree)
    at = np.flatnonzero(kept)
    local = np.full(kept.size, NONE, np.int64)
    local[at] = np.arange(at.size)
    owner = _owners(tree, kept, local)
    own_device = _own_device(trace, owner, at.size)
    memory, unclaimed = _own_memory(trace, tree, owner, at.size)
    above = np.where(above[at] == NONE, NONE, local[above[at]])
    return SelfTimes(
        id=tree.id[at],
        name=name.gather(at),
        category=trace.slices["category"].gather(tree.id[at]),
        parent=above,
        cpu=trace.slices["duration"].fill_null(0).to_numpy()[tree.id[at]],
        self_cpu=self_cpu[at],
        device=subtree(above, own_device),
        self_device=own_device,
        memory={
            **{f"self_{side}": own for side, own in memory.items()},
            **{side: subtree(above, own) for side, own in memory.items()},
        },
        unclaimed=unclaimed,
        owner=owner,
    )


def _names(trace: Trace) -> pl.Series:
    """Names as torch's tables have them: all profiler steps are one."""
    named = trace.slices["name"]
    unique = named.unique()
    is_step = [names.step_number(text) is not None for text in unique.cast(pl.String).to_list()]
    steps = named.is_in(unique.filter(pl.Series(is_step, dtype=pl.Boolean)).implode())
    if steps.any():
        one = pl.Series([STEPS_NAME], dtype=named.dtype)
        return named.clone().scatter(steps.arg_true(), one)
    return named


def _merge_same(name: NDArray[Any], tree: CallTree) -> tuple[Flags, Ints, Ints]:
    """Drop the only child of a parent that has its name; the parent takes its time and children.

    Returns which entries of the tree are kept, their parents, and their self times.
    """
    kept, above = np.ones(tree.id.size, bool), tree.parent.copy()
    self_time = tree.self_time.copy()
    while True:
        at = np.flatnonzero(kept & (above != NONE))
        children = np.bincount(above[at], minlength=kept.size)
        same = at[(name[at] == name[above[at]]) & (children[above[at]] == 1)]
        if not same.size:
            return kept, above, self_time
        kept[same] = False
        np.add.at(self_time, nearest(above, kept, same), self_time[same])
        rest = np.flatnonzero(kept & (above != NONE))
        above[rest] = nearest(above, kept, above[rest])


def _owners(tree: CallTree, kept: Flags, local: Ints) -> Ints:
    """For each slice: the place of itself or of its nearest ancestor that is kept, or NONE."""
    holder = local[nearest(tree.parent, kept, np.arange(kept.size))]
    return np.append(holder, NONE)[tree.place]


def _own_device(trace: Trace, owner: Ints, size: int) -> Ints:
    """Device time launched from each operator itself, or by a call that lies in no operator."""
    work = trace.device_args.select("id", "operator")
    by = work.select(pl.coalesce("operator", trace.slices["launch"].gather(work["id"]))).to_series()
    known = by.is_not_null()
    time = device_durations(trace).gather(work["id"].filter(known)).fill_null(0)
    return _charged(owner, by.filter(known).to_numpy(), time.to_numpy(), size)


def _own_memory(
    trace: Trace, tree: CallTree, owner: Ints, size: int
) -> tuple[dict[str, Ints], pl.DataFrame]:
    """Bytes by the innermost slice on the record's thread at its time; and those in none."""
    on_host = pl.col("device_type").is_in(HOST_TYPES)
    memory = trace.memory.select("time", "track", "device_type", "bytes", "failed")
    records = memory.filter(~pl.col("failed"))
    records = records.select(
        "time",
        thread=trace.tracks["thread"].gather(records["track"]),
        cpu=pl.when(on_host).then("bytes").otherwise(0).fill_null(0),
        device=pl.when(~on_host).then("bytes").otherwise(0).fill_null(0),
    )
    where = _innermost(trace, tree, records)
    inside = where != NONE
    own = {
        side: _charged(owner, where[inside], records[side].to_numpy()[inside], size)
        for side in ("cpu", "device")
    }
    return own, records.filter(pl.Series(~inside)).select("cpu", "device")


def _innermost(trace: Trace, tree: CallTree, records: pl.DataFrame) -> Ints:
    """The slice that was the innermost of the tree on each record's thread, or NONE."""
    threads, time = records["thread"].to_numpy(), records["time"].to_numpy()
    found = np.full(time.size, NONE, np.int64)
    thread = trace.tracks["thread"].gather(trace.slices["track"].gather(tree.id)).to_numpy()
    place = np.full(tree.id.size, NONE, np.int64)
    for number in np.unique(threads):
        mine = np.flatnonzero((thread == number) & ~tree.alone)
        mine = mine[np.argsort(tree.start[mine], kind="stable")]
        place[mine] = np.arange(mine.size)
        above = np.where(tree.parent[mine] == NONE, NONE, place[tree.parent[mine]])
        asked = np.flatnonzero(threads == number)
        inner = innermost_at(tree.start[mine], tree.end[mine], above, time[asked])
        found[asked] = np.where(inner == NONE, NONE, tree.id[mine[inner]] if mine.size else NONE)
    return found


def _charged(owner: Ints, slices: Any, amounts: Any, size: int) -> Ints:
    total = np.zeros(size, np.int64)
    if len(slices):
        place = owner[slices.astype(np.int64)]
        np.add.at(total, place[place != NONE], amounts[place != NONE])
    return total


def subtree(parent: Ints, own: Ints) -> Ints:
    """Own amounts with those of all descendants; parents stand before their children."""
    total = own.astype(np.int64)  # a copy
    if total.any():
        for low, high in _stretches(parent):
            above = parent[low:high]
            inside = slice(None) if above.min() != NONE else above != NONE
            np.add.at(total, above[inside], total[low:high][inside].copy())
    return total


def marked_above(parent: Ints, marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Entries that are marked, or lie in one that is; parents stand before their children."""
    found = marked.copy()
    if found.any():
        for low, high in reversed(_stretches(parent)):
            here = np.flatnonzero(parent[low:high] != NONE) + low
            found[here] |= found[parent[here]]
    return found


def _stretches(parent: Ints) -> list[tuple[int, int]]:
    """The array in stretches that hold no parent of their own, from the last to the second.

    What stands behind the last parent of all has no children, and so on with the rest. In order of
    depth that is about a level of the tree at a time. The first stretch holds roots alone.
    """
    last_parent = np.maximum.accumulate(parent)
    found = []
    high = parent.size
    while high and last_parent[high - 1] != NONE:
        low = int(last_parent[high - 1]) + 1
        found.append((low, high))
        high = low
    return found


def outermost(parent: Ints, key: NDArray[Any]) -> NDArray[np.bool_]:
    """Entries with no ancestor of the same key: in totals a recursive operator counts once."""
    inside = np.zeros(parent.size, bool)
    at = np.flatnonzero(parent != NONE)
    above = parent[at]
    while at.size:
        same = key[above] == key[at]
        inside[at[same]] = True
        at, above = at[~same], parent[above[~same]]
        at, above = at[above != NONE], above[above != NONE]
    return ~inside


def within(host: SelfTimes, prefix: str) -> NDArray[np.bool_]:
    """Which entries lie in a slice whose name begins so, or are one; all if it is empty."""
    if not prefix:
        return np.ones(host.id.size, bool)
    wanted: NDArray[np.bool_] = host.name.cast(pl.String).str.starts_with(prefix).to_numpy()
    found = nearest(host.parent, wanted, np.arange(host.id.size))
    return np.asarray(found != NONE)
