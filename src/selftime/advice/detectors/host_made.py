"""Tensors that the program makes on the host from nothing but numbers, and copies to the device.

A trace does not say which tensor an operator takes. What tells are the operators right before a
copy: without a break they work on the host, in the same function, one of them makes a constant, and
from there on the sizes fit: each takes what the one before gives, as far as sizes tell.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_steps import is_during, regions_of, steps_counted
from selftime.advice.detectors.operators import outermost_operators, sizes
from selftime.advice.detectors.places import Place, places
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.device.work import device_work
from selftime.analysis.sites import sites
from selftime.analysis.slice_arguments import with_arguments
from selftime.intervals import union
from selftime.names.handwritten import is_view
from selftime.names.tensors import makes_constant, makes_random, moves_or_converts
from selftime.nesting import NONE
from selftime.trace import Trace

MOST_BEFORE: Final = 16
"""Operators that are looked at before a copy: a mask or a table of positions takes fewer."""

LOOKED_AT: Final = 3
"""Copies of a line that are looked at; they stand for all of it."""

IN_STEPS: Final = 0.5
"""A line that copies in no more of the steps does so now and then."""


@dataclass(frozen=True, slots=True)
class HostMade:
    """The copies of one line, each with the operators that made what it copies."""

    place: Place
    """A row is a copy's operator; it begins where the first of its operators does."""
    maker: str
    """The operator that makes the constant."""
    operators: int
    """How many operators make one, without the copy."""
    copies: pl.Series
    """Slices of the copies on the device."""


@cached_per_trace
def host_made(trace: Trace) -> tuple[HostMade, ...]:
    """Lines that make tensors on the host and copy them in most of the steps."""
    uploads = _uploads(trace)
    if not uploads.height:
        return ()
    ops = _in_order(trace)
    found = []
    for place in places(trace, ops.filter(pl.col("id").is_in(uploads["operator"].implode()))):
        if place.slices.height > IN_STEPS * steps_counted(trace):
            made = _made(trace, ops, place, uploads)
            found.extend([made] if made else [])
    return tuple(found)


def _uploads(trace: Trace) -> pl.DataFrame:
    """Copies to the device that an outermost `to` or `copy_` asked for: copy, operator."""
    work = device_work(trace).filter(
        (pl.col("kind") == "memcpy") & pl.col("launched").is_not_null()
    )
    text = work["name"].cast(pl.String).to_list()
    up = pl.Series([names.copy_of(name).direction == "HtoD" for name in text], dtype=pl.Boolean)
    work = work.filter(up)
    ops = outermost_operators(trace)
    if not ops.height:
        return pl.DataFrame(schema={"copy": pl.UInt32, "operator": pl.UInt32})
    asked = work.select(copy="id").with_columns(operator=_around(trace, ops, work)).drop_nulls()
    name = trace.slices["name"].gather(asked["operator"]).cast(pl.String).to_list()
    return asked.filter(pl.Series([moves_or_converts(one) for one in name], dtype=pl.Boolean))


def _around(trace: Trace, ops: pl.DataFrame, work: pl.DataFrame) -> pl.Series:
    """The outermost operator that was open on the thread of each launch; null if there is none."""
    track = trace.slices["track"].gather(work["operator"]).cast(pl.Int64).fill_null(NONE).to_numpy()
    ordered = ops.sort("track", "start")
    begin, end = ordered["start"].to_numpy(), (ordered["start"] + ordered["duration"]).to_numpy()
    when = work["launched"].to_numpy()
    last = max(int(when.max(initial=0)), int(begin.max(initial=0))) + 1
    keys = ordered["track"].cast(pl.Int64).to_numpy() * last + begin
    at = np.searchsorted(keys, track * last + when, side="right") - 1
    place = np.maximum(at, 0)
    open_ = (at >= 0) & (track != NONE)
    open_ &= (ordered["track"].to_numpy()[place] == track) & (when < end[place])
    return ordered["id"].gather(pl.Series(place)).set(pl.Series(~open_), None)


