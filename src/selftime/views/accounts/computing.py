"""Which operators compute in a dtype."""

import json

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.trace import Trace

__all__ = ["computes_in"]


def computes_in(trace: Trace, ids: pl.Series, dtype: str) -> NDArray[np.bool_]:
    """Which slices are library operators that compute in that dtype, shape (n,).

    All their inputs of a floating dtype that have dimensions are of it.
    """
    asked = pl.DataFrame({"id": ids, "name": trace.slices["name"].gather(ids)})
    told = asked.join(
        trace.op_args.select("id", "input_types", "input_shapes"),
        on="id",
        how="left",
        maintain_order="left",
    )
    keys = ["name", "input_types", "input_shapes"]
    distinct = told.select(keys).unique()
    answers = [
        names.is_library_operator(name) and _is_all(types, shapes, dtype)
        for name, types, shapes in distinct.cast(pl.String).iter_rows()
    ]
    table = distinct.with_columns(has=pl.Series(answers, dtype=pl.Boolean))
    found = told.join(table, on=keys, how="left", nulls_equal=True, maintain_order="left")["has"]
    return found.fill_null(value=False).to_numpy()


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
