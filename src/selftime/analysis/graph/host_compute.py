"""How much of the host's time between its calls operators compute, where there is no device."""

import hashlib
from typing import NamedTuple

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.device.device_work import device_work
from selftime.analysis.graph.serial_threads import serial_threads
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.source_sites import numbered_source_sites
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE
from selftime.trace import Trace


class HostCompute(NamedTuple):
    """What operators compute in spans of host threads; arrays of shape (n,), times in ns."""

    time: Ints
    """Self time of the operators that begin in the span, at most as long as the span."""
    usual_time: Ints
    """What they would take if each took the mean of all with its name at its line."""
    work: Ints
    """A hash of their names, 0 without any: spans with the same one do the same."""


def host_compute_in_spans(trace: Trace, thread: Ints, begin: Ints, end: Ints) -> HostCompute:
    """Returns what operators compute in spans of serial host threads; nothing if a device does.

    Args:
        trace: The trace.
        thread: The number of each span's serial thread.
        begin: When it begins, in ns.
        end: When it ends, in ns; no later than its begin if it is empty.
    """
    found = HostCompute(*(np.zeros(thread.size, np.int64) for _ in range(3)))
    if device_work(trace).height:
        return found
    host = slices_on(trace, "host", ended=True)
    host = host.filter(pl.col("category").is_in(list(names.OPERATOR_CATEGORIES)))
    host = filter_by_name(host, lambda name: not names.is_collective_annotation(name))
    numbers = trace.tracks["thread"].gather(host["track"]).cast(pl.Int64).to_numpy()
    host = host.select(
        "start",
        "self",
        pl.col("name").cast(pl.String),
        line=pl.Series(numbered_source_sites(trace, host["id"]).number),
        number=pl.Series(np.append(serial_threads(trace).number_by_thread, NO_SLICE)[numbers]),
    ).sort("start")
    host = host.with_columns(
        usual=pl.col("self").mean().over("name", "line").round().cast(pl.Int64)
    )
    code = {name: hash_of_name(name) for name in host["name"].unique()}
    host = host.with_columns(code=pl.col("name").replace_strict(code, return_dtype=pl.Int64))
    for number in np.unique(thread).tolist():
        own = host.filter(pl.col("number") == number)
        spans = np.flatnonzero((thread == number) & (end > begin))
        low, high = (np.searchsorted(own["start"].to_numpy(), at[spans]) for at in (begin, end))
        for column, name in zip(found, ("self", "usual", "code"), strict=True):
            summed = np.append(0, np.cumsum(own[name].to_numpy()))  # a hash may overflow
            column[spans] = summed[high] - summed[low]
    over = found.time > np.maximum(end - begin, 0)
    share = np.where(over, np.maximum(end - begin, 0) / np.maximum(found.time, 1), 1.0)
    shorter = [np.rint(column * share).astype(np.int64) for column in found[:2]]
    return HostCompute(shorter[0], shorter[1], found.work)


def hash_of_name(name: str) -> int:
    """Returns a number that is the same in each process."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest(), "big")
