"""Links slices: device work to launches, calls to operators, operators to Python frames.

Launches are linked by correlation, which is right in every version of PyTorch. Calls are linked to
operators, and operators to Python frames, by containment in time on their thread: `External id` was
wrong in 2022 and 2023.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from selftime import names
from selftime.array_types import SignedInts
from selftime.ingest.damage.file_faults import FaultCount
from selftime.ingest.events.chunk_merging import FileEventColumns
from selftime.ingest.events.columns import Columns
from selftime.ingest.events.event_types import NO_INT
from selftime.ingest.links.launch_links import find_launches_of_device_work
from selftime.ingest.links.slice_ordering import OrderedSlices
from selftime.nesting import NO_SLICE, innermost_slice_on_tracks, nearest_ancestor

_CALLER_NOT_IN_FILE_FAULT: Final = "Python frames whose caller is not in the file: nested by time"
_CALLER_BEFORE_RECORDING_FAULT: Final = (
    "Python frames whose caller began before the recording: taken as outermost"
)
_FRAME_IS_ITS_OWN_CALLER_FAULT: Final = (
    "Python frames that name themselves as their caller: taken as outermost"
)
_CALLER_CYCLE_FAULT: Final = "Python frames that call each other in a circle: cut at the first"
_MAX_HARMLESS_SHARE_WITHOUT_CALLER: Final = 0.01
"""Largest share (0 to 1) of Python frames that may lack a caller because the recording began or
ended within the caller.
"""
_WORK_STARTS_BEFORE_LAUNCH_FAULT: Final = "device work that starts before its launch"


def forward_operators(slices: OrderedSlices, ops: Columns, columns: FileEventColumns) -> SignedInts:
    """Returns the slice index of each operator's forward operator, or -1 if there is none."""
    at = slices.sorted_index_by_file_row[ops["row"]]
    sequence, thread = ops["sequence"], ops["forward_thread"]
    numbered = (sequence != NO_INT) & (sequence >= 0) & (thread != NO_INT)
    forward, backward = numbered & (thread == 0), numbered & (thread != 0)
    found = _forward_slices_by_sequence_number(at, sequence, forward, backward)
    return _inherit_missing_forward_slices(slices, columns, at, found)


def _forward_slices_by_sequence_number(
    slice_indices: SignedInts,
    sequence: SignedInts,
    is_forward: NDArray[np.bool_],
    is_backward: NDArray[np.bool_],
) -> SignedInts:
    """Returns each backward slice's last earlier forward slice with its sequence number."""
    found = np.full(slice_indices.size, NO_SLICE, np.int64)
    rows = np.flatnonzero(is_forward | is_backward)
    rows = rows[np.lexsort((slice_indices[rows], sequence[rows]))]
    last = np.maximum.accumulate(np.where(is_forward[rows], np.arange(rows.size), NO_SLICE))
    ask = is_backward[rows] & (last != NO_SLICE)
    candidate = rows[last[ask]]
    same = sequence[candidate] == sequence[rows[ask]]
    found[rows[ask][same]] = slice_indices[candidate[same]]
    return found


def _inherit_missing_forward_slices(
    slices: OrderedSlices,
    columns: FileEventColumns,
    slice_indices: SignedInts,
    forward_slices: SignedInts,
) -> SignedInts:
    """Gives each autograd node without a sequence number the forward slice of the node before it.

    The node before it is the one that ran last on the same thread.
    """
    codes = np.unique(slices.name[slice_indices])
    texts = columns.decode_strings(codes).cast(str).to_list() if codes.size else []
    nodes = codes[[names.is_backward_node(text) for text in texts]] if texts else codes
    rows = np.flatnonzero(np.isin(slices.name[slice_indices], nodes))
    rows = rows[np.lexsort((slice_indices[rows], slices.track[slice_indices[rows]]))]
    last = np.maximum.accumulate(
        np.where(forward_slices[rows] != NO_SLICE, np.arange(rows.size), NO_SLICE)
    )
    track = slices.track[slice_indices[rows]]
    follows = (forward_slices[rows] == NO_SLICE) & (last != NO_SLICE)
    follows[follows] = track[last[follows]] == track[follows]
    forward_slices[rows[follows]] = forward_slices[rows[last[follows]]]
    return forward_slices


def callers_of_frames(
    slices: OrderedSlices, frames: Columns, frame_slices: SignedInts
) -> tuple[SignedInts, list[FaultCount]]:
    """Returns the slice index of each Python frame's caller (-1 if unknown), and faults found.

    In the file, a caller may come after its callee. A Python id that several frames share is not
    used.
    """
    callers = slices.parent[frame_slices]
    own, above = frames["python_id"], frames["python_parent"]
    itself = (above == own) & (above != NO_INT)
    ids, first, counts = np.unique(own, return_index=True, return_counts=True)
    sound = (ids != NO_INT) & (counts == 1)
    ids, first = ids[sound], first[sound]
    joined = np.zeros(frame_slices.size, bool)
    if ids.size:
        place = np.minimum(np.searchsorted(ids, above), ids.size - 1)
        joined = (ids[place] == above) & ~itself
        callers[joined] = frame_slices[first[place[joined]]]
    callers[itself] = NO_SLICE
    absent = np.flatnonzero((above != NO_INT) & ~joined & ~itself)
    before = _count_callers_before_recording(slices.thread[frame_slices], own, above, absent)
    lost = absent.size - before
    first_of = _first_frames_of_cycles(slices, frame_slices, callers)
    callers[np.isin(frame_slices, first_of)] = NO_SLICE
    return callers, [
        FaultCount(
            _CALLER_NOT_IN_FILE_FAULT,
            lost,
            is_note=lost <= _MAX_HARMLESS_SHARE_WITHOUT_CALLER * frame_slices.size,
        ),
        FaultCount(_CALLER_BEFORE_RECORDING_FAULT, before, is_note=True),
        FaultCount(_FRAME_IS_ITS_OWN_CALLER_FAULT, int(itself.sum())),
        FaultCount(_CALLER_CYCLE_FAULT, len(first_of)),
    ]