def _in_order(trace: Trace) -> pl.DataFrame:
    """Outermost operators thread by thread.

    An operator `breaks` a chain if device work came of it, or a loader or an optimizer ran it.
    """
    ops = outermost_operators(trace).sort("track", "start", "id")
    begin, end = ops["start"].to_numpy(), (ops["start"] + ops["duration"]).to_numpy()
    launched = np.sort(device_work(trace)["launched"].drop_nulls().to_numpy())
    ran = np.searchsorted(launched, end) > np.searchsorted(launched, begin)
    placed = with_arguments(trace, "op_args", ops, "input_shapes")
    placed = placed.with_columns(pl.col("input_shapes").cast(pl.String))
    loads = is_during(ops, regions_of(trace, names.is_data_loading, names.is_optimizer))
    ends = pl.Series(ran, dtype=pl.Boolean) | loads
    return placed.with_columns(breaks=ends).with_row_index("row")


def _made(trace: Trace, ops: pl.DataFrame, place: Place, uploads: pl.DataFrame) -> HostMade | None:
    chains = [_chain(trace, ops, row) for row in place.slices["row"].head(LOOKED_AT).to_list()]
    known = [chain for chain in chains if chain is not None]
    if 2 * len(known) <= len(chains):
        return None
    maker, length = known[0]
    first = (place.slices["row"].cast(pl.Int64) - length).clip(0)
    end = (place.slices["start"] + place.slices["duration"]).to_numpy()
    begin = np.minimum(ops["start"].gather(first).to_numpy(), place.slices["start"].to_numpy())
    begun = place.slices.select("id", "name", "track", start=begin, duration=end - begin)
    times = union(begin, end)
    host = ops.filter(is_during(ops, times))["id"]
    own = uploads.filter(pl.col("operator").is_in(host.implode()))["copy"]
    return HostMade(Place(place.where, begun), maker, length, own)


def _chain(trace: Trace, ops: pl.DataFrame, row: int) -> tuple[str, int] | None:
    """What made the tensor that the operator of a row copies, and how many operators before."""
    run = ops.slice(max(row - MOST_BEFORE, 0), min(row, MOST_BEFORE) + 1)
    placed = sites(trace, run["id"]).select("file", "line", "function")
    told = pl.concat([run, placed], how="horizontal").reverse()
    copy = told.row(0, named=True)
    wanted = next(iter(sizes(copy["input_shapes"])), None)
    passed = False
    for back, op in enumerate(told.slice(1).iter_rows(named=True), 1):
        same = all(op[key] == copy[key] for key in ("track", "file", "function"))
        name = str(op["name"])
        if not same or op["breaks"] or makes_random(name):
            return None
        if makes_constant(name):
            beside = op["line"] is not None and op["line"] == copy["line"]
            fits = passed or _fits_constant(trace, op["id"], wanted, unknown=beside)
            return (name, back) if fits else None
        if is_view(name):
            passed = passed or back > 1
            continue
        if not passed and not _fits(op["input_shapes"], wanted):
            return None
        passed = True
    return None


def _fits(shapes: str | None, wanted: tuple[int, ...] | None) -> bool:
    """Whether tensors of these shapes give one of the wanted shape, element by element."""
    if shapes is None or wanted is None:
        return False
    try:
        given = np.broadcast_shapes(*(shape for shape in sizes(shapes) if shape))
    except ValueError:
        return False
    return bool(np.prod(given) == np.prod(wanted))


def _fits_constant(
    trace: Trace, maker: int, wanted: tuple[int, ...] | None, *, unknown: bool
) -> bool:
    """Whether what was made right before the copy has as many elements; `unknown` if none tells."""
    told = trace.op_args.filter(pl.col("id") == maker)["concrete_inputs"].cast(pl.String)
    made = _elements(told[0] if told.len() else None)
    return unknown if wanted is None or not made else int(np.prod(wanted)) in made


def _elements(concrete_inputs: str | None) -> set[int]:
    """How many elements a maker of constants can have made, from its arguments.

    >>> sorted(_elements('["[2, 3]", "6"]')), sorted(_elements('["4", "9", ""]'))
    ([6], [4, 5, 16])
    """
    try:
        told: list[Any] = json.loads(concrete_inputs or "[]")
        first, second = [*told, "", ""][:2]
        if first.startswith("["):
            return {int(np.prod(json.loads(first)))}
        begin = int(first)
    except (ValueError, TypeError, AttributeError):
        return set()
    end = {int(second) - begin} if second.isdigit() else set()
    return {begin, begin * begin} | end
