"""Says what the process group of a collective is for, such as data or tensor parallelism."""

from typing import Final

import polars as pl

from selftime.names.collectives import parallel_axes_of_group

MESSAGES: Final = "messages"
"""The group of sends and receives, which are between two ranks."""


def communication_groups(rows: pl.DataFrame) -> pl.Series:
    """Returns for each collective what its process group is for.

    That is an axis, such as `TP` or `DP`, else the group's description, `MESSAGES` for those
    between two ranks that are not of a pipeline's group, or null if the trace does not tell.

    Args:
        rows: One row for each collective, with the columns collective and group_description.
    """
    description = pl.col("group_description")
    axes = {
        text: parallel_axes_of_group(text) or text
        for text in rows["group_description"].drop_nulls().unique().to_list()
    }
    axis = description.replace_strict(axes, default=None, return_dtype=pl.String)
    is_message = pl.col("collective").is_in(["send", "recv"])
    is_of_pipeline = (axis == "PP").fill_null(value=False)
    group = pl.when(is_message & ~is_of_pipeline).then(pl.lit(MESSAGES)).otherwise(axis)
    return rows.select(group.alias("group")).to_series()
