"""Which operators compute in a dtype."""

import json

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.grouping import grouped
from selftime.analysis.slice_arguments import arguments_of
from selftime.trace import Trace


def computes_in(trace: Trace, ids: pl.Series, dtype: str) -> NDArray[np.bool_]:
    """Which slices are library operators that compute in that dtype, shape (n,).

    All their inputs of a floating dtype that have dimensions are of it.
    """
    told = arguments_of(trace, "op_args", ids, "input_types", "input_shapes")
    told = told.with_columns(trace.slices["name"].gather(ids))
    group, first = grouped(told)
    answers = [
        name is not None and names.is_library_operator(name) and _is_all(types, shapes, dtype)
        for types, shapes, name in told[pl.Series(first)].cast(pl.String).iter_rows()
    ]
    return np.asarray(np.array(answers, bool)[group])


def _is_all(types: str | None, shapes: str | None, dtype: str) -> bool:
    """Whether there are floating inputs with dimensions, and all are of the dtype."""
    if not types or not shapes:
        return False
    try:
        pairs = list(zip(json.loads(types), json.loads(shapes), strict=True))
    except (ValueError, TypeError):
        return False  # types that do not belong to the shapes tell nothing
    floating = {kind for kind, shape in pairs if shape and kind in names.FLOATING}
    return floating == {dtype}
