"""Finds the slices that a pattern means: a glob on names, or a source line such as `train.py:31`.

Of an operator, an annotation or a runtime call that is its host time with all that runs in it, and
the device work launched there; of a kernel or copy its device time alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.replay import Change, CutHostTime, RemoveWaits, ScaleDeviceWork
from selftime.analysis.device.device_work import device_work
from selftime.analysis.graph.serial_threads import serial_threads
from selftime.analysis.idle.host_waits import host_waits
from selftime.analysis.slice_arguments import parent_of_every_slice
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.analysis.slice_selection import slices_on_line, source_lines_of_all_slices
from selftime.array_types import Flags, Ints
from selftime.errors import UsageError
from selftime.intervals import Intervals
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace
from selftime.units import count_text

_CATEGORIES_MATCHED_ON_HOST: Final = (
    *names.OPERATOR_CATEGORIES,
    *names.ANNOTATION_CATEGORIES,
    *names.RUNTIME_CALL_CATEGORIES,
)
_MAX_NEAREST_NAMES: Final = 3
"""Largest number of existing names that the error about a pattern without a match lists."""
_MIN_NAME_SIMILARITY: Final = 0.3
"""Least similarity, 0 to 1, of a name to a pattern for the error to list it as one of the nearest.
"""
_GLOB_CHARACTERS: Final = "*?[]"


@dataclass(frozen=True, slots=True, eq=False)
class SelectedWork:
    """Host time, device work and waits that a change concerns, with the slices that they are of."""

    host_times: Intervals
    """Intervals of host time, in ns."""
    host: Ints
    """Slice ids of the host slices whose names are told."""
    device: Ints
    """Slice ids of kernels, copies and memsets."""
    waits: Ints
    """Slice ids of calls that wait for a device."""

    def changes(self, kept_share: float) -> tuple[Change, ...]:
        """Returns changes that leave `kept_share` of the time; waits go only if nothing is left."""
        return (
            *([CutHostTime(self.host_times, kept_share)] if self.host_times.starts.size else ()),
            *([ScaleDeviceWork(self.device, kept_share)] if self.device.size else ()),
            *([RemoveWaits(self.waits)] if self.waits.size and not kept_share else ()),
        )


def work_of_pattern(trace: Trace, pattern: str) -> SelectedWork:
    """Returns the work that a glob on names or a source line means.

    Raises:
        UsageError: There is none; the message names what is nearest.
    """
    place = _file_and_line(pattern)
    if place is not None:
        return _work_of_line(trace, *place)
    host = _named_host_slices(trace)
    host = filter_by_name(host, lambda name: _matches(name, pattern))
    work = device_work(trace)
    named = filter_by_name(
        work,
        lambda name: _matches(name, pattern) or _matches(names.short_kernel_name(name), pattern),
    )
    if not host.height and not named.height:
        raise UsageError(_sentence_of_missing_name(trace, pattern))
    return work_of_slices(trace, host, named["id"])


def work_of_slices(trace: Trace, host: pl.DataFrame, device_ids: pl.Series) -> SelectedWork:
    """Returns the work of host slices, with all that they launch and wait for, and device work.

    Host time counts on the threads that run the loop in turns: another thread works beside them.
    """
    flags = np.zeros(trace.slices.height, bool)
    flags[host["id"].to_numpy()] = True
    work, waits = device_work(trace), host_waits(trace)
    is_launched = _is_inside(trace, work["launch"], flags) | _is_inside(
        trace, work["operator"], flags
    )
    device = pl.concat([work["id"].filter(pl.Series(is_launched, dtype=pl.Boolean)), device_ids])
    is_waiting = _is_inside(trace, waits["id"], flags)
    return SelectedWork(
        host_times=covered_time(on_main_threads(trace, host)),
        host=ids_of(host["id"]),
        device=ids_of(device.unique().sort()),
        waits=ids_of(waits["id"].filter(pl.Series(is_waiting, dtype=pl.Boolean))),
    )


def _is_inside(trace: Trace, slice_ids: pl.Series, flags: Flags) -> Flags:
    """Returns for each slice id, which may be null, whether it is or lies in a flagged slice."""
    asked = slice_ids.cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    known = asked != NO_SLICE
    found = np.zeros(asked.size, bool)
    found[known] = nearest_ancestor(parent_of_every_slice(trace), flags, asked[known]) != NO_SLICE
    return found


def ids_of(slice_ids: pl.Series) -> Ints:
    return np.asarray(slice_ids.cast(pl.Int64).to_numpy())


def on_main_threads(trace: Trace, slices: pl.DataFrame) -> pl.DataFrame:
    """Returns the slices of known end on the main thread and on threads that take turns with it."""
    threads = serial_threads(trace)
    slices = slices.filter(pl.col("duration").is_not_null())
    thread = trace.tracks["thread"].gather(slices["track"]).cast(pl.Int64).to_numpy()
    number = threads.number_by_thread[thread]
    return slices.filter(pl.Series(number == threads.main_thread, dtype=pl.Boolean))


def _named_host_slices(trace: Trace) -> pl.DataFrame:
    """Returns the operators, annotations and runtime calls; the marks of steps are left out."""
    host = slices_on(trace, "host")
    host = host.filter(host["category"].is_in(list(_CATEGORIES_MATCHED_ON_HOST)))
    return filter_by_name(host, lambda name: names.profiler_step_number(name) is None)


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)


def _file_and_line(pattern: str) -> tuple[str, int] | None:
    """Returns the file and line that a pattern such as `train.py:31` names; None for others."""
    file, _, line = pattern.rpartition(":")
    return (file, int(line)) if file.endswith(".py") and line.isdecimal() else None


def _work_of_line(trace: Trace, file: str, line: int) -> SelectedWork:
    """Returns the work of a source line, and of the backward operators that belong to it."""
    host = pl.concat([slices_on(trace, "host"), slices_on(trace, "python")])
    host = filter_by_name(host, lambda name: names.profiler_step_number(name) is None)
    found = slices_on_line(trace, host, file, line)
    if not found.height:
        raise UsageError(_sentence_of_missing_line(trace, file, line))
    return work_of_slices(trace, found, pl.Series("id", [], dtype=pl.UInt32))


def _sentence_of_missing_line(trace: Trace, file: str, line: int) -> str:
    """Returns a sentence that names the lines of the file, or else the files, that are known."""
    places = source_lines_of_all_slices(trace).select("file", "line").drop_nulls().unique()
    named = [(str(name), int(number)) for name, number in places.cast({"file": pl.String}).rows()]
    asked = f"nothing in this trace is known to be of line {line} of `{file[:60]}`"
    near = sorted(
        (abs(n - line), n)
        for name, n in named
        if name.rpartition("/")[2] == file.rpartition("/")[2]
    )
    if near:
        lines = ", ".join(str(number) for _, number in near[:_MAX_NEAREST_NAMES])
        return f"{asked}; the nearest lines of it are {lines}"
    files = sorted({name for name, _ in named})
    listed = get_close_matches(file, files, _MAX_NEAREST_NAMES, _MIN_NAME_SIMILARITY) or files
    if not listed:
        return f"{asked}; no source line is known: record with `selftime run`, or with stacks"
    return f"{asked}; known are lines of {_quoted(listed)}"


def _sentence_of_missing_name(trace: Trace, pattern: str) -> str:
    """Returns a sentence that says that no name matches, and lists the nearest names."""
    work = device_work(trace)["name"].unique().cast(pl.String).to_list()
    host = _named_host_slices(trace)["name"].unique().cast(pl.String).to_list()
    existing = sorted({*host, *map(names.short_kernel_name, work)})
    asked = f"no operator, call or kernel in this trace is named `{pattern[:60]}`"
    if not existing:
        return f"{asked}: it holds none; record one with `selftime run`"
    plain = "".join(letter for letter in pattern if letter not in _GLOB_CHARACTERS)
    near = get_close_matches(plain, existing, _MAX_NEAREST_NAMES, _MIN_NAME_SIMILARITY)
    if near:
        return f"{asked}; the nearest of {count_text(len(existing))} names are {_quoted(near)}"
    return f"{asked}; there are {count_text(len(existing))} names, such as {_quoted(existing)}"


def _quoted(texts: Iterable[str]) -> str:
    return ", ".join(f"`{text[:80]}`" for text in list(texts)[:_MAX_NEAREST_NAMES])
