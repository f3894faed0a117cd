"""Says what bounds a step, by the time that each class takes of it."""

from typing import Final

import polars as pl

MEMORY_BANDWIDTH: Final = "memory_bandwidth"
"""What bounds the step where devices compute as fast as their memory lets them."""

MIN_SHARE_OF_LARGEST_BOUND: Final = 0.75
"""Smallest time of a class, as a share of the largest class's time, to bound the step as well."""


def what_bounds_the_step(pieces: pl.DataFrame) -> tuple[str, ...]:
    """Returns the classes that bound the step, largest first; computing is told apart by its limit.

    Work of devices whose model says that the bandwidth of memory limits it counts as
    `memory_bandwidth`, if most of the modelled work is of that kind.

    Args:
        pieces: The segments of the account, with columns class, step_time (ns), efficiency and
            by_memory.
    """
    times = pieces.group_by("class").agg(pl.col("step_time").sum()).sort("step_time", "class")
    largest = times.reverse().rows()
    most = largest[0][1]
    bounding = [name for name, time in largest if time >= MIN_SHARE_OF_LARGEST_BOUND * most]
    is_modelled = pl.col("efficiency").is_not_null() & pl.col("on_device")
    computing = pieces.filter(pl.col("class") == "compute")
    modelled = computing.filter(is_modelled)
    limited = float(modelled.filter("by_memory")["step_time"].sum())
    if 2 * limited > float(computing["step_time"].sum()):
        bounding = [MEMORY_BANDWIDTH if name == "compute" else name for name in bounding]
    return tuple(bounding)
