"""Link the rows of a trace: device work to launches, calls to operators, operators to frames.

Launches are linked by correlation, which is right in every version of PyTorch. Calls are linked to
operators, and operators to Python frames, by containment in time on their thread: `External id` was
wrong in 2022 and 2023.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from selftime import names
from selftime.arrays import SignedInts
from selftime.ingest.damage.faults import Tally
from selftime.ingest.events.assemble import FileColumns
from selftime.ingest.events.columns import Columns
from selftime.ingest.events.event import NO_INT
from selftime.ingest.links.launches import find_launches
from selftime.ingest.links.ordering import OrderedSlices
from selftime.nesting import NONE, innermost_on, nearest

_CALLER_ABSENT: Final = "Python frames whose caller is not in the file: nested by time"
_CALLER_BEFORE: Final = "Python frames whose caller began before the recording: taken as outermost"
_OWN_CALLER: Final = "Python frames that name themselves as their caller: taken as outermost"
_CALLER_CYCLE: Final = "Python frames that call each other in a circle: cut at the first"
_FEW: Final = 0.01
"""Up to this share of frames may lack a caller because the recording's ends cut it off."""
_EARLY: Final = "device work that starts before its launch"


def forward_of(slices: OrderedSlices, ops: Columns, columns: FileColumns) -> SignedInts:
    """Returns the slice index of each operator's forward operator, or NONE."""
    at = slices.place[ops["row"]]
    sequence, thread = ops["sequence"], ops["forward_thread"]
    numbered = (sequence != NO_INT) & (sequence >= 0) & (thread != NO_INT)
    forward, backward = numbered & (thread == 0), numbered & (thread != 0)
    found = _latest_before(at, sequence, forward, backward)
    return _inherit_forward(slices, columns, at, found)


def _latest_before(
    at: SignedInts, sequence: SignedInts, forward: NDArray[np.bool_], backward: NDArray[np.bool_]
) -> SignedInts:
    """Returns the last forward slice with each backward slice's sequence number before it."""
    found = np.full(at.size, NONE, np.int64)
    rows = np.flatnonzero(forward | backward)
    rows = rows[np.lexsort((at[rows], sequence[rows]))]
    last = np.maximum.accumulate(np.where(forward[rows], np.arange(rows.size), NONE))
    ask = backward[rows] & (last != NONE)
    candidate = rows[last[ask]]
    same = sequence[candidate] == sequence[rows[ask]]
    found[rows[ask][same]] = at[candidate[same]]
    return found


def _inherit_forward(
    slices: OrderedSlices, columns: FileColumns, at: SignedInts, found: SignedInts
) -> SignedInts:
    """Give backward nodes without a number the forward slice of the previous node on the track."""
    codes = np.unique(slices.name[at])
    texts = columns.text(codes).cast(str).to_list() if codes.size else []
    nodes = codes[[names.is_backward_node(text) for text in texts]] if texts else codes
    rows = np.flatnonzero(np.isin(slices.name[at], nodes))
    rows = rows[np.lexsort((at[rows], slices.track[at[rows]]))]
    last = np.maximum.accumulate(np.where(found[rows] != NONE, np.arange(rows.size), NONE))
    track = slices.track[at[rows]]
    follows = (found[rows] == NONE) & (last != NONE)
    follows[follows] = track[last[follows]] == track[follows]
    found[rows[follows]] = found[rows[last[follows]]]
    return found


