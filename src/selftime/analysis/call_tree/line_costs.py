"""What each line of the source costs: all operators, calls and frames, by the line they are of."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.call_tree.costs import costs, launched
from selftime.analysis.call_tree.passes import BACKWARD, FORWARD, RECOMPUTE, Passes, passes_of
from selftime.analysis.operator_dtypes import computes_in
from selftime.analysis.sites import placed
from selftime.analysis.slice_filters import filter_by_name, is_on, slices_on
from selftime.analysis.steps.category_times import covered_time
from selftime.analysis.steps.steady_steps import assessed_steps, counted_windows, is_within
from selftime.arrays import Flags, Ints
from selftime.nesting import NONE
from selftime.trace import Trace


def line_costs(
    trace: Trace, *, dtype: str = "", within: str = "", counted: bool = False
) -> pl.DataFrame:
    """One row a line and one for elsewhere, whose columns and options are those of `lines`."""
    tree = passes_of(trace)
    ids = pl.Series("id", tree.entries.id, dtype=pl.UInt32)
    chosen = _chosen(trace, ids, dtype=dtype, within=within, counted=counted)
    whole = not (dtype or within)
    is_frame = is_on(trace, "python")[tree.entries.id]
    amounts, lost = _amounts(trace, tree)
    if counted:
        lost = _lost_in_steps(trace, tree)
    found = placed(trace, ids)
    key = _keys(found.table, found.number)
    outer = _outermost(tree, key)
    for kind in ("device_time", "self_cpu_time"):
        total = tree.total(amounts[kind] if chosen.all() else np.where(chosen, amounts[kind], 0))
        amounts[f"total_{kind.removeprefix('self_')}"] = np.where(outer, total, 0)
    rows = _rows(trace, tree, chosen, _Keys(key, tree.running, is_frame), amounts)
    if whole:
        rows = _with_lost(rows, lost)
    return _shown(rows, found.table, trace)


def _chosen(trace: Trace, ids: pl.Series, *, dtype: str, within: str, counted: bool) -> Flags:
    chosen = np.ones(ids.len(), bool)
    if within:
        chosen &= _begun_inside(trace, ids, within)
    if dtype:
        chosen &= computes_in(trace, ids, dtype)
    if counted:
        starts = trace.slices["start"].gather(ids).to_numpy()
        chosen &= is_within(starts, counted_windows(trace))
    return chosen


def _begun_inside(trace: Trace, ids: pl.Series, prefix: str) -> Flags:
    """Which slices began while one of that name was open on their thread."""
    thread = trace.tracks["thread"].gather(trace.slices["track"].gather(ids)).to_numpy()
    starts = trace.slices["start"].gather(ids).to_numpy()
    around = filter_by_name(slices_on(trace, "host"), lambda name: name.startswith(prefix))
    whose = trace.tracks["thread"].gather(around["track"])
    found = np.zeros(ids.len(), bool)
    for number in whose.unique().to_list():
        begin, end = covered_time(around.filter(whose == number))
        mine = np.flatnonzero(thread == number)
        found[mine] = is_within(starts[mine], pl.DataFrame({"start": begin, "end": end}))
    return found


def _amounts(trace: Trace, tree: Passes) -> tuple[dict[str, Ints], dict[str, int]]:
    """What each entry costs itself, by column; and what no entry is charged with."""
    entries = tree.entries
    cost = costs(trace, entries, launched(trace, entries))
    amounts = {
        "device_time": cost.device,
        "self_cpu_time": entries.self_time,
        "waits": cost.waits,
        "device_slices": cost.device_slices,
        "cpu_memory": cost.cpu_memory,
        "device_memory": cost.device_memory,
    }
    lost = {"device_time": cost.lost["device"], **cost.lost}
    return amounts, {name: much for name, much in lost.items() if name in amounts}


def _lost_in_steps(trace: Trace, tree: Passes) -> dict[str, int]:
    """Of what no entry is charged with the device work that began in the steps that count."""
    work = launched(trace, tree.entries)
    ids = work.id[work.owner == NONE]
    inside = is_within(trace.slices["start"].to_numpy()[ids], counted_windows(trace))
    duration = work.duration[work.owner == NONE]
    return {"device_time": int(duration[inside].sum()), "device_slices": int(inside.sum())}


def _keys(places: pl.DataFrame, number: Ints) -> Ints:
    """For each entry the place of its line; NONE where no file is known: it counts elsewhere."""
    unknown = places["file"].is_null().to_numpy()
    line = np.append(np.where(unknown, NONE, np.arange(places.height)), NONE)
    return np.asarray(line[number])


def _outermost(tree: Passes, key: Ints) -> Flags:
    """Entries that belong to no other of their line: in totals a line counts once.

    Most entries are of the line of their parent. So only the others, the heads, are asked, and each
    climbs from head to head.
    """
    head = np.arange(key.size)
    for level in tree.levels[1:]:
        same = level[key[level] == key[tree.parent[level]]]
        head[same] = head[tree.parent[same]]
    outer = head == np.arange(key.size)
    at = np.flatnonzero(outer & (tree.parent != NONE))
    above = head[tree.parent[at]]
    while at.size:
        again = key[above] == key[at]
        outer[at[again]] = False
        at, above = at[~again], tree.parent[above[~again]]
        at, above = at[above != NONE], head[above[above != NONE]]
    return np.asarray(outer)


class _Keys(NamedTuple):
    """What the amounts of an entry are told apart by; arrays of shape (n,)."""

    line: Ints
    """The place that stands for it, or NONE."""
    running: NDArray[np.int8]
    """The pass."""
    is_frame: Flags


def _rows(
    trace: Trace, tree: Passes, chosen: Flags, keys: _Keys, amounts: dict[str, Ints]
) -> pl.DataFrame:
    """One row a line, by the place that stands for it.

    Amounts are added up by line, pass and kind first: there are few of these.
    """
    nothing = [name for name, much in amounts.items() if not much.any()]
    events = pl.DataFrame(
        {
            "key": ((keys.line - NONE) * _PASSES + keys.running) * 2 + keys.is_frame,
            "first": trace.slices["start"].to_numpy()[tree.entries.id],
            "since_batch": _since_batch(trace, tree.entries.id),
            **{name: much for name, much in amounts.items() if name not in nothing},
        }
    )
    if not chosen.all():
        events = events.filter(pl.Series(chosen))
    times, key = pl.col("first", "since_batch").min(), pl.col("key")
    parts = (
        events.group_by("key")
        .agg(times, pl.exclude("key", "first", "since_batch").sum(), count=pl.len())
        .with_columns(pl.lit(0, pl.Int64).alias(name) for name in nothing)
        .with_columns(
            at=key // (2 * _PASSES) + NONE, running=key // 2 % _PASSES, is_frame=key % 2 == 1
        )
    )
    return parts.group_by("at").agg(times, pl.col(*amounts).sum(), *_of_parts())


_PASSES: Final = max(FORWARD, BACKWARD, RECOMPUTE) + 1


def _of_parts() -> Iterator[pl.Expr]:
    """The amounts of a line in one pass, in Python, and outside of it."""
    is_frame = pl.col("is_frame")
    for name, code in (("backward", BACKWARD), ("recompute", RECOMPUTE)):
        for kind, own in (("device_time", "device_time"), ("cpu_time", "self_cpu_time")):
            yield pl.col(own).filter(pl.col("running") == code).sum().alias(f"{name}_{kind}")
    yield pl.col("self_cpu_time").filter(is_frame).sum().alias("python_time")
    yield pl.col("count").filter(~is_frame).sum().cast(pl.Int64).alias("operators")


def _with_lost(rows: pl.DataFrame, lost: dict[str, int]) -> pl.DataFrame:
    """With what no line is charged with in the row of elsewhere."""
    if not any(lost.values()):
        return rows
    more = pl.DataFrame({"at": NONE, **lost}, schema=dict.fromkeys(["at", *lost], pl.Int64))
    rows = pl.concat([rows, more], how="diagonal")
    times = pl.col("first", "since_batch").min()
    return rows.group_by("at").agg(times, pl.exclude("at", "first", "since_batch").sum())


def _shown(rows: pl.DataFrame, places: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """The declared columns; what is not known is null."""
    known = pl.col("at") != NONE
    place = rows.select(pl.when(known).then("at").cast(pl.UInt32)).to_series()
    rows = rows.with_columns(places.select(pl.all().gather(place)))
    unknown: dict[str, Any] = {
        name: pl.when(known).then(name) for name in ("total_device_time", "total_cpu_time")
    }
    if not trace.memory.height:
        unknown |= {"cpu_memory": None, "device_memory": None}
    rows = rows.with_columns(**unknown)
    return rows.drop("at")


def _since_batch(trace: Trace, ids: Ints) -> pl.Series:
    """Time from the last begin of data loading to each slice; from the last step without loading.

    A step that ends with the optimizer begins with the end of the loop's body: the program's own
    begin is where it takes a batch.
    """
    loading = filter_by_name(slices_on(trace, "host"), names.is_data_loading)["start"]
    begins = (loading if loading.len() else assessed_steps(trace)["start"]).sort().to_numpy()
    if not begins.size:
        return pl.Series(dtype=pl.Int64).extend_constant(None, ids.size)
    start = trace.slices["start"].to_numpy()
    at = np.searchsorted(begins, start, side="right") - 1  # of slices in order of their start
    since = np.where(at < 0, NONE, start - begins[at])[ids]
    early = since == NONE
    return pl.Series(since).set(pl.Series(early), None) if early.any() else pl.Series(since)
