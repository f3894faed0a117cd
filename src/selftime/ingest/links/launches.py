"""Link device work to the call that launched it, by the correlation id that both carry.

Normally a correlation names one call. Merged files of several ranks use each correlation once per
rank, and a restarted recorder may count from the start again. There the rank, or the time window in
which each id occurs once, distinguishes the calls; where neither does, nothing is linked: no link
is better than a wrong one.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from selftime import names
from selftime.arrays import SignedInts
from selftime.ingest.damage.faults import Tally
from selftime.ingest.events.columns import Columns
from selftime.ingest.events.event import NO_INT
from selftime.ingest.links.ordering import OrderedSlices
from selftime.nesting import NONE

_NO_LINK: Final = (NO_INT, 0, -1)
"""Correlations that mean "none": they never link rows."""
_LEAST_SHARED: Final = 0.5
"""The least share of the smaller window's ids that also occur in the other window: a restarted
recorder reuses all ids, a mistaken duplicate is a single one."""
_SHARED: Final = "launches that share a correlation: not linked"
_SHARED_BY_PROCESSES: Final = (
    "launches of several processes that share a correlation: not linked, give one file per rank"
)


@dataclass(slots=True)
class _LinkEnds:
    """Both ends of the links, calls and device work: their slices, and the keys that link them."""

    calls: SignedInts
    """The slice index of each call."""
    wanted: SignedInts
    """The key of each call; `NO_INT` if it has none."""
    work: SignedInts
    asked: SignedInts
    """The key of the call that launched each row of device work."""


def find_launches(
    slices: OrderedSlices, calls: Columns, device: Columns, threads: list[tuple[str, str]]
) -> tuple[SignedInts, list[Tally]]:
    """Returns the slice index of each device row's launch, or NONE, and the oddities found.

    `threads` holds the (process, thread) of each thread's number, as written.
    """
    ends = _link_ends(slices, calls, device, threads)
    ids, first, counts = np.unique(ends.wanted, return_index=True, return_counts=True)
    sound = (ids != NO_INT) & (counts == 1)
    launch = _values_of(ids[sound], ends.calls[first[sound]], ends.asked)
    odd: list[Tally] = []
    shared = np.isin(ends.wanted, ids[(ids != NO_INT) & (counts > 1)])
    if shared.any():
        single_process = len(_processes(slices, ends.calls[shared], threads)) == 1
        again = _by_window(slices, ends) if single_process else None
        if again is None:
            odd.append(
                Tally(_SHARED if single_process else _SHARED_BY_PROCESSES, int(shared.sum()))
            )
        else:
            launch = np.where(launch == NONE, again, launch)
    launch[~slices.is_kind("device")[ends.work]] = NONE
    return launch, odd


def _values_of(ids: SignedInts, values: SignedInts, asked: SignedInts) -> SignedInts:
    """Returns the value of each asked id, or NONE; `ids` ascend."""
    if not ids.size:
        return np.full(asked.size, NONE, np.int64)
    place = np.minimum(np.searchsorted(ids, asked), ids.size - 1)
    return np.where(ids[place] == asked, values[place], NONE)


def _link_ends(
    slices: OrderedSlices, calls: Columns, device: Columns, threads: list[tuple[str, str]]
) -> _LinkEnds:
    """Returns calls and device work with their keys: the correlation, per rank if ranks are known.

    The rank is in the name of the process, if a tool that merged files wrote it there.
    """
    at = slices.place[calls["row"]], slices.place[device["row"]]
    wanted, asked = (
        np.where(np.isin(group["correlation"], _NO_LINK), NO_INT, group["correlation"])
        for group in (calls, device)
    )
    ranks = [names.rank_of_process(process) for process, _ in threads]
    told = {rank: code for code, rank in enumerate(dict.fromkeys(ranks))}
    if len(told) > 1:
        rank = np.array([told[rank] for rank in ranks], np.int64)[slices.thread]
        ids, code = np.unique(np.concatenate([wanted, asked]), return_inverse=True)
        within = code * len(told) + rank[np.concatenate(at)]
        within[ids[code] == NO_INT] = NO_INT
        wanted, asked = within[: wanted.size], within[wanted.size :]
    return _LinkEnds(at[0], wanted, at[1], asked)


def _processes(slices: OrderedSlices, at: SignedInts, threads: list[tuple[str, str]]) -> set[str]:
    """Returns the processes of the slices at these indices."""
    return {threads[number][0] for number in np.unique(slices.thread[at]).tolist()}


def _by_window(slices: OrderedSlices, ends: _LinkEnds) -> SignedInts | None:
    """Returns launches by correlation within windows of a restarted recorder, else None.

    Accidental duplicates, or ids of ranks that run concurrently, give many windows of few calls; a
    restarted recorder gives few windows of many calls. Device work that spans the border of two
    windows is not linked.
    """
    rows = np.flatnonzero(ends.wanted != NO_INT)
    rows = rows[np.argsort(slices.start[ends.calls[rows]], kind="stable")]
    calls, wanted = ends.calls[rows], ends.wanted[rows]
    window = _windows(wanted.tolist())
    count = int(window[-1]) + 1
    if count * count > rows.size or not _are_alike(wanted, window, count):
        return None
    begins = slices.start[calls][np.searchsorted(window, np.arange(1, count))]
    own = np.searchsorted(begins, slices.start[ends.work], side="right")
    within = own == np.searchsorted(begins, slices.end[ends.work], side="left")
    ids, code = np.unique(np.concatenate([wanted, ends.asked]), return_inverse=True)
    key = code + np.concatenate([window, own]) * ids.size
    order = np.argsort(key[: rows.size])
    launch = _values_of(key[: rows.size][order], calls[order], key[rows.size :])
    launch[~within] = NONE
    launches_per_window = np.bincount(own[launch != NONE], minlength=count)
    return launch if launches_per_window.all() else None


def _windows(ids: list[int]) -> SignedInts:
    """Returns the window of each call in order of time; a repeated id begins a new window."""
    seen: set[int] = set()
    window, number = np.empty(len(ids), np.int64), 0
    for at, one in enumerate(ids):
        if one in seen:
            seen.clear()
            number += 1
        seen.add(one)
        window[at] = number
    return window


def _are_alike(ids: SignedInts, window: SignedInts, count: int) -> bool:
    """Returns whether each window reuses the ids of the one before it."""
    parts = np.split(ids, np.searchsorted(window, np.arange(1, count)))
    return all(
        np.intersect1d(one, other, assume_unique=True).size
        >= _LEAST_SHARED * min(one.size, other.size)
        for one, other in pairwise(parts)
    )
