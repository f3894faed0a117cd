"""Finds the operators that tell the sizes of what indexing by tensors returns."""

import numpy as np
import polars as pl

from selftime.analysis.slice_filters import filter_by_name
from selftime.array_types import Ints
from selftime.names.tensor_operators import indexes_by_tensors, is_strided_view
from selftime.trace import Trace


def operators_that_tell_sizes(trace: Trace) -> Ints:
    """Returns for each slice that whose values its model takes: itself, but for indexing.

    The indices of `aten::index` are a list of optional tensors, which is not recorded. It calls
    `as_strided` with the sizes of its result, once, as its first view of the input.
    """
    told: Ints = np.arange(trace.slices.height, dtype=np.int64)
    asked = filter_by_name(trace.slices, indexes_by_tensors)["id"]
    if not asked.len():
        return told
    inner = trace.slices.filter(pl.col("parent").is_in(asked.implode()))
    views = filter_by_name(inner, is_strided_view).sort("id", descending=True)
    valued = trace.op_args.filter(pl.col("concrete_inputs").is_not_null())["id"]
    views = views.filter(pl.col("id").is_in(valued.implode()))
    told[views["parent"].to_numpy()] = views["id"].to_numpy()
    return told
