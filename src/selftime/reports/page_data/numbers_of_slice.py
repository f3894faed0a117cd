"""Finds the findings and rows of the account that a slice is a part of, directly or by others."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from selftime.analysis.slice_arguments import parent_of_every_slice
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE
from selftime.reports.page_data.number_slices import DescribedNumber
from selftime.trace import Trace

_MAX_INDIRECT: Final = 3
"""Largest number of findings, and of rows, that are told of a slice that is no part of them."""


@dataclass(frozen=True, slots=True)
class _SlicesAround:
    """A slice with those that it lies in, that launched it, that it contains and launched."""

    own: int
    enclosing: Ints
    launching: Ints
    contained: Ints
    launched: Ints


def numbers_of_slice(
    trace: Trace, numbers: Sequence[DescribedNumber], slice_id: int
) -> list[dict[str, Any]]:
    """Returns the findings and rows that a slice is a part of as JSON objects `NumberOfSlice`.

    `relation` says how: `own` if it is one of the slices, `inside` if it lies in one, `launched` if
    one launched it, `contains` or `launches` if that is so of `count` of them. A finding is told
    once, with what its fix changes first.
    """
    around = _slices_around(trace, slice_id)
    told: dict[str, dict[str, Any]] = {}
    for number in numbers:
        relation, count = _relation(number.slices, around)
        owner = ":".join(number.key.split(":")[:2])
        if relation is not None and (owner not in told or relation == "own"):
            known = told.get(owner)
            if known is None or known["relation"] != "own":
                told[owner] = {**number.to_dict(), "relation": relation, "count": count}
    findings = [one for one in told.values() if one["kind"] != "row"]
    rows = [one for one in told.values() if one["kind"] == "row"]
    return [*_direct_or_first(findings), *_direct_or_first(rows)]


def _direct_or_first(told: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns those that the slice itself is one of; if there are none, the first others."""
    every = list(told)
    return [one for one in every if one["relation"] == "own"] or every[:_MAX_INDIRECT]


def _relation(ids: Ints, around: _SlicesAround) -> tuple[str | None, int]:
    """Returns how a slice belongs to some slices, and to how many; None if it does not."""
    if _count_in(np.array([around.own]), ids):
        return "own", 1
    others = (
        ("inside", around.enclosing),
        ("launched", around.launching),
        ("contains", around.contained),
        ("launches", around.launched),
    )
    found = ((relation, _count_in(some, ids)) for relation, some in others)
    return next(((relation, count) for relation, count in found if count), (None, 0))


def _count_in(some: Ints, ids: Ints) -> int:
    """Returns how many of `some` are in `ids`, which are ascending."""
    if not ids.size:
        return 0
    at = np.minimum(np.searchsorted(ids, some), ids.size - 1)
    return int((ids[at] == some).sum())


def _slices_around(trace: Trace, slice_id: int) -> _SlicesAround:
    slices = trace.slices
    own = slices.row(slice_id, named=True)
    launch = own["launch"]
    launching = [] if launch is None else [launch, *_ancestors(trace, int(launch))]
    thread = trace.tracks["thread"]
    tracks = trace.tracks.filter(thread == thread[own["track"]])["id"]
    enclosing, contained = _ancestors(trace, slice_id), np.zeros(0, np.int64)
    if own["duration"] is not None and launch is None:
        end = own["start"] + own["duration"]
        inner = slices.select(
            pl.col("id").filter(
                pl.col("track").is_in(tracks.implode()),
                pl.col("start") >= own["start"],
                pl.col("start") + pl.col("duration").fill_null(0) <= end,
            )
        )
        inside = inner["id"].cast(pl.Int64).to_numpy()
        contained = np.setdiff1d(inside, [slice_id, *enclosing])
    calls = pl.Series(np.append(contained, slice_id)).cast(pl.UInt32)
    launched = slices.select(pl.col("id").filter(pl.col("launch").is_in(calls.implode())))["id"]
    return _SlicesAround(
        slice_id,
        np.asarray(enclosing, np.int64),
        np.asarray(launching, np.int64),
        contained,
        launched.cast(pl.Int64).to_numpy(),
    )


def _ancestors(trace: Trace, slice_id: int) -> list[int]:
    """Returns the slices around a slice on its track, from the innermost."""
    parent, found = parent_of_every_slice(trace), list[int]()
    at = int(parent[slice_id])
    while at != NO_SLICE:
        found.append(at)
        at = int(parent[at])
    return found