def _count_callers_before_recording(
    thread: NDArray[np.integer[Any]],
    python_ids: SignedInts,
    caller_ids: SignedInts,
    frames_without_caller: SignedInts,
) -> int:
    """Returns the number of frames whose caller began before the recording.

    Recorders number frames as they begin: such a caller has a lower number than every frame of its
    thread. It encloses all of them, so that its absence changes no other nesting.
    """
    if not frames_without_caller.size:
        return 0
    first = np.full(int(thread.max()) + 1, np.iinfo(np.int64).max)
    numbered = python_ids != NO_INT
    np.minimum.at(first, thread[numbered], python_ids[numbered])
    return int((caller_ids[frames_without_caller] < first[thread[frames_without_caller]]).sum())


def _first_frames_of_cycles(
    slices: OrderedSlices, frame_slices: SignedInts, callers: SignedInts
) -> list[int]:
    """Returns the slice index of the earliest frame of each cycle of callers."""
    if not (callers > frame_slices).any():
        return []
    above = np.full(slices.start.size, NO_SLICE, np.int64)
    above[frame_slices] = callers
    jumped = frame_slices
    step = above
    for _ in range(int(frame_slices.size).bit_length()):  # after as many steps as there are frames
        jumped = np.where(jumped == NO_SLICE, NO_SLICE, step[jumped])
        step = np.where(step == NO_SLICE, NO_SLICE, step[step])
    left = set(np.unique(jumped[jumped != NO_SLICE]).tolist())
    firsts = []
    while left:
        circle = [left.pop()]
        while (following := int(above[circle[-1]])) != circle[0]:
            circle.append(following)
        left.difference_update(circle)
        firsts.append(min(circle))
    return firsts


@dataclass(slots=True)
class SliceLinks:
    """The index of each slice's launch, operator, frame, module and caller; -1 if there is none."""

    launch: SignedInts
    operator: SignedInts
    """The innermost enclosing operator or annotation. An operator has its own index; device work
    has the operator of its launch.
    """
    frame: SignedInts
    module: SignedInts
    caller: SignedInts
    link_faults: list[FaultCount] = field(default_factory=list)
    """Messages about rows that could not be linked or whose links are doubtful, with their counts.
    """


def link_slices(slices: OrderedSlices, columns: FileEventColumns) -> SliceLinks:
    """Returns all links between the slices of a file."""
    none = np.full(slices.start.size, NO_SLICE, np.int32)
    links = SliceLinks(none, none.copy(), none.copy(), none.copy(), none.copy())
    host = np.flatnonzero(slices.is_on_track_kind("host"))
    operators = slices.has_category((*names.OPERATOR_CATEGORIES, *names.ANNOTATION_CATEGORIES))
    links.operator[host] = nearest_ancestor(slices.parent, operators, host)
    _link_launches(slices, columns, links)
    frames = columns.columns_by_group.get("frame")
    if frames is not None:
        _link_python_frames(slices, frames, links, host)
    return links


def _link_launches(slices: OrderedSlices, columns: FileEventColumns, links: SliceLinks) -> None:
    calls, device = columns.columns_by_group.get("call"), columns.columns_by_group.get("device")
    if calls is None or device is None:
        return
    launch, odd = find_launches_of_device_work(slices, calls, device, columns.threads)
    work_at = slices.sorted_index_by_file_row[device["row"]]
    joined = launch != NO_SLICE
    links.launch[work_at] = launch
    links.operator[work_at[joined]] = links.operator[launch[joined]]
    early = slices.start[work_at[joined]] < slices.start[launch[joined]]
    links.link_faults += [*odd, FaultCount(_WORK_STARTS_BEFORE_LAUNCH_FAULT, int(early.sum()))]


def _link_python_frames(
    slices: OrderedSlices, frames: Columns, links: SliceLinks, host: SignedInts
) -> None:
    at = slices.sorted_index_by_file_row[frames["row"]]
    links.caller[at], odd = callers_of_frames(slices, frames, at)
    links.link_faults += odd
    is_module = np.zeros(slices.start.size, bool)
    is_module[at[frames["module_id"] != NO_INT]] = True
    asked = host[np.isin(slices.thread[host], slices.thread[at])]
    links.frame[asked] = _innermost_enclosing_slices(slices, np.sort(at), asked)
    links.module[host] = nearest_ancestor(slices.parent, is_module, links.frame[host])


def _innermost_enclosing_slices(
    slices: OrderedSlices, enclosing: SignedInts, inner_slices: SignedInts
) -> SignedInts:
    """Returns for each inner slice the innermost of the `enclosing` slices that contains it."""
    local = np.searchsorted(enclosing, slices.parent[enclosing])
    inner = innermost_slice_on_tracks(
        slices.thread[enclosing].astype(np.int64),
        slices.start[enclosing],
        slices.end[enclosing],
        np.where(slices.parent[enclosing] == NO_SLICE, NO_SLICE, local),
        slices.thread[inner_slices].astype(np.int64),
        slices.start[inner_slices],
    )
    return np.where(inner == NO_SLICE, NO_SLICE, enclosing[inner])
