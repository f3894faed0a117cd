"""Assigns each segment of the critical path to a class of time, such as compute or communication.

Segments of device work, waits for data and garbage collections already have a class. The class of
host time follows from the names of its operator or Python frame and of those that enclose it: a
compilation, a wait for data, a collective, a copy, or a wait for the device. Any other call of the
device's runtime launches device work; any other operator does, or computes on the CPU. Host time
between operators is of the class `python` where Python frames were recorded. An annotation alone
does not tell what ran in it: the program, C++, or a thread that it waits for.
"""

from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.device.device_work import is_device_unrecorded
from selftime.analysis.device.graph_captures import graph_making_times, is_within_times
from selftime.analysis.graph.dependency_graphs import PATH_SEGMENT_KINDS
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_ancestors import nearest_ancestor_of_slices
from selftime.analysis.slice_arguments import (
    caller_of_every_frame,
    enclosing_frame_of_every_slice,
    parent_of_every_slice,
)
from selftime.analysis.slice_filters import matches_name
from selftime.analysis.slice_grouping import slice_codes_by_category_and_name
from selftime.array_types import Flags, Ints
from selftime.nesting import NO_SLICE, flag_with_ancestors, nearest_ancestor
from selftime.trace import Trace

TIME_CLASSES: Final = (
    "compute",
    "communication",
    "copy",
    "data_wait",
    "launch",
    "python",
    "device_wait",
    "compile",
    "capture",
    "garbage_collection",
    "idle",
    "other",
)
"""What the time of a step can be spent on; each nanosecond belongs to exactly one of them.

compute: kernels, and operators on the CPU. communication: collectives and transfers between ranks.
copy: between host and device. data_wait: for a batch. launch: operators and calls that launch
device work. python: the interpreter, between operators, where Python frames show it. device_wait:
calls in which the host waits for the device, and launched work that waits for what the device does
unrecorded. compile: compilation of code. capture: what is captured into a CUDA graph, and does not
run. garbage_collection: Python's collector. idle: nothing is known to run, while device work is
about to begin. other: the recorder itself, and time that the trace does not explain.
"""

_WORK_CATEGORIES: Final = (*names.OPERATOR_CATEGORIES, *names.RUNTIME_CALL_CATEGORIES)
"""Categories of host slices that compute, or launch device work."""

_CODE_OF_CLASS: Final = {name: code for code, name in enumerate(TIME_CLASSES)}
_UNTOLD: Final = len(TIME_CLASSES)
"""Code of a slice whose name does not show its class."""

_CLASS_OF_PATH_SEGMENT_KIND: Final = {
    "compute": "compute",
    "communication": "communication",
    "copy": "copy",
    "data": "data_wait",
    "gc": "garbage_collection",
    "latency": "idle",
    "unknown": "idle",
}
"""The class of a segment by its kind, except for those of the host."""


_CLASSES_OF_CAPTURED_TIME: Final = (
    "compute",
    "communication",
    "copy",
    "launch",
    "python",
    "device_wait",
    "other",
)
"""Classes of the host's time that count as `capture` while a graph is made."""


