"""Says what bounds a step, by the time that each class takes of it."""

from typing import Final

import polars as pl

from selftime.advice.account.useful_work import MIN_PEAK_SHARE_OF_NEEDED_WORK

MEMORY_BANDWIDTH: Final = "memory_bandwidth"
"""What bounds the step where devices compute as fast as their memory lets them."""

MIN_SHARE_OF_LARGEST_BOUND: Final = 0.75
"""Smallest time of a class, as a share of the largest class's time, to bound the step as well."""


def what_bounds_the_step(pieces: pl.DataFrame) -> tuple[str, ...]:
    """Returns the classes that bound the step, largest first; computing is told apart by its limit.

    Computing counts as `memory_bandwidth` if most of it is work of devices that the bandwidth of
    memory limits, by its model, and that runs near that limit.

    Args:
        pieces: The segments of the account, with columns class, step_time (ns), efficiency and
            by_memory.
    """
    times = pieces.group_by("class").agg(pl.col("step_time").sum()).sort("step_time", "class")
    largest = times.reverse().rows()
    most = largest[0][1]
    bounding = [name for name, time in largest if time >= MIN_SHARE_OF_LARGEST_BOUND * most]
    is_near_limit = pl.col("efficiency") >= MIN_PEAK_SHARE_OF_NEEDED_WORK
    computing = pieces.filter(pl.col("class") == "compute")
    limited = computing.filter(pl.col("on_device") & pl.col("by_memory") & is_near_limit)
    if 2 * float(limited["step_time"].sum()) > float(computing["step_time"].sum()):
        bounding = [MEMORY_BANDWIDTH if name == "compute" else name for name in bounding]
    return tuple(bounding)
