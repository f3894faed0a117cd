"""Links kernels and copies to the runtime calls that launched them, by correlation id.

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
from selftime.array_types import SignedInts
from selftime.ingest.damage.file_faults import FaultCount
from selftime.ingest.events.columns import Columns
from selftime.ingest.events.event_types import NO_INT
from selftime.ingest.links.slice_ordering import OrderedSlices
from selftime.nesting import NO_SLICE

_ABSENT_CORRELATION_IDS: Final = (NO_INT, 0, -1)
"""Values of correlation ids that mean that there is none."""
_MIN_SHARE_OF_IDS_REUSED_BY_RESTART: Final = 0.5
"""Smallest share (0 to 1) of correlation ids used both before and after a point at which this
counts as a restart of the recorder.
"""
_LAUNCHES_SHARE_CORRELATION_FAULT: Final = "launches that share a correlation id: not linked"
_PROCESSES_SHARE_CORRELATION_FAULT: Final = (
    "launches of several processes that share a correlation id: not linked, give one file per rank"
)


@dataclass(slots=True)
class _CallsAndDeviceWork:
    """The slice indices and correlation ids of runtime calls and of device work."""

    call_slices: SignedInts
    """The slice index of each call."""
    call_correlation_ids: SignedInts
    """The correlation id of each call, made unique across ranks if ranks are known; `NO_INT` if the
    call has none.
    """
    device_slices: SignedInts
    """The slice index of each slice of device work."""
    device_correlation_ids: SignedInts
    """The correlation id of each slice of device work, which is the id of the call that launched
    it.
    """


def find_launches_of_device_work(
    slices: OrderedSlices,
    runtime_calls: Columns,
    device_work: Columns,
    threads: list[tuple[str, str]],
) -> tuple[SignedInts, list[FaultCount]]:
    """Returns each device slice's launch as a slice index (-1 if unknown), and faults found.

    `threads` holds the (process, thread) of each thread's number, as written.
    """
    calls_and_work = _calls_and_device_work(slices, runtime_calls, device_work, threads)
    ids, first, counts = np.unique(
        calls_and_work.call_correlation_ids, return_index=True, return_counts=True
    )
    sound = (ids != NO_INT) & (counts == 1)
    launch = _values_of_requested_ids(
        ids[sound], calls_and_work.call_slices[first[sound]], calls_and_work.device_correlation_ids
    )
    odd: list[FaultCount] = []
    shared = np.isin(calls_and_work.call_correlation_ids, ids[(ids != NO_INT) & (counts > 1)])
    if shared.any():
        single_process = (
            len(_processes_of_slices(slices, calls_and_work.call_slices[shared], threads)) == 1
        )
        again = _launches_by_recorder_window(slices, calls_and_work) if single_process else None
        if again is None:
            odd.append(
                FaultCount(
                    _LAUNCHES_SHARE_CORRELATION_FAULT
                    if single_process
                    else _PROCESSES_SHARE_CORRELATION_FAULT,
                    int(shared.sum()),
                )
            )
        else:
            launch = np.where(launch == NO_SLICE, again, launch)
    launch[~slices.is_on_track_kind("device")[calls_and_work.device_slices]] = NO_SLICE
    return launch, odd


def _values_of_requested_ids(
    ids: SignedInts, values: SignedInts, requested_ids: SignedInts
) -> SignedInts:
    """Looks up the value of each requested id in the sorted `ids`; -1 for an id not found."""
    if not ids.size:
        return np.full(requested_ids.size, NO_SLICE, np.int64)
    place = np.minimum(np.searchsorted(ids, requested_ids), ids.size - 1)
    return np.where(ids[place] == requested_ids, values[place], NO_SLICE)


def _calls_and_device_work(
    slices: OrderedSlices,
    runtime_calls: Columns,
    device_work: Columns,
    threads: list[tuple[str, str]],
) -> _CallsAndDeviceWork:
    """Returns runtime calls and device work with correlation ids that are unique across ranks.

    The rank is in the name of the process, if a tool that merged files wrote it there.
    """
    at = (
        slices.sorted_index_by_file_row[runtime_calls["row"]],
        slices.sorted_index_by_file_row[device_work["row"]],
    )
    wanted, asked = (
        np.where(
            np.isin(group["correlation"], _ABSENT_CORRELATION_IDS), NO_INT, group["correlation"]
        )
        for group in (runtime_calls, device_work)
    )
    ranks = [names.rank_of_process(process) for process, _ in threads]
    code_of_rank = {rank: code for code, rank in enumerate(dict.fromkeys(ranks))}
    if len(code_of_rank) > 1:
        rank = np.array([code_of_rank[rank] for rank in ranks], np.int64)[slices.thread]
        ids, code = np.unique(np.concatenate([wanted, asked]), return_inverse=True)
        within = code * len(code_of_rank) + rank[np.concatenate(at)]
        within[ids[code] == NO_INT] = NO_INT
        wanted, asked = within[: wanted.size], within[wanted.size :]
    return _CallsAndDeviceWork(at[0], wanted, at[1], asked)


def _processes_of_slices(
    slices: OrderedSlices, slice_indices: SignedInts, threads: list[tuple[str, str]]
) -> set[str]:
    """Returns the ids of the processes of the slices with these indices."""
    return {threads[number][0] for number in np.unique(slices.thread[slice_indices]).tolist()}


def _launches_by_recorder_window(
    slices: OrderedSlices, calls_and_work: _CallsAndDeviceWork
) -> SignedInts | None:
    """Returns each device slice's launch if a restarted recorder reused ids, else None.

    Accidental duplicates, or ids of ranks that run concurrently, give many windows of few calls; a
    restarted recorder gives few windows of many calls. Device work that spans the border of two
    windows is not linked.
    """
    rows = np.flatnonzero(calls_and_work.call_correlation_ids != NO_INT)
    rows = rows[np.argsort(slices.start[calls_and_work.call_slices[rows]], kind="stable")]
    calls, wanted = calls_and_work.call_slices[rows], calls_and_work.call_correlation_ids[rows]
    window = _recorder_restarts_before_each_call(wanted.tolist())
    count = int(window[-1]) + 1
    if count * count > rows.size or not _does_each_window_reuse_ids(wanted, window, count):
        return None
    begins = slices.start[calls][np.searchsorted(window, np.arange(1, count))]
    own = np.searchsorted(begins, slices.start[calls_and_work.device_slices], side="right")
    within = own == np.searchsorted(begins, slices.end[calls_and_work.device_slices], side="left")
    ids, code = np.unique(
        np.concatenate([wanted, calls_and_work.device_correlation_ids]), return_inverse=True
    )
    key = code + np.concatenate([window, own]) * ids.size
    order = np.argsort(key[: rows.size])
    launch = _values_of_requested_ids(key[: rows.size][order], calls[order], key[rows.size :])
    launch[~within] = NO_SLICE
    launches_per_window = np.bincount(own[launch != NO_SLICE], minlength=count)
    return launch if launches_per_window.all() else None


def _recorder_restarts_before_each_call(correlation_ids: list[int]) -> SignedInts:
    """Returns the number of recorder restarts before each call; a repeated id shows a restart."""
    seen: set[int] = set()
    window, number = np.empty(len(correlation_ids), np.int64), 0
    for at, correlation_id in enumerate(correlation_ids):
        if correlation_id in seen:
            seen.clear()
            number += 1
        seen.add(correlation_id)
        window[at] = number
    return window


def _does_each_window_reuse_ids(
    correlation_ids: SignedInts, window: SignedInts, window_count: int
) -> bool:
    """Returns whether calls after each recorder restart reuse the ids of calls before it."""
    parts = np.split(correlation_ids, np.searchsorted(window, np.arange(1, window_count)))
    return all(
        np.intersect1d(one, other, assume_unique=True).size
        >= _MIN_SHARE_OF_IDS_REUSED_BY_RESTART * min(one.size, other.size)
        for one, other in pairwise(parts)
    )
