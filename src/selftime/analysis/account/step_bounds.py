"""Says what bounds a step, by the time that each class takes of it.

This is the one definition: what the answer and the overview say follows from it. The regime of the
advice's JSON tells more coarsely how a device is fed.
"""

from typing import Final

import polars as pl

from selftime.analysis.account.step_account import account_segments_of_kind
from selftime.analysis.account.undisturbed_step import undisturbed_factors_of_segments
from selftime.analysis.account.useful_work import (
    MIN_PEAK_SHARE_OF_NEEDED_WORK,
    efficiencies_of_segments,
)
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.trace import Trace

MEMORY_BANDWIDTH: Final = "memory_bandwidth"
"""What bounds the step where devices compute as fast as their memory lets them."""

HOST_COMPUTE: Final = "host_compute"
"""What bounds the step of a program that uses a device where operators on the host do."""

MIN_SHARE_OF_LARGEST_BOUND: Final = 0.75
"""Smallest time of a class, as a share of the largest class's time, to bound the step as well."""


BOUND_BY_PHRASES: Final = {
    "compute": "computing",
    HOST_COMPUTE: "computing on the host",
    MEMORY_BANDWIDTH: "the device's memory bandwidth",
    "communication": "communication",
    "copy": "copies",
    "data_wait": "waits for data",
    "launch": "launches of device work",
    "python": "Python on the host",
    "device_wait": "waits for the device",
    "compile": "compilation",
    "capture": "the capture of a CUDA graph",
    "garbage_collection": "garbage collections",
    "idle": "gaps before device work",
    "other": "what the trace does not explain",
}
"""Maps what bounds a step to the words that follow `bound by`."""


def bound_by_phrase(bounds: tuple[str, ...]) -> str:
    """Returns what bounds a step in words, to follow `bound by`.

    >>> bound_by_phrase(("data_wait", "python"))
    'waits for data and Python on the host'
    """
    *others, last = (BOUND_BY_PHRASES[name] for name in bounds)
    return f"{', '.join(others)} and {last}" if others else last


@cached_per_trace
def bounds_of_counted_steps(trace: Trace) -> tuple[str, ...]:
    """Returns what bounds the counted steps, largest first; nothing without steps."""
    segments, steps = account_segments_of_kind(trace)
    if not segments.height:
        return ()
    pieces = segments.hstack(efficiencies_of_segments(trace, segments))
    pieces = with_time_of_mean_step(trace, pieces, steps)
    return what_bounds_the_step(pieces, uses_device=trace.device_args.height > 0)


def with_time_of_mean_step(trace: Trace, segments: pl.DataFrame, steps: int) -> pl.DataFrame:
    """Returns segments of the account with `step_time`: their ns in a mean step, unrecorded."""
    time = segments["end"] - segments["start"]
    factors = undisturbed_factors_of_segments(trace, segments, steps)
    factor = pl.when("on_device").then(factors.on_device).otherwise(factors.elsewhere)
    return segments.with_columns(step_time=time * factor / steps)


def what_bounds_the_step(pieces: pl.DataFrame, *, uses_device: bool) -> tuple[str, ...]:
    """Returns the classes that bound the step, largest first; computing is told apart.

    Computing counts as `memory_bandwidth` if most of it is work of devices that the bandwidth of
    memory limits, by its model, and that runs near that limit; as `host_compute` if most of it is
    on the host of a program that uses a device.

    Args:
        pieces: The segments of the account, with columns class, on_device, step_time (ns),
            efficiency and by_memory.
        uses_device: Whether a device works in the recording.
    """
    pieces = pieces.select(
        pl.col("class").cast(pl.String), "on_device", "step_time", "efficiency", "by_memory"
    )
    times = pieces.group_by("class").agg(pl.col("step_time").sum()).sort("step_time", "class")
    largest = times.reverse().rows()
    most = largest[0][1]
    bounding = [name for name, time in largest if time >= MIN_SHARE_OF_LARGEST_BOUND * most]
    is_near_limit = pl.col("efficiency") >= MIN_PEAK_SHARE_OF_NEEDED_WORK
    computing = pieces.filter(pl.col("class") == "compute")
    limited = computing.filter(pl.col("on_device") & pl.col("by_memory") & is_near_limit)
    if 2 * float(limited["step_time"].sum()) > float(computing["step_time"].sum()):
        bounding = [MEMORY_BANDWIDTH if name == "compute" else name for name in bounding]
    on_host = computing.filter(~pl.col("on_device"))["step_time"].sum()
    if uses_device and 2 * float(on_host) > float(computing["step_time"].sum()):
        bounding = [HOST_COMPUTE if name == "compute" else name for name in bounding]
    return tuple(bounding)
