"""What bounds a step: the device, the launching of its work, or gaps between its work.

Two numbers tell: how busy the device is, and how often a kernel was launched onto a stream that had
nothing left to do. The window decides: a device may be busy from its first to its last kernel and
idle for half of the step, so the smaller of both shares counts.
"""

from typing import Final

import polars as pl

from selftime.advice.answer import Regime
from selftime.intervals import union
from selftime.trace import Trace

__all__ = ["regime"]

_BUSY: Final = ("kernel", "memcpy", "memset", "communication")
"""Columns of the view `steps` in which the device works."""
DEVICE_BOUND: Final = 0.95
"""From here on the device is the limit: what the host saves is not seen."""
FEW_GAPS: Final = 0.9
"""Below this the gaps are worth a cause."""
MANY_GAPS: Final = 0.8
"""Below this the device waits for a fifth of the time."""
STARVED: Final = 0.5
"""Launches onto an idle stream beyond this share: the host does not keep up."""
FED: Final = 0.25
"""Below this share the host keeps up, and gaps are few and large."""


def regime(trace: Trace) -> Regime | None:
    """What bounds the steps of this trace; None where there is nothing to tell it by."""
    device = _device_work(trace)
    if not device.height:
        return "host-only" if trace.slices.height else None
    if device["launched"].is_null().all():
        return None  # how it was fed is not in the trace
    busy = min(_busy_between_ends(device), _busy_in_steps(trace))
    starved = device.select((pl.col("idle_from") <= pl.col("launched")).mean()).item()
    return _told_by(busy, starved)


def _told_by(busy: float, starved: float | None) -> Regime | None:
    if busy >= DEVICE_BOUND:
        return "device-bound"
    if starved is None:
        return None  # one launch a stream: nobody knows whether the stream was idle before
    if busy < MANY_GAPS and starved > STARVED:
        return "launch-bound"
    return "gap-bound" if busy < FEW_GAPS and starved < FED else "mixed"


def _device_work(trace: Trace) -> pl.DataFrame:
    """Device slices with when they were launched and since when their stream had been idle."""
    work = trace.slices.filter(pl.col("duration").is_not_null()).join(
        trace.device_args.select("id"), on="id", how="semi"
    )
    launch = trace.slices.select(launch="id", launched="start")
    end = (pl.col("start") + pl.col("duration")).alias("end")
    return (
        work.with_columns(end)
        .join(launch, on="launch", how="left", maintain_order="left")
        .with_columns(pl.col("end").cum_max().shift(1).over("track").alias("idle_from"))
    )


def _busy_between_ends(device: pl.DataFrame) -> float:
    start, end = device["start"].to_numpy(), device["end"].to_numpy()
    busy = union(start, end)
    span = int(end.max() - start.min())
    return float((busy.ends - busy.starts).sum() / span) if span else 1.0


def _busy_in_steps(trace: Trace) -> float:
    steps = trace.view("steps").filter(pl.col("counted"))
    host = steps["host_time"].sum()
    return float(steps.select(pl.sum_horizontal(_BUSY).sum()).item() / host) if host else 1.0
