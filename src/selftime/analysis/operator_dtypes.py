"""Flags the operators that compute in a given dtype."""

import json

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.slice_arguments import arguments_of_slices
from selftime.analysis.slice_grouping import group_and_first_row_of_rows
from selftime.trace import Trace


def is_operator_computing_in_dtype(
    trace: Trace, slice_ids: pl.Series, dtype: str
) -> NDArray[np.bool_]:
    """Flags slices whose floating-point tensor inputs all have the given dtype, shape (n,).

    All their floating-point inputs that have dimensions must have this dtype.
    """
    told = arguments_of_slices(trace, "op_args", slice_ids, "input_types", "input_shapes")
    told = told.with_columns(trace.slices["name"].gather(slice_ids))
    group, first = group_and_first_row_of_rows(told)
    answers = [
        name is not None
        and names.is_aten_operator(name)
        and _all_inputs_have_dtype(types, shapes, dtype)
        for types, shapes, name in told[pl.Series(first)].cast(pl.String).iter_rows()
    ]
    return np.asarray(np.array(answers, bool)[group])


def _all_inputs_have_dtype(input_types: str | None, input_shapes: str | None, dtype: str) -> bool:
    """Returns whether there are floating-point tensor inputs and all have the given dtype."""
    if not input_types or not input_shapes:
        return False
    try:
        pairs = list(zip(json.loads(input_types), json.loads(input_shapes), strict=True))
    except (ValueError, TypeError):
        return False  # types that do not match the shapes give no answer
    floating = {kind for kind, shape in pairs if shape and kind in names.FLOATING_POINT_DTYPES}
    return floating == {dtype}
