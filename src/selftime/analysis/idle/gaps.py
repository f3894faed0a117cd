"""Idle gaps of devices and streams, with the device work before and after each gap.

A gap is time outside the union of the work, so overlapping kernels count once. Gaps lie within the
program's steps: a device is also idle before the first work of a step, and between steps.
"""

from typing import Final, Literal

import numpy as np
import polars as pl

from selftime.analysis.slice_filters import covered_time
from selftime.analysis.steps.steady_steps import (
    counted_step_spans,
    recorded_time_windows_of_steps,
    steps_with_counted_flags,
)
from selftime.intervals import Intervals, clip, subtract, union
from selftime.trace import Trace

IdleGapScope = Literal["device", "stream"]

_IDLE_GAPS_SCHEMA: Final = {
    "start": pl.Int64,
    "end": pl.Int64,
    "device": pl.Int32,
    "stream": pl.Int64,
    "before": pl.UInt32,
    "after": pl.UInt32,
}


def observed_time_in_steps(trace: Trace, *, counted_steps_only: bool = False) -> Intervals:
    """Returns the time, as intervals in ns, that steps cover, from the first begin to the last end.

    A step is done when the device has finished what the step launched. Time between windows of the
    profiler is excluded. With `counted_steps_only`, only steps that count for medians are included,
    each from when the previous step was done.
    """
    steps = steps_with_counted_flags(trace)
    if counted_steps_only:
        windows = counted_step_spans(steps)
        return union(windows["begin"].to_numpy(), windows["done"].to_numpy())
    return recorded_time_windows_of_steps(steps)


def idle_gaps_in_work(work: pl.DataFrame, observed: Intervals, scope: IdleGapScope) -> pl.DataFrame:
    """Returns the idle gaps of every device, or of every stream, within the observed time.

    Columns: start, end (ns); device, stream (null in scope `device`); before, after: the slices of
    the work that ended last before the gap and that begins next, null where there is none. The gaps
    of one device or stream are sorted and disjoint. Gaps of a stream lie between its own first and
    last work, because a stream is not expected to work outside those.
    """
    keys = ["device"] if scope == "device" else ["device", "stream"]
    real = work.filter(pl.col("duration") > 0)
    found = [pl.DataFrame(schema=_IDLE_GAPS_SCHEMA)]
    for place, own in real.group_by(keys, maintain_order=True):
        looked_at = observed
        if scope == "stream":
            looked_at = clip(
                observed, int(own["start"].to_numpy()[0]), int(own["end"].to_numpy().max())
            )
        found.append(
            _idle_gaps_of_device_or_stream(own, looked_at).with_columns(
                **_device_and_stream_expressions(keys, place)
            )
        )
    return pl.concat([table.select(*_IDLE_GAPS_SCHEMA) for table in found])


def _device_and_stream_expressions(
    keys: list[str], values: tuple[object, ...]
) -> dict[str, pl.Expr]:
    told = dict(zip(keys, values, strict=True))
    return {
        key: pl.lit(told.get(key), dtype=_IDLE_GAPS_SCHEMA[key]) for key in ("device", "stream")
    }


def _idle_gaps_of_device_or_stream(work: pl.DataFrame, observed: Intervals) -> pl.DataFrame:
    """Returns the idle gaps of one device or stream, from its work sorted by start."""
    idle = subtract(observed, covered_time(work))
    by_end = work.sort("end", maintain_order=True)
    before = np.searchsorted(by_end["end"].to_numpy(), idle.starts, side="right") - 1
    after = np.searchsorted(work["start"].to_numpy(), idle.ends, side="left")
    return pl.DataFrame(
        {
            "start": idle.starts,
            "end": idle.ends,
            "before": _slice_ids_at_or_null(by_end["id"], before),
            "after": _slice_ids_at_or_null(work["id"], after),
        }
    )


def _slice_ids_at_or_null(slice_ids: pl.Series, indexes: np.ndarray) -> pl.Series:
    """Returns the slice ids at the given indexes; null where an index is out of range."""
    place = pl.Series(indexes, dtype=pl.Int64)
    return slice_ids.gather(
        place.set((place < 0) | (place >= slice_ids.len()), None).cast(pl.UInt32)
    )
