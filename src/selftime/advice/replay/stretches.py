"""Divides a program into stretches that can be run at once, and others that cannot.

Within a stretch that can, every wait is for work launched before it, save that of its last entry,
and so is every need of work. What is not known yet when it begins are then only running maxima.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

import numpy as np

from selftime.advice.replay.program import NOTHING, Program
from selftime.arrays import Ints

_WORTH_ARRAYS: Final = 48
"""Entries and work from which on arrays are faster than a loop: their calls cost as much."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some acting entries, by their place among those."""

    begin: int
    end: int
    at_once: bool
    """Whether nothing but the last entry's wait depends on what is launched within."""


def acting(program: Program) -> Ints:
    """The entries that launch work or wait; the others only pass the host's time."""
    entries = program.entries
    waits = (entries.waits_for != NOTHING) | (entries.waits_stream != NOTHING)
    return np.flatnonzero(waits | (entries.last_work > entries.first_work))


def stretches(program: Program, acts: Ints) -> list[Stretch]:
    """The acting entries in order, as few stretches as there can be."""
    entries = program.entries
    first, last = entries.first_work[acts], entries.last_work[acts]
    waited = np.maximum.accumulate(entries.waits_for[acts]).tolist()
    needed = np.maximum.accumulate(_latest_need(program, first, last)).tolist()
    of_streams = np.flatnonzero(entries.waits_stream[acts] != NOTHING).tolist()
    firsts = first.tolist()
    found: list[Stretch] = []
    begin, size = 0, np.append(0, np.cumsum(1 + last - first)).tolist()
    while begin < acts.size:
        work = firsts[begin]
        stream = bisect_left(of_streams, begin)
        end = min(
            bisect_left(waited, work) + 1,
            bisect_left(needed, work),
            of_streams[stream] + 1 if stream < len(of_streams) else acts.size,
            acts.size,
        )
        at_once = end > begin and size[end] - size[begin] >= _WORTH_ARRAYS
        end = max(end, begin + 1)
        if not at_once and found and not found[-1].at_once:
            found[-1] = Stretch(found[-1].begin, end, at_once=False)
        else:
            found.append(Stretch(begin, end, at_once))
        begin = end
    return found


def _latest_need(program: Program, first: Ints, last: Ints) -> Ints:
    """For each entry the latest work that any of its own needs, else NOTHING."""
    needs = np.append(program.work.needs, NOTHING)
    if not first.size:
        return first
    # A part of `reduceat` that is empty gives the element at its begin.
    latest = np.maximum.reduceat(needs, np.column_stack([first, last]).ravel())[::2]
    return np.where(last > first, latest, NOTHING)
