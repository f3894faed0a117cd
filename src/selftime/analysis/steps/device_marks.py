"""Steps told by the profiler's marks on a device, where the host has none of them."""

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.device.work import device_work
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.trace import Trace


def device_steps(trace: Trace, last: int | None) -> pl.DataFrame | None:
    """Steps from the first launch within each mark to that of the next: the columns of a step.

    The last ends when the host did its last, `last` (ns), or with its own mark. Columns: number,
    start, end (ns), cut, mark, track (null: it is no host's). None if there are no such marks, or
    their numbers do not rise from one to the next, as those of ROCm may not.
    """
    marks = filter_by_name(
        slices_on(trace, "device annotation"), lambda name: names.step_number(name) is not None
    ).filter(pl.col("duration").is_not_null())
    if not marks.height:
        return None
    marks = _fullest_track(marks).sort("start")
    text = marks["name"].cast(pl.String).to_list()
    number = np.array([names.step_number(name) for name in text], np.int64)
    if (np.diff(number) <= 0).any():
        return None
    begins, closing = marks["start"].to_numpy(), _ends(marks)
    work = device_work(trace)
    inside = np.searchsorted(begins, work["start"].to_numpy(), side="right") - 1
    launched = pl.coalesce(work["launched"], work["start"], eager=True).to_numpy()
    start = begins.copy()
    held = (inside >= 0) & (work["start"].to_numpy() < closing[inside])
    np.minimum.at(start, inside[held], launched[held])
    start = np.maximum.accumulate(start)
    end = np.append(start[1:], max(int(closing[-1]), last or 0))
    steps = {"number": number, "start": start, "end": end, "mark": text}
    return pl.DataFrame(steps).with_columns(cut=None, track=None).filter(end > start)


def _ends(marks: pl.DataFrame) -> np.ndarray:
    return (marks["start"] + marks["duration"]).to_numpy()


def _fullest_track(marks: pl.DataFrame) -> pl.DataFrame:
    """The marks of the stream that has most of them."""
    tracks = marks.group_by("track").len().sort("len", "track", descending=[True, False])
    return marks.filter(pl.col("track") == tracks["track"][0])
