"""What a trace tells of slices beyond the slices themselves: rows of its other tables, by id.

A table has at most one row for each slice. Where that row is stands in an array, made once a trace,
so that to ask for many slices is to look them up, and not to join tables.
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.analysis.cached import cached_per_trace
from selftime.nesting import NONE
from selftime.trace import Trace


def arguments_of(trace: Trace, table: str, ids: pl.Series, *columns: str) -> pl.DataFrame:
    """Columns of one of the trace's tables for these slices, a row for each id, in their order.

    Null where the table has no row for a slice, and where an id is null.
    """
    source: pl.DataFrame = getattr(trace, table)
    return source.select(pl.col(*columns).gather(argument_rows(trace, table, ids)))


def argument_rows(trace: Trace, table: str, ids: pl.Series) -> pl.Series:
    """The row of one of the trace's tables for each slice, null where it has none."""
    known = _rows(trace)
    source: pl.DataFrame = getattr(trace, table)
    if table not in known:
        own = source["id"].to_numpy()
        size = max(trace.slices.height, int(own.max(initial=0)) + 1)  # a part may lack slices
        place = np.full(size, NONE, np.int32)
        place[own] = np.arange(own.size, dtype=np.int32)
        known[table] = place
    asked = ids.cast(pl.UInt32)
    if asked.null_count():
        rows = pl.Series(known[table]).gather(asked)
    else:
        rows = pl.Series(known[table][asked.to_numpy()])
    untold = rows == NONE
    if untold.any():
        rows = rows.set(untold, None)
    return rows.cast(pl.UInt32)


def with_arguments(trace: Trace, table: str, slices: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """The slices with these columns of one of the trace's other tables; see `arguments_of`."""
    return slices.hstack(arguments_of(trace, table, slices["id"], *columns))


@cached_per_trace
def _rows(_: Trace) -> dict[str, NDArray[np.int32]]:
    """For each slice its row in the tables that were asked for, or NONE."""
    return {}