def frame_callers(
    slices: OrderedSlices, frames: Columns, at: SignedInts
) -> tuple[SignedInts, list[Tally]]:
    """Returns the slice index of each frame's caller, or NONE, and the oddities found.

    A caller may stand after its callee in the file. A Python id that several frames share links
    none.
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
    before = _count_begun_before(slices.thread[at], own, above, absent)
    lost = absent.size - before
    first_of = _first_of_cycles(slices, at, found)
    found[np.isin(at, first_of)] = NONE
    return found, [
        Tally(_CALLER_ABSENT, lost, note=lost <= _FEW * at.size),
        Tally(_CALLER_BEFORE, before, note=True),
        Tally(_OWN_CALLER, int(itself.sum())),
        Tally(_CALLER_CYCLE, len(first_of)),
    ]


def _count_begun_before(
    thread: NDArray[np.integer[Any]], own: SignedInts, above: SignedInts, absent: SignedInts
) -> int:
    """Returns how many of the frames have a caller that began before the recording.

    Recorders number frames as they begin: such a caller has a lower number than every frame of its
    thread. It encloses all of them, so that its absence changes no other nesting.
    """
    if not absent.size:
        return 0
    first = np.full(int(thread.max()) + 1, np.iinfo(np.int64).max)
    numbered = own != NO_INT
    np.minimum.at(first, thread[numbered], own[numbered])
    return int((above[absent] < first[thread[absent]]).sum())


def _first_of_cycles(slices: OrderedSlices, at: SignedInts, caller: SignedInts) -> list[int]:
    """Returns the earliest frame of each cycle of callers."""
    if not (caller > at).any():
        return []
    above = np.full(slices.start.size, NONE, np.int64)
    above[at] = caller
    jumped = at
    step = above
    for _ in range(int(at.size).bit_length()):  # after as many steps as there are frames
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


@dataclass(slots=True)
class Links:
    """For each slice, in order: the index of the slice it is linked to, or NONE."""

    launch: SignedInts
    operator: SignedInts
    """The innermost enclosing operator or annotation; an operator's own index, for device work the
launch's operator."""
    frame: SignedInts
    module: SignedInts
    caller: SignedInts
    odd: list[Tally] = field(default_factory=list)
    """Oddities: rows that could not be linked, or are linked strangely."""


def link_rows(slices: OrderedSlices, columns: FileColumns) -> Links:
    """Returns all links of a file."""
    none = np.full(slices.start.size, NONE, np.int32)
    links = Links(none, none.copy(), none.copy(), none.copy(), none.copy())
    host = np.flatnonzero(slices.is_kind("host"))
    operators = slices.is_in((*names.OPERATORS, *names.ANNOTATIONS))
    links.operator[host] = nearest(slices.parent, operators, host)
    _link_launches(slices, columns, links)
    frames = columns.groups.get("frame")
    if frames is not None:
        _link_frames(slices, frames, links, host)
    return links


def _link_launches(slices: OrderedSlices, columns: FileColumns, links: Links) -> None:
    calls, device = columns.groups.get("call"), columns.groups.get("device")
    if calls is None or device is None:
        return
    launch, odd = find_launches(slices, calls, device, columns.threads)
    work_at = slices.place[device["row"]]
    joined = launch != NONE
    links.launch[work_at] = launch
    links.operator[work_at[joined]] = links.operator[launch[joined]]
    early = slices.start[work_at[joined]] < slices.start[launch[joined]]
    links.odd += [*odd, Tally(_EARLY, int(early.sum()))]


def _link_frames(slices: OrderedSlices, frames: Columns, links: Links, host: SignedInts) -> None:
    at = slices.place[frames["row"]]
    links.caller[at], odd = frame_callers(slices, frames, at)
    links.odd += odd
    is_module = np.zeros(slices.start.size, bool)
    is_module[at[frames["module_id"] != NO_INT]] = True
    asked = host[np.isin(slices.thread[host], slices.thread[at])]
    links.frame[asked] = _innermost_of(slices, np.sort(at), asked)
    links.module[host] = nearest(slices.parent, is_module, links.frame[host])


def _innermost_of(slices: OrderedSlices, enclosing: SignedInts, asked: SignedInts) -> SignedInts:
    """Returns the innermost of `those` slices that is open on its thread at each other's start."""
    local = np.searchsorted(enclosing, slices.parent[enclosing])
    inner = innermost_on(
        slices.thread[enclosing].astype(np.int64),
        slices.start[enclosing],
        slices.end[enclosing],
        np.where(slices.parent[enclosing] == NONE, NONE, local),
        slices.thread[asked].astype(np.int64),
        slices.start[asked],
    )
    return np.where(inner == NONE, NONE, enclosing[inner])
