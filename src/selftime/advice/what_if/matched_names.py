"""Tells which names a change matched, and how long they took in the recorded steps."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.replay import Replay
from selftime.advice.what_if.selected_work import SelectedWork
from selftime.analysis.device.device_work import device_work
from selftime.analysis.slice_filters import covered_time
from selftime.analysis.slice_selection import slices_of_kind
from selftime.analysis.steps.steady_steps import counted_step_windows
from selftime.array_types import Ints
from selftime.intervals import Intervals, intersect, length, union
from selftime.trace import Trace

MAX_MATCHED_NAMES: Final = 20
"""Largest number of names that are told of one change, those with the longest times."""


@dataclass(frozen=True, slots=True)
class MatchedName:
    """A name that a change matched, with its mean times per recorded step."""

    name: str
    kind: str
    """Kind of the slices: operator, annotation, frame, call, kernel, copy or other."""
    count_per_step: float
    ms: float
    """Time in ms per measured step in which at least one slice of this name ran."""


@dataclass(frozen=True, slots=True)
class MatchedWork:
    """What a change matched: times per recorded step in ms, and the names."""

    host_ms: float
    """Host time in ms per measured step that the change concerns."""
    device_ms: float
    """Time in ms per measured step in which at least one device runs work that it concerns."""
    name_count: int
    names: tuple[MatchedName, ...]
    """The names of the longest times, at most `MAX_MATCHED_NAMES`."""


def matched_work(trace: Trace, replay: Replay, work: SelectedWork) -> MatchedWork:
    """Returns what a change matched in the measured steps of a trace."""
    device = device_work(trace).filter(pl.col("id").is_in(pl.Series(work.device).implode()))
    windows = counted_step_windows(trace)
    on_host = union(windows["start"].to_numpy(), windows["end"].to_numpy())
    told = [
        *_matched_names(_named_host_slices(trace, work), on_host, windows.height),
        *_matched_names(_named_device_work(device), replay.spans, len(replay.counted)),
    ]
    told.sort(key=lambda one: (-one.ms, one.name))
    return MatchedWork(
        host_ms=_ms_per_step(_host_times_with_waits(trace, work), on_host, windows.height),
        device_ms=_ms_per_step(covered_time(device), replay.spans, len(replay.counted)),
        name_count=len(told),
        names=tuple(told[:MAX_MATCHED_NAMES]),
    )


def _host_times_with_waits(trace: Trace, work: SelectedWork) -> Intervals:
    """Returns the host time that a change concerns; if that is waits alone, their time."""
    if work.host_times.starts.size or not work.waits.size:
        return work.host_times
    return covered_time(trace.slices[pl.Series(work.waits)].drop_nulls("duration"))


def _ms_per_step(times: Intervals, spans: Intervals, step_count: int) -> float:
    return length(intersect(times, spans)) / 1e6 / max(step_count, 1)


def _matched_names(
    slices: pl.DataFrame, spans: Intervals, step_count: int
) -> Iterator[MatchedName]:
    """Yields the names of slices; times and counts are of the measured steps at `spans`."""
    for (name, kind), own in sorted(slices.partition_by("name", "kind", as_dict=True).items()):
        yield MatchedName(
            name=name,
            kind=kind,
            count_per_step=_count_in(own, spans) / max(step_count, 1),
            ms=_ms_per_step(covered_time(own), spans, step_count),
        )


def _named_host_slices(trace: Trace, work: SelectedWork) -> pl.DataFrame:
    """Returns the host slices that were asked for, of known end, with their kind."""
    host = trace.slices[pl.Series(work.host)].drop_nulls("duration")
    return slices_of_kind(host.with_columns(pl.col("name").cast(pl.String)), "any")


def _named_device_work(device: pl.DataFrame) -> pl.DataFrame:
    """Returns device work with its kind; kernels have their short names."""
    text = device["name"].cast(pl.String)
    short = {name: names.short_kernel_name(name) for name in text.unique()}
    told = device.drop("kind").with_columns(name=text.replace_strict(short, return_dtype=pl.String))
    return slices_of_kind(told, "any")


def _count_in(slices: pl.DataFrame, spans: Intervals) -> int:
    start: Ints = slices["start"].to_numpy()
    at = np.searchsorted(spans.starts, start, side="right") - 1
    return int(((at >= 0) & (start < np.append(spans.ends, 0)[at])).sum())
