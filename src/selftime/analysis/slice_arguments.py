"""Looks up data of slices by slice id: rows of other tables, parent slices, Python frames.

A table such as `call_args` has at most one row for each slice. The row number of every slice is
kept in an array that is built once per trace, so that a look-up for many slices needs no join.
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.nesting import NO_SLICE
from selftime.trace import Trace


def has_input_shapes(trace: Trace) -> bool:
    """Returns whether the shapes of operators' inputs were recorded."""
    return bool(trace.op_args["input_shapes"].is_not_null().any())


def arguments_of_slices(
    trace: Trace, table_name: str, slice_ids: pl.Series, *columns: str
) -> pl.DataFrame:
    """Returns columns of a table of the trace for the given slices, one row per id, in order.

    Values are null where the table has no row for a slice, and where an id is null.
    """
    source: pl.DataFrame = getattr(trace, table_name)
    return source.select(
        pl.col(*columns).gather(argument_row_numbers(trace, table_name, slice_ids))
    )


def argument_row_numbers(trace: Trace, table_name: str, slice_ids: pl.Series) -> pl.Series:
    """Returns each slice's row number in one of the trace's tables; null if it has no row there."""
    known = _argument_row_cache(trace)
    source: pl.DataFrame = getattr(trace, table_name)
    if table_name not in known:
        own = source["id"].to_numpy()
        size = max(trace.slices.height, int(own.max(initial=0)) + 1)  # a part may lack slices
        place = np.full(size, NO_SLICE, np.int32)
        place[own] = np.arange(own.size, dtype=np.int32)
        known[table_name] = place
    asked = slice_ids.cast(pl.UInt32)
    if asked.null_count():
        rows = pl.Series(known[table_name]).gather(asked)
    else:
        rows = pl.Series(known[table_name][asked.to_numpy()])
    untold = rows == NO_SLICE
    if untold.any():
        rows = rows.set(untold, None)
    return rows.cast(pl.UInt32)


def slices_with_arguments(
    trace: Trace, table_name: str, slices: pl.DataFrame, *columns: str
) -> pl.DataFrame:
    """Returns the slices, with the given columns of another table of the trace added."""
    return slices.hstack(arguments_of_slices(trace, table_name, slices["id"], *columns))


@cached_per_trace
def _argument_row_cache(_trace: Trace) -> dict[str, NDArray[np.int32]]:
    """Returns a cache that maps a table's name to the row of each slice in it, or -1 for none."""
    return {}


@cached_per_trace
def parent_of_every_slice(trace: Trace) -> NDArray[np.int64]:
    """Returns the id of each slice's parent, the innermost enclosing slice on its track, or -1.

    The array is cached and read-only.
    """
    untold = np.iinfo(np.uint32).max
    told = trace.slices["parent"].fill_null(untold).to_numpy()
    found = told.astype(np.int64)
    found[told == untold] = NO_SLICE
    found.flags.writeable = False
    return found


@cached_per_trace
def caller_of_every_frame(trace: Trace) -> NDArray[np.int64]:
    """Returns for each Python frame the id of the frame that called it; -1 for other slices.

    The array is cached and read-only.
    """
    found = np.full(trace.slices.height, NO_SLICE, np.int64)
    known = trace.frame_args.select("id", "caller").drop_nulls()
    found[known["id"].to_numpy()] = known["caller"].to_numpy()
    found.flags.writeable = False
    return found


@cached_per_trace
def enclosing_frame_of_every_slice(trace: Trace) -> NDArray[np.int64]:
    """Returns the id of the innermost Python frame at or around each slice, or -1 if unknown.

    The array is cached and read-only.
    """
    found = np.full(trace.slices.height, NO_SLICE, np.int64)
    for table in (trace.call_args, trace.op_args):
        known = table.select("id", "frame").drop_nulls()
        found[known["id"].to_numpy()] = known["frame"].to_numpy()
    frames = trace.frame_args["id"].to_numpy()
    found[frames] = frames
    found.flags.writeable = False
    return found
