"""Join the rows of a trace: device work to its launch, calls to operators, operators to frames.

Launches are joined by correlation, which is right in every era. Calls are joined to operators, and
operators to Python frames, by containment on their thread: `External id` was wrong in 2022 and
2023.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from selftime import names
from selftime.arrays import SignedInts
from selftime.ingest.damage.faults import Tally
from selftime.ingest.events.assemble import FileColumns
from selftime.ingest.events.columns import Columns
from selftime.ingest.events.event import NO_INT
from selftime.ingest.links.arrange import Arranged
from selftime.ingest.links.callers import callers
from selftime.ingest.links.launches import launches
from selftime.nesting import NONE, innermost_on, nearest

_EARLY: Final = "device work that starts before its launch"


@dataclass(slots=True)
class Links:
    """For each slice, in order: the place of the slice it is joined to, or NONE."""

    launch: SignedInts
    operator: SignedInts
    """The innermost operator or annotation: itself for operators, around the launch for work."""
    frame: SignedInts
    module: SignedInts
    caller: SignedInts
    odd: list[Tally] = field(default_factory=list)
    """What could not be joined, or is odd about it."""


def link(slices: Arranged, columns: FileColumns) -> Links:
    """Find every join of a file."""
    none = np.full(slices.start.size, NONE, np.int32)
    links = Links(none, none.copy(), none.copy(), none.copy(), none.copy())
    host = np.flatnonzero(slices.is_kind("host"))
    operators = slices.is_in((*names.OPERATORS, *names.ANNOTATIONS))
    links.operator[host] = nearest(slices.parent, operators, host)
    _join_launches(slices, columns, links)
    frames = columns.groups.get("frame")
    if frames is not None:
        _join_frames(slices, frames, links, host)
    return links


def _join_launches(slices: Arranged, columns: FileColumns, links: Links) -> None:
    calls, device = columns.groups.get("call"), columns.groups.get("device")
    if calls is None or device is None:
        return
    launch, odd = launches(slices, calls, device, columns.threads)
    work_at = slices.place[device["row"]]
    joined = launch != NONE
    links.launch[work_at] = launch
    links.operator[work_at[joined]] = links.operator[launch[joined]]
    early = slices.start[work_at[joined]] < slices.start[launch[joined]]
    links.odd += [*odd, Tally(_EARLY, int(early.sum()))]


def _join_frames(slices: Arranged, frames: Columns, links: Links, host: SignedInts) -> None:
    at = slices.place[frames["row"]]
    links.caller[at], odd = callers(slices, frames, at)
    links.odd += odd
    is_module = np.zeros(slices.start.size, bool)
    is_module[at[frames["module_id"] != NO_INT]] = True
    asked = host[np.isin(slices.thread[host], slices.thread[at])]
    links.frame[asked] = _innermost_of(slices, np.sort(at), asked)
    links.module[host] = nearest(slices.parent, is_module, links.frame[host])


def _innermost_of(slices: Arranged, those: SignedInts, asked: SignedInts) -> SignedInts:
    """The innermost of some whole tracks' slices that is open on its thread when others begin."""
    local = np.searchsorted(those, slices.parent[those])
    inner = innermost_on(
        slices.thread[those].astype(np.int64),
        slices.start[those],
        slices.end[those],
        np.where(slices.parent[those] == NONE, NONE, local),
        slices.thread[asked].astype(np.int64),
        slices.start[asked],
    )
    return np.where(inner == NONE, NONE, those[inner])
