"""Finds source lines in a run's ledger, and the error of times from stack readings."""

from collections.abc import Mapping
from math import sqrt
from typing import Any

import polars as pl

from selftime.advice.rule_definition import Where
from selftime.ledger_format import LONGEST_READING_PAUSE_NS
from selftime.run import Run


def where_from_reading(row: Mapping[str, Any]) -> Where:
    """Returns the line of a stack reading or of a new iterator, in a row of the ledger's tables."""
    if row.get("file") is None:
        return Where()
    return Where(row["file"], row["line"], row["function"], "stack")


def where_from_compilation(run: Run, row: Mapping[str, Any]) -> Where:
    """Returns the user's line of a compilation, in a row of `compilations_with_sites`.

    The line of the loop that makes the steps where the compiled function is a library's.
    """
    if row["how"] is None:
        return where_of_step_loop(run)
    function = row["function"] if row["how"] == "definition" else None
    return Where(row["file"], row["line"], function, row["how"])


def where_of_step_loop(run: Run) -> Where:
    """Returns the line of the loop in which most of the steps' time was spent, if it is known."""
    times = (
        run.segments.drop_nulls("kind")
        .group_by(pl.col("kind").cast(pl.String))
        .agg(pl.col("duration").sum())
        .sort("duration", descending=True)
    )
    known = [kind for kind in times["kind"] if kind in run.loop_lines]
    if not known:
        return Where()
    file, line = run.loop_lines[known[0]]
    return Where(file, line, None, "stack")


def reading_error(segments: int) -> int:
    """Returns the error, in ns, of a time estimated from stack readings in so many segments.

    In each segment the first and the last reading miss up to a pause; these errors are independent.
    """
    return int(LONGEST_READING_PAUSE_NS * sqrt(segments))
