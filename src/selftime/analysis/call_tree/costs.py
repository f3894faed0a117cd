"""What each entry of the call tree costs of its own: device time, launches, waits, memory.

Device work is charged to the call that launched it. What no entry is charged with (work launched
before the recording, memory in no operator) is told apart, so that sums are whole.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_tree.call_tree import CallTree
from selftime.analysis.device.work import device_durations
from selftime.analysis.slice_arguments import with_arguments
from selftime.analysis.slice_filters import filter_by_name, is_on, slices_on
from selftime.arrays import Ints
from selftime.devices import HOST_TYPES
from selftime.nesting import NONE
from selftime.trace import Trace


@dataclass(frozen=True, slots=True)
class Launched:
    """Device work and who launched it; arrays of shape (m,)."""

    id: Ints
    duration: Ints
    """In ns, as `device_durations` has them; 0 where its end is not known."""
    owner: Ints
    """The place of the call that launched it, else of the operator; NONE if neither is known."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Amounts of each entry itself, shape (n,), and `lost`: what no entry is charged with."""

    device: Ints
    """Device time in ns: durations of kernels, copies and fills, one after the other."""
    device_slices: Ints
    waits: Ints
    """Host time in ns in which a thread waited: for a device, a lock, a timer, a socket."""
    cpu_memory: Ints
    """Bytes allocated less released, on the host."""
    device_memory: Ints
    lost: dict[str, int]
    """By the names of the amounts."""


def launched(trace: Trace, entries: CallTree) -> Launched:
    """All device work with its owner."""
    work = slices_on(trace, "device").select("id", "launch")
    work = with_arguments(trace, "device_args", work, "operator")
    owner = _place(entries, work["launch"])
    owner = np.where(owner == NONE, _place(entries, work["operator"]), owner)
    duration = device_durations(trace).gather(work["id"]).fill_null(0)
    return Launched(work["id"].to_numpy(), duration.to_numpy(), owner)


def costs(trace: Trace, entries: CallTree, work: Launched) -> Costs:
    """Charge every entry with what it costs itself."""
    once = np.ones(work.owner.size, np.int64)
    operator, memory = _records(trace)
    owner = _place(entries, operator)
    amounts: dict[str, tuple[Ints, Ints]] = {
        "device": (work.owner, work.duration),
        "device_slices": (work.owner, once),
        **{kind: (owner, much) for kind, much in memory.items()},
    }
    own = {name: _charged(*amount, entries.id.size) for name, amount in amounts.items()}
    lost = {name: int(much[at == NONE].sum()) for name, (at, much) in amounts.items()}
    return Costs(**own, waits=_waits(trace, entries), lost=lost)


def _waits(trace: Trace, entries: CallTree) -> Ints:
    """Self time of calls that hold the host until a device is done, and of frames that wait."""
    named = trace.slices.select("id", "name")
    is_call = trace.slices["category"].is_in(list(names.CALLS))
    waiting = [
        filter_by_name(named.filter(is_call), names.is_blocking_call)["id"],
        filter_by_name(named.filter(is_on(trace, "python")), names.is_waiting_frame)["id"],
    ]
    place = entries.place[pl.concat(waiting).to_numpy()]
    place = place[place != NONE]
    found = np.zeros(entries.id.size, np.int64)
    found[place] = entries.self_time[place]
    return found


def _records(trace: Trace) -> tuple[pl.Series, dict[str, Ints]]:
    """The operator around each record of memory, and the bytes by where they are."""
    memory = trace.memory.select("operator", "device_type", "bytes", "failed")
    records = memory.filter(~pl.col("failed"))
    much = records["bytes"].fill_null(0).to_numpy()
    on_host = records["device_type"].is_in(HOST_TYPES)
    parts = {"cpu_memory": on_host, "device_memory": ~on_host}  # of an unknown type: in neither
    return records["operator"], {
        kind: np.where(part.fill_null(value=False).to_numpy(), much, 0)
        for kind, part in parts.items()
    }


def _place(entries: CallTree, ids: pl.Series) -> Ints:
    """The places of slices; NONE for null, and for what takes no part."""
    asked = ids.cast(pl.Int64).fill_null(NONE).to_numpy()
    if not entries.place.size:
        return np.full(asked.size, NONE, np.int64)
    return np.where(asked == NONE, NONE, entries.place[asked])


def _charged(owner: Ints, much: Ints, size: int) -> Ints:
    total = np.zeros(size, np.int64)
    known = owner != NONE
    np.add.at(total, owner[known], much[known])
    return total
