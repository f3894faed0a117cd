"""Tells which operators on a CPU compute in vectors, so that smaller numbers make them faster.

A vector holds twice as many numbers of half the size. An operator computes in vectors where its
innermost loop runs over numbers that lie side by side, for as many as several vectors hold. Rows of
a few numbers, comparisons, sums, sorting and gathering take a time for each number, whatever its
size: measured with one thread on an Intel CPU with AVX-512 and PyTorch 2.13, on tensors of 60,000
numbers, float32 takes 0.95 to 1.3 of the time of float64 in these, and 0.2 to 0.6 of it in others.
"""

from math import prod
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.models import RecordedOperatorCall, RecordedTensor, work_of_operator_call
from selftime.analysis.slice_grouping import group_and_first_row_of_rows
from selftime.array_types import Flags
from selftime.intervals import Intervals, union
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

MIN_NUMBERS_PER_VECTOR_LOOP: Final = 32
"""Fewest numbers side by side that an innermost loop computes in vectors: its rounds take two
vectors of 16 float32 each, and shorter rows are left to a loop over single numbers."""

DISPATCH_NS: Final = 1_000
"""Least time in ns that a call of an operator takes on a CPU, whatever the dtype: on ten numbers
0.8 to 1.1 us were measured."""

_OPERATORS_ON_SINGLE_NUMBERS: Final = frozenset(
    {
        *("eq", "ge", "gt", "le", "lt", "ne", "isnan", "isinf", "isfinite", "where"),
        *("logical_and", "logical_not", "logical_or", "logical_xor", "masked_fill", "nonzero"),
        *("sort", "argsort", "topk", "cumsum", "cumprod", "searchsorted", "bucketize", "unique"),
        *("index", "index_put", "gather", "scatter", "scatter_add", "index_add", "index_select"),
    }
)
"""Operators that take a time for each number, whatever its size; without `aten::`."""


def vector_loop_times(trace: Trace, operators: pl.DataFrame) -> Intervals:
    """Returns when operators compute in vectors, without their dispatch.

    `operators` has the columns of `operators_in_counted_steps`. Only those count that call no
    other: what an operator does around others is dispatch.
    """
    parent = trace.slices["parent"].cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    calls_another = np.zeros(trace.slices.height + 1, np.bool_)
    calls_another[parent[trace.op_args["id"].to_numpy()]] = True
    is_innermost = ~calls_another[operators["id"].to_numpy()]
    chosen = operators.filter(pl.Series(is_innermost & _compute_in_vectors(operators)))
    begins = chosen["start"].to_numpy() + DISPATCH_NS
    ends = chosen["end"].to_numpy()
    return union(begins[begins < ends], ends[begins < ends])


def _compute_in_vectors(operators: pl.DataFrame) -> Flags:
    """Flags the operators that are not known to take a time for each number."""
    told = operators.select(
        "name", "input_shapes", "input_types", "concrete_inputs", "input_strides"
    )
    group, first = group_and_first_row_of_rows(told)
    answers = [
        not _takes_single_numbers(str(name), RecordedOperatorCall(shapes or "[]", *texts))
        for name, shapes, *texts in told[pl.Series(first)].cast(pl.String).iter_rows()
    ]
    return np.asarray(np.array(answers, np.bool_)[group])


def _takes_single_numbers(name: str, call: RecordedOperatorCall) -> bool:
    """Returns whether an operator's loops surely run over single numbers or short rows."""
    if name.removeprefix("aten::").rstrip("_") in _OPERATORS_ON_SINGLE_NUMBERS:
        return True
    work = work_of_operator_call(name, call)
    if work is None or work.family not in {"pointwise", "reduction", "movement"}:
        return False
    if work.family == "reduction":
        return True
    tensors = [one for one in call.arguments if isinstance(one, RecordedTensor) and one.shape]
    return numbers_per_innermost_loop(tensors) < min(
        MIN_NUMBERS_PER_VECTOR_LOOP, max((one.elements for one in tensors), default=0)
    )


def numbers_per_innermost_loop(tensors: list[RecordedTensor]) -> int:
    """Returns over how many numbers the innermost loop of an elementwise operator runs.

    Dimensions that follow each other in memory in each of the tensors are one. 1 where the numbers
    of some tensor do not lie side by side.

    >>> numbers_per_innermost_loop([RecordedTensor((9, 5), None), RecordedTensor((9, 5), None)])
    45
    >>> numbers_per_innermost_loop([RecordedTensor((9, 5), None), RecordedTensor((9, 1), None)])
    5
    """
    rank = max((len(one.shape) for one in tensors), default=0)
    sizes, strides = [1] * rank, []
    for one in tensors:
        shape = (1,) * (rank - len(one.shape)) + one.shape
        sizes = [max(pair) for pair in zip(sizes, shape, strict=True)]
        given = one.strides
        if given is None or len(given) != len(one.shape):
            given = tuple(prod(one.shape[place + 1 :]) for place in range(len(one.shape)))
        given = (0,) * (rank - len(given)) + given
        strides.append([0 if n == 1 else step for n, step in zip(shape, given, strict=True)])
    places = [place for place in range(rank) if sizes[place] > 1]
    places.sort(key=lambda place: max(own[place] for own in strides))
    count, last = 1, None
    for place in places:
        steps = [own[place] for own in strides]
        if last is None and any(step not in {0, 1} for step in steps):
            return 1
        if last is not None and any(own[place] != sizes[last] * own[last] for own in strides):
            break
        count, last = count * sizes[place], place
    return count