def time_class_of_segments(trace: Trace, segments: pl.DataFrame) -> pl.Series:
    """Returns the class of each segment of `critical_path_segments`, one of `TIME_CLASSES`.

    Those of the host lie within the making of a CUDA graph, or outside of it.
    """
    kinds, links = segments["kind"], segments["link"]
    told = [_CLASS_OF_PATH_SEGMENT_KIND.get(kind, "other") for kind in PATH_SEGMENT_KINDS]
    code_of_kind = np.array([_CODE_OF_CLASS[name] for name in told])
    code = code_of_kind[kinds.to_physical().to_numpy()]
    code[((kinds == "latency") & (links == "launch")).to_numpy()] = _CODE_OF_CLASS["launch"]
    on_host = np.flatnonzero((kinds == "host").to_numpy())
    slices = segments["slice"].cast(pl.Int64).fill_null(NO_SLICE).to_numpy()[on_host]
    code[on_host] = _class_codes_of_host_slices(trace, slices)
    middle = ((segments["start"] + segments["end"]) // 2).to_numpy()[on_host]
    captured = on_host[is_within_times(graph_making_times(trace), middle)]
    of_work = [_CODE_OF_CLASS[name] for name in _CLASSES_OF_CAPTURED_TIME]
    code[captured[np.isin(code[captured], of_work)]] = _CODE_OF_CLASS["capture"]
    dtype = pl.Enum(TIME_CLASSES)
    return pl.Series(TIME_CLASSES, dtype=dtype).gather(pl.Series(code)).alias("class")


def _class_codes_of_host_slices(trace: Trace, slice_ids: Ints) -> Ints:
    """Returns the code of the class of each host slice's time; `other` where the id is -1."""
    found = np.full(slice_ids.size, _CODE_OF_CLASS["other"], np.int64)
    known = np.flatnonzero(slice_ids != NO_SLICE)
    if not known.size:
        return found
    own = slice_ids[known]
    told = _told_class_around(trace, own)
    is_operator = trace.slices["category"].is_in(list(_WORK_CATEGORIES)).to_numpy()
    is_call = trace.slices["category"].is_in(list(names.RUNTIME_CALL_CATEGORIES)).to_numpy()
    launches = _launching_slices(trace) | is_call
    if is_device_unrecorded(trace) and not is_call.any():
        launches[:] = True  # which operators launch work is as unknown as that work
    of_work = np.where(launches[own], _CODE_OF_CLASS["launch"], _CODE_OF_CLASS["compute"])
    has_frames = trace.slices["category"].is_in(list(names.FRAME_CATEGORIES)).any()
    between = _CODE_OF_CLASS["python" if has_frames else "other"]
    untold = np.where(is_operator[own], of_work, between)
    found[known] = np.where(told == _UNTOLD, untold, told)
    return found


def _told_class_around(trace: Trace, slice_ids: Ints) -> Ints:
    """Returns the class of a slice by its name or that of an enclosing slice; else no class.

    Of several the innermost counts, and operators count before Python frames.
    """
    codes = _told_class_of_every_slice(trace)
    is_told, frames = codes != _UNTOLD, enclosing_frame_of_every_slice(trace)
    inner = nearest_ancestor_of_slices(trace, is_told, slice_ids)
    holder = nearest_ancestor_of_slices(trace, frames != NO_SLICE, slice_ids)
    frame = np.where(holder == NO_SLICE, NO_SLICE, frames[holder])
    outer = nearest_ancestor(caller_of_every_frame(trace), is_told, frame)
    chosen = np.where(inner == NO_SLICE, outer, inner)
    return np.where(chosen == NO_SLICE, _UNTOLD, codes[chosen])


@cached_per_trace
def _told_class_of_every_slice(trace: Trace) -> Ints:
    """Returns the code of each slice's class by its name; `_UNTOLD` if the name shows no class."""
    codes = slice_codes_by_category_and_name(
        trace.slices, lambda *slice_: _CODE_OF_CLASS.get(_told_class(*slice_) or "", _UNTOLD)
    )
    return codes.astype(np.int64)


def _told_class(category: str, name: str) -> str | None:
    """Returns a slice's class by its category and name; None if they do not show it."""
    if category in names.RUNTIME_CALL_CATEGORIES:
        return "device_wait" if names.is_blocking_call(name) else None
    means = {
        "other": names.is_profiler_overhead,
        "garbage_collection": names.is_garbage_collection,
        "compile": names.is_compilation,
        "data_wait": names.is_next_batch_frame
        if category in names.FRAME_CATEGORIES
        else names.is_data_loading,
        "communication": names.is_collective_call,
    }
    return next((name_ for name_, is_so in means.items() if is_so(name)), None)


@cached_per_trace
def _launching_slices(trace: Trace) -> Flags:
    """Flags the host slices that launched device work, themselves or by a slice within them.

    Calls of the device's runtime are such slices, whether or not the work was recorded: in the
    capture of a graph it does not run.
    """
    parent, slices = parent_of_every_slice(trace), trace.slices
    is_launch = slices["category"].is_in(list(names.RUNTIME_CALL_CATEGORIES)).to_numpy()
    is_launch = is_launch & matches_name(slices, names.is_launch)
    told = slices["launch"].drop_nulls().cast(pl.Int64).to_numpy()
    return flag_with_ancestors(parent, np.concatenate([told, np.flatnonzero(is_launch)]))
