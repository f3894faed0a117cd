"""Compares row by row what the steps of two recordings are spent on, along their critical paths.

Rows are matched by the class of time, the name of what ran, and the function of the source line:
line numbers change where a program is edited.
"""

from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.account.step_account import account_segments
from selftime.analysis.slice_filters import common_value_expression
from selftime.compare.amounts_per_step import AmountsPerStep, mean_and_variance_over_steps
from selftime.compare.difference_columns import (
    DIFFERENCE_COLUMNS,
    difference_columns,
    difference_verdicts,
)
from selftime.schema import Column, Table
from selftime.trace import Trace

ACCOUNT_TABLE: Final = Table(
    "account",
    "What the mean step is spent on, along its critical path; rows add up to the step.",
    (
        Column("class", pl.String, "name", "What the time was spent on, as in the view `account`."),
        Column(
            "what",
            pl.String,
            "name",
            "The optimizer, operator, Python function or kernel that took the time.",
            True,
        ),
        Column("function", pl.String, "name", "The function of the source line.", True),
        *DIFFERENCE_COLUMNS,
        Column(
            "line_before",
            pl.Int64,
            "id",
            "The source line before the change; null if unknown or several.",
            True,
        ),
        Column(
            "line_after",
            pl.Int64,
            "id",
            "The source line after the change; null if unknown or several.",
            True,
        ),
    ),
)

_KEYS: Final = ("class", "what", "function")
"""Columns by which rows of two accounts are matched."""


def compared_accounts(before: Trace, after: Trace) -> pl.DataFrame:
    """Returns `ACCOUNT_TABLE`, the row with the largest difference first."""
    sides = [_matchable_segments(trace) for trace in (before, after)]
    rows = pl.concat([side.select(_KEYS) for side in sides]).unique(maintain_order=True)
    if not rows.height:
        return ACCOUNT_TABLE.empty()
    spent, counts, lines = [], [], []
    for side in sides:
        item = _row_numbers(side, rows)
        steps = side["step"].rank("dense").to_numpy().astype(np.int64) - 1
        count = max(side["step"].n_unique(), 1)
        times = AmountsPerStep(item, steps, side["time"].to_numpy())
        spent.append(mean_and_variance_over_steps(times, rows.height, count))
        counts.append(np.bincount(item, minlength=rows.height))
        lines.append(_common_lines(side, rows))
    columns: dict[str, Any] = {
        **rows.to_dict(),
        **difference_columns(*spent),
        "verdict": difference_verdicts(*spent, *counts),
        "line_before": lines[0],
        "line_after": lines[1],
    }
    table = pl.DataFrame(columns, schema_overrides=ACCOUNT_TABLE.dtypes)
    order = (pl.col("difference").abs(), pl.max_horizontal("before", "after"))
    return table.sort(order, descending=True, maintain_order=True).select(*ACCOUNT_TABLE.dtypes)


def _matchable_segments(trace: Trace) -> pl.DataFrame:
    """Returns the segments of the counted steps, with names that no line number is in."""
    segments = account_segments(trace)
    if segments["counted"].any():
        segments = segments.filter("counted")
    unique = segments["what"].unique().drop_nulls().cast(pl.String)
    shown = unique.map_elements(_name_without_line, pl.String)
    named = segments["what"].cast(pl.String).replace(unique, shown)
    return segments.select(
        pl.col("class").cast(pl.String),
        named.alias("what"),
        "function",
        "step",
        pl.col("line").cast(pl.Int64),
        time=pl.col("end") - pl.col("start"),
    )


def _name_without_line(name: str) -> str:
    """Returns the name; of a Python frame the function alone, since its line changes by edits."""
    frame = names.parse_frame(name)
    return name if frame is None else frame.function


def _row_numbers(side: pl.DataFrame, rows: pl.DataFrame) -> np.ndarray:
    numbered = rows.with_row_index("item")
    joined = side.join(numbered, on=_KEYS, how="left", nulls_equal=True, maintain_order="left")
    return joined["item"].to_numpy().astype(np.int64)


def _common_lines(side: pl.DataFrame, rows: pl.DataFrame) -> pl.Series:
    """Returns for each row its line in one recording; null if it is unknown or several."""
    lines = side.group_by(_KEYS).agg(common_value_expression("line"))
    joined = rows.join(lines, on=_KEYS, how="left", nulls_equal=True, maintain_order="left")
    return joined["line"]
