"""Finds the slices of a class of time that a change names, such as `syncs` or `communication`."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.gradient_communication import (
    changes_shortening_communication,
    communicates_on_host,
    communication_transfers,
)
from selftime.advice.replay import CutHostTime
from selftime.advice.what_if.selected_work import SelectedWork, ids_of, on_main_threads
from selftime.analysis.device.device_work import device_work
from selftime.analysis.idle.host_waits import host_waits
from selftime.analysis.main_thread import is_work_of_host_thread, slices_on_main_thread
from selftime.analysis.slice_arguments import parent_of_every_slice
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.errors import UsageError
from selftime.intervals import Intervals, subtract, union
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

_NO_IDS: Final = np.zeros(0, np.int64)
_NO_TIMES: Final = Intervals(_NO_IDS, _NO_IDS)


def work_of_class(trace: Trace, class_name: str) -> SelectedWork:
    """Returns the work of a class of time, one of `CLASSES_TO_REMOVE`.

    Raises:
        UsageError: There is none in the trace.
    """
    find, sentence = _FINDER_AND_SENTENCE_OF_CLASS[class_name]
    found = find(trace)
    if not (found.host.size or found.device.size or found.waits.size):
        raise UsageError(f"`{class_name}` holds nothing to change: {sentence}")
    return found


def _waits_for_devices(trace: Trace) -> SelectedWork:
    waits = ids_of(host_waits(trace)["id"])
    return SelectedWork(_NO_TIMES, waits, _NO_IDS, waits)


def _copies_with_their_calls(trace: Trace) -> SelectedWork:
    """Returns copies between host and device, the host time of their calls, and waits in these."""
    copies = filter_by_name(
        device_work(trace).filter(pl.col("kind") == "memcpy"),
        lambda name: "H" in (names.memcpy_kind(name).direction or ""),
    )
    calls = trace.slices[copies["launch"].drop_nulls().unique().sort()]
    waits = host_waits(trace)["id"]
    return SelectedWork(
        covered_time(on_main_threads(trace, calls)),
        ids_of(calls["id"]),
        ids_of(copies["id"]),
        ids_of(waits.filter(waits.is_in(calls["id"].implode()))),
    )


def _launching_operators_and_calls(trace: Trace) -> SelectedWork:
    """Returns the host time of operators and calls that launch device work, without other calls."""
    parent = parent_of_every_slice(trace)
    flags = np.zeros(trace.slices.height, bool)
    at = ids_of(trace.slices["launch"].drop_nulls().unique())
    while at.size:
        flags[at] = True
        above = np.unique(parent[at])
        above = above[above != NO_SLICE]
        at = above[~flags[above]]
    host = slices_on(trace, "host")
    is_call = host["category"].is_in(list(names.RUNTIME_CALL_CATEGORIES))
    is_work = pl.Series(is_work_of_host_thread(host), dtype=pl.Boolean)
    launches = pl.Series(flags[host["id"].to_numpy()], dtype=pl.Boolean)
    launching = on_main_threads(trace, host.filter(is_work & launches))
    others = on_main_threads(trace, host.filter(is_call & ~launches))
    times = subtract(covered_time(launching), covered_time(others))
    return SelectedWork(times, ids_of(launching["id"]), _NO_IDS, _NO_IDS)


def _data_waits(trace: Trace) -> SelectedWork:
    """Returns the time that the main thread spends in a data loader."""
    host = filter_by_name(slices_on(trace, "host", ended=True), names.is_data_loading)
    frames = filter_by_name(slices_on(trace, "python", ended=True), names.is_next_batch_frame)
    return _host_work(slices_on_main_thread(trace, pl.concat([host, frames])))


def _garbage_collections(trace: Trace) -> SelectedWork:
    found = filter_by_name(trace.slices, names.is_garbage_collection)
    return _host_work(found.filter(pl.col("duration").is_not_null()))


def _host_work(slices: pl.DataFrame) -> SelectedWork:
    return SelectedWork(covered_time(slices), ids_of(slices["id"]), _NO_IDS, _NO_IDS)


def _communication(trace: Trace) -> SelectedWork:
    """Returns the kernels of collectives; without any, the collectives that the host runs."""
    found = ids_of(communication_transfers(trace)["id"])
    if not communicates_on_host(trace):
        return SelectedWork(_NO_TIMES, _NO_IDS, found, _NO_IDS)
    changes = changes_shortening_communication(trace, _whole_trace(trace), 0.0)
    times = [change.intervals for change in changes if isinstance(change, CutHostTime)]
    return SelectedWork(times[0] if found.size else _NO_TIMES, found, _NO_IDS, _NO_IDS)


def _whole_trace(trace: Trace) -> Intervals:
    last = trace.slices.select(pl.col("start") + pl.col("duration").fill_null(0)).to_series().max()
    return union([0], [int(last) + 1 if isinstance(last, int) else 1])


_FINDER_AND_SENTENCE_OF_CLASS: Final[Mapping[str, tuple[Callable[[Trace], SelectedWork], str]]] = (
    MappingProxyType(
        {
            "syncs": (_waits_for_devices, "the host waits for no device in this trace"),
            "copies": (
                _copies_with_their_calls,
                "no copy between host and device was recorded in this trace",
            ),
            "launches": (
                _launching_operators_and_calls,
                "the host launches no device work in this trace",
            ),
            "data": (_data_waits, "the trace shows no data loader on the main thread"),
            "garbage_collection": (
                _garbage_collections,
                "no garbage collection was recorded in this trace",
            ),
            "communication": (_communication, "the trace holds no collective"),
        }
    )
)
"""Maps each class to the function that finds its work, and to why there may be none."""
