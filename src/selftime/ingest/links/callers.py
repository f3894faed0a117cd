"""Which Python frame called which: by the recorder's numbers, and by time where these fail."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from selftime.arrays import SignedInts
from selftime.ingest.damage.faults import Tally
from selftime.ingest.events.columns import Columns
from selftime.ingest.events.event import NO_INT
from selftime.ingest.links.arrange import Arranged
from selftime.nesting import NONE

_ABSENT: Final = "Python frames whose caller is not in the file: nested by time"
_BEFORE: Final = "Python frames whose caller began before the recording: taken as outermost"
_OWN: Final = "Python frames that name themselves as their caller: taken as outermost"
_CIRCLE: Final = "Python frames that call each other in a circle: cut at the first"
_FEW: Final = 0.01
"""Up to this share of frames without a caller is what the ends of a recording cut off."""


def callers(slices: Arranged, frames: Columns, at: SignedInts) -> tuple[SignedInts, list[Tally]]:
    """The caller of each frame, as its place among the slices or NONE, and what is odd.

    Callers may stand after what they called. A number that several frames have tells none of them.
    """
    found = slices.parent[at]
    own, above = frames["python_id"], frames["python_parent"]
    itself = (above == own) & (above != NO_INT)
    ids, first, counts = np.unique(own, return_index=True, return_counts=True)
    sound = (ids != NO_INT) & (counts == 1)
    ids, first = ids[sound], first[sound]
    joined = np.zeros(at.size, bool)
    if ids.size:
        place = np.minimum(np.searchsorted(ids, above), ids.size - 1)
        joined = (ids[place] == above) & ~itself
        found[joined] = at[first[place[joined]]]
    found[itself] = NONE
    absent = np.flatnonzero((above != NO_INT) & ~joined & ~itself)
    before = _begun_before(slices.thread[at], own, above, absent)
    lost = absent.size - before
    first_of = _first_of_circles(slices, at, found)
    found[np.isin(at, first_of)] = NONE
    return found, [
        Tally(_ABSENT, lost, note=lost <= _FEW * at.size),
        Tally(_BEFORE, before, note=True),
        Tally(_OWN, int(itself.sum())),
        Tally(_CIRCLE, len(first_of)),
    ]


def _begun_before(
    thread: NDArray[np.integer[Any]], own: SignedInts, above: SignedInts, absent: SignedInts
) -> int:
    """How many of these frames have a caller that was open when the recording, or the part, began.

    Recorders number frames as they begin: such a caller has a lower number than every frame of its
    thread. It lies around all of them, so that none is nested otherwise for its absence.
    """
    if not absent.size:
        return 0
    first = np.full(int(thread.max()) + 1, np.iinfo(np.int64).max)
    numbered = own != NO_INT
    np.minimum.at(first, thread[numbered], own[numbered])
    return int((above[absent] < first[thread[absent]]).sum())


def _first_of_circles(slices: Arranged, at: SignedInts, caller: SignedInts) -> list[int]:
    """The earliest frame of each circle; a circle needs a frame that stands before its caller."""
    if not (caller > at).any():
        return []
    above = np.full(slices.start.size, NONE, np.int64)
    above[at] = caller
    jumped = at
    step = above
    for _ in range(int(at.size).bit_length()):  # after as many calls as there are frames
        jumped = np.where(jumped == NONE, NONE, step[jumped])
        step = np.where(step == NONE, NONE, step[step])
    left = set(np.unique(jumped[jumped != NONE]).tolist())
    firsts = []
    while left:
        circle = [left.pop()]
        while (following := int(above[circle[-1]])) != circle[0]:
            circle.append(following)
        left.difference_update(circle)
        firsts.append(min(circle))
    return firsts
