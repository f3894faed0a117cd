"""Which call launched which device work, by the correlation that both carry.

A correlation names one call, as a rule. Files of several ranks that were merged use each of them
once a rank, and a recorder that was started again may count anew. There the rank, or the window of
time in which each number is used once, tells the calls apart; where neither does, nothing is
linked: no link is better than a wrong one.
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
from selftime.ingest.links.arrange import Arranged
from selftime.nesting import NONE

_NO_LINK: Final = (NO_INT, 0, -1)
"""Correlations that stand for none: they never join each other."""
_SAME: Final = 0.5
"""Of the numbers of two windows, or of the smaller of them, at least so many are used in both: a
recorder that counts anew uses them all again; a number that is used twice by mistake is one."""
_ALONE: Final = "launches that share a correlation: not linked"
_OF_SEVERAL: Final = (
    "launches of several processes that share a correlation: not linked, give one file per rank"
)


@dataclass(slots=True)
class _Ends:
    """Both ends of the links: calls and device work, by place, and by what joins them."""

    calls: SignedInts
    """The place of each call among the slices."""
    wanted: SignedInts
    """What each call is known by; `NO_INT` if by nothing."""
    work: SignedInts
    asked: SignedInts
    """What each row of device work was launched by, as the calls are known."""


def launches(
    slices: Arranged, calls: Columns, device: Columns, threads: list[tuple[str, str]]
) -> tuple[SignedInts, list[Tally]]:
    """The launch of each row of device work, as its place among the slices or NONE; what is odd.

    `threads` holds the process and the thread of each thread's number, as written.
    """
    ends = _ends(slices, calls, device, threads)
    ids, first, counts = np.unique(ends.wanted, return_index=True, return_counts=True)
    sound = (ids != NO_INT) & (counts == 1)
    launch = _looked_up(ids[sound], ends.calls[first[sound]], ends.asked)
    odd: list[Tally] = []
    shared = np.isin(ends.wanted, ids[(ids != NO_INT) & (counts > 1)])
    if shared.any():
        alone = len(_processes(slices, ends.calls[shared], threads)) == 1
        again = _by_window(slices, ends) if alone else None
        if again is None:
            odd.append(Tally(_ALONE if alone else _OF_SEVERAL, int(shared.sum())))
        else:
            launch = np.where(launch == NONE, again, launch)
    launch[~slices.is_kind("device")[ends.work]] = NONE
    return launch, odd


def _looked_up(ids: SignedInts, values: SignedInts, asked: SignedInts) -> SignedInts:
    """The value of each id that is asked for, or NONE; ids ascend."""
    if not ids.size:
        return np.full(asked.size, NONE, np.int64)
    place = np.minimum(np.searchsorted(ids, asked), ids.size - 1)
    return np.where(ids[place] == asked, values[place], NONE)


def _ends(
    slices: Arranged, calls: Columns, device: Columns, threads: list[tuple[str, str]]
) -> _Ends:
    """What calls are known by and work asks for: the correlation, within its rank if that is told.

    The rank stands in the name of the process, where a tool that merged files wrote it.
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
    return _Ends(at[0], wanted, at[1], asked)


def _processes(slices: Arranged, at: SignedInts, threads: list[tuple[str, str]]) -> set[str]:
    """The processes of some slices."""
    return {threads[number][0] for number in np.unique(slices.thread[at]).tolist()}


def _by_window(slices: Arranged, ends: _Ends) -> SignedInts | None:
    """Launches by correlation within the windows of a recorder that counted anew, else None.

    Numbers that come again by chance, or of ranks that run at the same time, make many windows of
    few calls; a recorder that was started again, few of many. What runs across the border of two
    windows is joined to nothing.
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
    launch = _looked_up(key[: rows.size][order], calls[order], key[rows.size :])
    launch[~within] = NONE
    held = np.bincount(own[launch != NONE], minlength=count)
    return launch if held.all() else None


def _windows(ids: list[int]) -> SignedInts:
    """The window of each call, in order of time: a new one begins with a number that is in it."""
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
    """Whether each window uses the numbers of the one before it again."""
    parts = np.split(ids, np.searchsorted(window, np.arange(1, count)))
    return all(
        np.intersect1d(one, other, assume_unique=True).size >= _SAME * min(one.size, other.size)
        for one, other in pairwise(parts)
    )
