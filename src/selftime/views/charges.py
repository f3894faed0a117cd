"""What each host slice costs: host time, device time and memory, its own and with its children.

The tree is the one that torch's tables use: operators, annotations and runtime calls of a thread by
containment, without the recorder's own operators, and with an operator that does nothing but call
another of its name merged into one. Where torch errs, this does not: device work of both merged
operators counts, and memory counts on the thread that recorded it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.devices import HOST_TYPES
from selftime.nesting import NONE, nearest
from selftime.trace import Trace

__all__ = ["STEPS_NAME", "Charges", "charges", "outermost"]

Ints = NDArray[np.int64]

STEPS_NAME = "ProfilerStep*"
"""The one name under which torch's tables put all profiler steps."""


@dataclass(frozen=True, slots=True)
class Charges:
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


def charges(trace: Trace) -> Charges:
    """Charge a trace's time and memory to its operators, annotations and calls."""
    slices = trace.slices
    asynchronous = _asynchronous(trace)
    parent = slices["parent"].cast(pl.Int64).fill_null(NONE).to_numpy()
    counted = _counted(trace)
    above = _kept_parents(parent, counted, asynchronous)
    name = _names(slices)
    kept, above = _merge_same(name.to_physical().to_numpy(), counted, above)
    at = np.flatnonzero(kept)
    at = at[np.argsort(slices["depth"].to_numpy()[at], kind="stable")]
    local = np.full(slices.height, NONE, np.int64)
    local[at] = np.arange(at.size)
    above = np.where(above[at] == NONE, NONE, local[above[at]])
    duration = slices["duration"].fill_null(0).to_numpy()[at]
    owner = _owners(parent, kept, local)
    own_device = _own_device(trace, owner, at.size)
    memory, unclaimed = _own_memory(trace, owner, at.size)
    in_sync = ~asynchronous[at]
    return Charges(
        id=at,
        name=name.gather(at),
        category=slices["category"].gather(at),
        parent=above,
        cpu=duration,
        self_cpu=(duration - _sum_children(above, duration)) * in_sync,
        device=_subtree(above, own_device),
        self_device=own_device,
        memory={
            **{f"self_{side}": own for side, own in memory.items()},
            **{side: _subtree(above, own) for side, own in memory.items()},
        },
        unclaimed=unclaimed,
    )


def _asynchronous(trace: Trace) -> NDArray[np.bool_]:
    found = np.zeros(trace.slices.height, bool)
    told = trace.op_args.filter(pl.col("asynchronous"))["id"]
    found[told.to_numpy()] = True
    return found


def _counted(trace: Trace) -> NDArray[np.bool_]:
    """Host slices, less those of the recorder itself."""
    host = trace.tracks.filter(pl.col("kind") == "host")["id"]
    slices = trace.slices
    mine = slices["name"].unique()
    texts = mine.cast(pl.String).to_list()
    recorder = mine.filter(pl.Series([names.is_recorder_operator(text) for text in texts], dtype=pl.Boolean))
    counted = slices["track"].is_in(host.implode()) & ~slices["name"].is_in(recorder.implode())
    return counted.to_numpy()


def _kept_parents(
    parent: Ints, counted: NDArray[np.bool_], asynchronous: NDArray[np.bool_]
) -> Ints:
    """The nearest counted ancestor; work that ends on another thread is no parent and no child."""
    around = counted & ~asynchronous
    above = np.full(parent.size, NONE, np.int64)
    at = np.flatnonzero(around)
    above[at] = nearest(parent, around, parent[at])
    return above


def _names(slices: pl.DataFrame) -> pl.Series:
    """Names as torch's tables have them: all profiler steps are one."""
    unique = slices["name"].unique()
    texts = unique.cast(pl.String).to_list()
    steps = [text for text in texts if names.step_number(text) is not None]
    if not steps:
        return slices["name"]
    return slices["name"].cast(pl.String).replace(dict.fromkeys(steps, STEPS_NAME)).cast(pl.Categorical)


def _merge_same(
    name: NDArray[Any], counted: NDArray[np.bool_], above: Ints
) -> tuple[NDArray[np.bool_], Ints]:
    """Drop the only child of a parent that has its name; its children go to the parent."""
    kept, above = counted.copy(), above.copy()
    while True:
        at = np.flatnonzero(kept & (above != NONE))
        children = np.bincount(above[at], minlength=kept.size)
        same = at[(name[at] == name[above[at]]) & (children[above[at]] == 1)]
        if not same.size:
            return kept, above
        kept[same] = False
        rest = np.flatnonzero(kept & (above != NONE))
        above[rest] = nearest(above, kept, above[rest])


def _owners(parent: Ints, kept: NDArray[np.bool_], local: Ints) -> Ints:
    """For each slice: the place of itself or its nearest kept ancestor in the charges, or NONE."""
    every = np.arange(parent.size)
    found = nearest(parent, kept, every)
    return np.where(found == NONE, NONE, local[found])


def _own_device(trace: Trace, owner: Ints, size: int) -> Ints:
    """Device time launched from each operator itself."""
    work = (
        trace.device_args.filter(pl.col("operator").is_not_null())
        .select("id", "operator")
        .join(trace.slices.select("id", "duration"), on="id", how="left")
    )
    return _charged(owner, work["operator"].to_numpy(), work["duration"].fill_null(0).to_numpy(), size)


def _own_memory(
    trace: Trace, owner: Ints, size: int
) -> tuple[dict[str, Ints], pl.DataFrame]:
    records = trace.memory.filter(~pl.col("failed")).select(
        "operator",
        cpu=pl.when(pl.col("device_type").is_in(HOST_TYPES)).then("bytes").otherwise(0).fill_null(0),
        device=pl.when(~pl.col("device_type").is_in(HOST_TYPES)).then("bytes").otherwise(0).fill_null(0),
    )
    inside = records.filter(pl.col("operator").is_not_null())
    where = inside["operator"].to_numpy()
    own = {side: _charged(owner, where, inside[side].to_numpy(), size) for side in ("cpu", "device")}
    return own, records.filter(pl.col("operator").is_null()).select("cpu", "device")


def _charged(owner: Ints, slices: Any, amounts: Any, size: int) -> Ints:
    total = np.zeros(size, np.int64)
    if len(slices):
        place = owner[slices.astype(np.int64)]
        np.add.at(total, place[place != NONE], amounts[place != NONE])
    return total


def _sum_children(parent: Ints, amount: Ints) -> Ints:
    total = np.zeros(amount.size, np.int64)
    has = parent != NONE
    np.add.at(total, parent[has], amount[has])
    return total


def _subtree(parent: Ints, own: Ints) -> Ints:
    """Own amounts with those of all descendants, one level of the tree at a time."""
    level = np.zeros(own.size, np.int64)
    at = np.flatnonzero(parent != NONE)
    above = parent.copy()
    while at.size:
        level[at] += 1
        above[at] = parent[above[at]]
        at = at[above[at] != NONE]
    total = own.astype(np.int64).copy()
    for depth in range(int(level.max()) if level.size else 0, 0, -1):
        here = np.flatnonzero(level == depth)
        np.add.at(total, parent[here], total[here])
    return total


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
