"""Allocated memory over time, split by what allocated it."""

import math
from typing import Annotated, Final

import polars as pl

from selftime.analysis.memory.block_grouping import GROUPING_COLUMNS_BY_OPTION, grouping_columns
from selftime.analysis.memory.holders_over_time import memory_holders_over_time
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import (
    LINE_EVIDENCE_DOC,
    MEMORY_DEVICE_COLUMNS,
    MEMORY_FUNCTION_COLUMN,
    MEMORY_HOLDER_COLUMNS,
    MEMORY_LINE_COLUMNS,
    NumberRange,
    PlusJoinedWords,
    view,
)

_MAX_INSTANTS: Final = 10_000


@view(
    Column("group", pl.Int64, "id", "The number of the row's group: the highest peak first."),
    Column(
        "holder",
        pl.String,
        "name",
        "A `group`, the `others`, or memory from `before the recording`, unknown or unaccounted.",
    ),
    *MEMORY_HOLDER_COLUMNS,
    *MEMORY_LINE_COLUMNS,
    MEMORY_FUNCTION_COLUMN,
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column("time", pl.Int64, "instant", "From when on the group has these bytes."),
    Column("bytes", pl.Int64, "bytes", "The group's bytes, until its next row."),
    *MEMORY_DEVICE_COLUMNS,
    needs=("memory",),
)
def memory_holders(  # noqa: PLR0913 - keyword-only options of the command
    trace: Trace,
    *,
    by: Annotated[str, PlusJoinedWords(tuple(GROUPING_COLUMNS_BY_OPTION))] = "category",
    device: str = "",
    groups: Annotated[
        int, NumberRange(0, math.inf, "how many groups stand alone, or 0 for all")
    ] = 8,
    points: Annotated[int, NumberRange(4, _MAX_INSTANTS, f"4 to {_MAX_INSTANTS}")] = 1000,
    start: int = 0,
    end: int = 0,
) -> pl.DataFrame:
    """Allocated memory of each device over time, by what allocated it.

    A group has a row for each instant at which its bytes change, so that the bytes of all groups at
    an instant add up to the total of `memory_curve` there. The instants are those of `memory_curve`
    with the same `points`, `start` and `end`. `by` is line, module, operator or category, or
    several joined by `+`; a row without a line, module or operator has the memory of which it is
    unknown. The `groups` with the highest peaks stand alone, and the `others` are one; 0 keeps
    all. `device` keeps one type, such as `cuda`.
    """
    rows = memory_holders_over_time(
        trace,
        device,
        grouping_columns(by),
        time_range=(start, end),
        max_records=points,
        max_groups=groups,
    )
    return memory_holders.table_of(rows)
