"""Join the rows of a trace: device work to its launch, calls to operators, operators to frames.

Launches are joined by correlation, which is right in every era. Calls are joined to operators, and
operators to Python frames, by containment on their thread: `External id` was wrong in 2022 and
2023.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from selftime import names
from selftime.ingest.arrange import Arranged
from selftime.ingest.columns import Columns
from selftime.ingest.events import NO_INT
from selftime.nesting import NONE, innermost_at, nearest

__all__ = ["Links", "link"]

Ints = NDArray[np.int64]

_NO_LINK: Final = (NO_INT, 0, -1)
"""Correlations that stand for none: they never join each other."""


@dataclass(slots=True)
class Links:
    """For each slice, in order: the place of the slice it is joined to, or NONE."""

    launch: Ints
    operator: Ints
    """The innermost operator or annotation: itself for operators, around the launch for work."""
    frame: Ints
    module: Ints
    caller: Ints
    ambiguous: int = 0
    """Calls that share a correlation with other calls, so that none of them is joined."""
    before_launch: int = 0
    """Device slices that start before the call that launched them."""


def link(slices: Arranged, groups: dict[str, Columns]) -> Links:
    """Find every join of a file."""
    none = np.full(slices.start.size, NONE, np.int64)
    links = Links(none, none.copy(), none.copy(), none.copy(), none.copy())
    host = np.flatnonzero(slices.is_kind("host"))
    operators = slices.is_in((*names.OPERATORS, *names.ANNOTATIONS))
    links.operator[host] = nearest(slices.parent, operators, host)
    _join_launches(slices, groups, links)
    frames = groups.get("frame")
    if frames is not None:
        _join_frames(slices, frames, links, host)
    return links


def _join_launches(slices: Arranged, groups: dict[str, Columns], links: Links) -> None:
    calls, device = groups.get("call"), groups.get("device")
    if calls is None or device is None:
        return
    call_at, work_at = slices.place[calls["row"]], slices.place[device["row"]]
    ids, first, counts = np.unique(calls["correlation"], return_index=True, return_counts=True)
    sound = ~np.isin(ids, _NO_LINK)
    links.ambiguous = int(counts[sound & (counts > 1)].sum())
    sound &= counts == 1
    ids, first = ids[sound], first[sound]
    if not ids.size:
        return
    place = np.minimum(np.searchsorted(ids, device["correlation"]), ids.size - 1)
    joined = (ids[place] == device["correlation"]) & slices.is_kind("device")[work_at]
    launch = np.where(joined, call_at[first[place]], NONE)
    links.launch[work_at] = launch
    links.operator[work_at[joined]] = links.operator[launch[joined]]
    links.before_launch = int((slices.start[work_at] < slices.start[launch])[joined].sum())


def _join_frames(slices: Arranged, frames: Columns, links: Links, host: Ints) -> None:
    at = slices.place[frames["row"]]
    _join_callers(slices, frames, at, links)
    is_module = np.zeros(slices.start.size, bool)
    is_module[at[frames["module_id"] != NO_INT]] = True
    for thread in np.unique(slices.thread[at]):
        on_thread = np.sort(at[slices.thread[at] == thread])
        asked = host[slices.thread[host] == thread]
        local = np.searchsorted(on_thread, slices.parent[on_thread])
        parent = np.where(slices.parent[on_thread] == NONE, NONE, local)
        begin, end = slices.start[on_thread], slices.end[on_thread]
        # A clipped start can move a frame behind its successor; the search needs them in order.
        order = np.argsort(begin, kind="stable")
        back = np.empty(order.size, np.int64)
        back[order] = np.arange(order.size)
        above = np.where(parent[order] == NONE, NONE, back[parent[order]])
        found = innermost_at(begin[order], end[order], above, slices.start[asked])
        links.frame[asked] = np.where(found == NONE, NONE, on_thread[order][found])
    links.module[host] = nearest(slices.parent, is_module, links.frame[host])


def _join_callers(slices: Arranged, frames: Columns, at: Ints, links: Links) -> None:
    """A frame's caller by the recorder's ids; by time where an id is missing or its own."""
    links.caller[at] = slices.parent[at]
    own, above = frames["python_id"], frames["python_parent"]
    ids, first, counts = np.unique(own, return_index=True, return_counts=True)
    sound = (ids != NO_INT) & (counts == 1)
    ids, first = ids[sound], first[sound]
    if not ids.size:
        return
    place = np.minimum(np.searchsorted(ids, above), ids.size - 1)
    joined = (ids[place] == above) & (above != own)
    links.caller[at[joined]] = at[first[place[joined]]]
