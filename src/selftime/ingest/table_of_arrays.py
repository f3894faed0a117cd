"""Makes declared tables of arrays, in which special values stand for what is unknown."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import schema
from selftime.ingest.events.event_types import NO_INT


def table_of_arrays(table_schema: schema.Table, arrays: Mapping[str, Any]) -> pl.DataFrame:
    """Returns a table with arrays as columns; a column without an array is null."""
    height = len(arrays[table_schema.columns[0].name])
    series = {
        column.name: series_of_column(arrays.get(column.name), column, height)
        for column in table_schema.columns
    }
    return pl.DataFrame(series)


def series_of_column(values: Any, column_schema: schema.Column, row_count: int) -> pl.Series:
    if values is None:
        return pl.repeat(None, row_count, dtype=column_schema.dtype, eager=True)
    if isinstance(values, pl.Series):
        return values.cast(column_schema.dtype).alias(column_schema.name)
    if values.ndim == 2:
        known = values[:, 0] >= 0
        series = pl.Series(column_schema.name, values.astype(np.int32), dtype=pl.Array(pl.Int32, 3))
        return series if known.all() else series.set(pl.Series(~known), None)
    return _numeric_series_with_nulls(values, column_schema)


def _numeric_series_with_nulls(values: NDArray[Any], column_schema: schema.Column) -> pl.Series:
    """Returns a numeric column; special values that stand for unknown numbers become null."""
    if values.dtype.kind == "i" and column_schema.nullable:
        lowest = 0 if column_schema.dtype == pl.UInt32 else NO_INT + 1
        unknown = values < lowest
        series = pl.Series(column_schema.name, values)
        if unknown.any():
            series = series.set(pl.Series(unknown), None)
        return series.cast(column_schema.dtype, strict=False)
    series = pl.Series(column_schema.name, values)
    if values.dtype == np.float64:
        series = series.fill_nan(None)
    return series.cast(column_schema.dtype, strict=False)
