"""Tells which names a change matched, and how long they took in the recorded steps."""

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
from selftime.array_types import Ints
from selftime.intervals import Intervals, intersect, length
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
    """Host time in ms per measured step that the change shortens; without waits for a device."""
    device_ms: float
    """Time in ms per measured step in which at least one device runs work that it shortens."""
    name_count: int
    names: tuple[MatchedName, ...]
    """The names of the longest times, at most `MAX_MATCHED_NAMES`."""


def matched_work(trace: Trace, replay: Replay, work: SelectedWork) -> MatchedWork:
    """Returns what a change matched in the measured steps of a trace."""
    steps = max(len(replay.counted), 1)
    device = device_work(trace).filter(pl.col("id").is_in(pl.Series(work.device).implode()))
    found = _named_slices(trace, work, device)
    told = [
        MatchedName(
            name=name,
            kind=kind,
            count_per_step=_count_in(own, replay.spans) / steps,
            ms=length(intersect(covered_time(own), replay.spans)) / 1e6 / steps,
        )
        for (name, kind), own in sorted(found.partition_by("name", "kind", as_dict=True).items())
    ]
    told.sort(key=lambda one: (-one.ms, one.name))
    return MatchedWork(
        host_ms=length(intersect(work.host_times, replay.spans)) / 1e6 / steps,
        device_ms=length(intersect(covered_time(device), replay.spans)) / 1e6 / steps,
        name_count=len(told),
        names=tuple(told[:MAX_MATCHED_NAMES]),
    )


def _named_slices(trace: Trace, work: SelectedWork, device: pl.DataFrame) -> pl.DataFrame:
    """Returns name, kind, start and duration of the matched slices; kernels have short names.

    Of host slices those that were asked for; of device work all that is changed.
    """
    columns = ("name", "category", "start", "duration")
    host = trace.slices[pl.Series(work.host)].filter(pl.col("duration").is_not_null())
    host = host.with_columns(pl.col("name").cast(pl.String))
    short = device.with_columns(
        pl.col("name")
        .cast(pl.String)
        .replace_strict(_short_names(device["name"]), return_dtype=pl.String)
    )
    both = pl.concat([host.select(columns), short.select(columns)])
    return slices_of_kind(both, "any")


def _short_names(kernel_names: pl.Series) -> dict[str, str]:
    return {name: names.short_kernel_name(name) for name in kernel_names.cast(pl.String).unique()}


def _count_in(slices: pl.DataFrame, spans: Intervals) -> int:
    start: Ints = slices["start"].to_numpy()
    at = np.searchsorted(spans.starts, start, side="right") - 1
    return int(((at >= 0) & (start < np.append(spans.ends, 0)[at])).sum())
