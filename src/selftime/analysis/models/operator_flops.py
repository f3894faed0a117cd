"""Counts the floating-point operations of operators from their input shapes, as torch does.

The formulas are those of PyTorch's own recorder (torch/csrc/profiler/util.cpp, `computeFlops`): a
multiply-add counts as two. Operators without a formula have no count, which is not zero.

    mm, addmm               2 m n k
    bmm, baddbmm            2 b m n k
    conv2d                  2 b out_h out_w k_h k_w in out / groups
    add, mul                elements of the first input
"""

import json
from collections.abc import Callable
from math import prod
from typing import Any, Final, TypeAlias

import polars as pl

from selftime.analysis.slice_arguments import arguments_of_slices
from selftime.trace import Trace

TensorShape: TypeAlias = list[int]
"""The size of each dimension of a tensor."""


def recorded_or_modelled_flops(trace: Trace, names: pl.Series, slice_ids: pl.Series) -> pl.Series:
    """Returns each slice's FLOPs: as recorded, or else by formula; null if neither is possible."""
    if trace.op_args["flops"].is_not_null().any():
        return arguments_of_slices(trace, "op_args", slice_ids, "flops")["flops"]
    unique = names.unique()
    has_formula = unique.filter(unique.cast(pl.String).is_in(list(_FLOP_FORMULA_BY_OPERATOR)))
    asked = names.is_in(has_formula.implode())
    at = asked.arg_true()
    calls = arguments_of_slices(
        trace, "op_args", slice_ids.gather(at), "input_shapes", "concrete_inputs"
    )
    calls = calls.with_columns(name=names.gather(at))
    keys = ["name", "input_shapes", "concrete_inputs"]
    distinct = calls.select(keys).unique()
    counts = [operator_flop_count(*row) for row in distinct.cast(pl.String).iter_rows()]
    table = distinct.with_columns(counted=pl.Series(counts, dtype=pl.Int64))
    found = calls.join(table, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return pl.repeat(None, slice_ids.len(), dtype=pl.Int64, eager=True).scatter(
        at, found["counted"]
    )


def operator_flop_count(
    operator_name: str, input_shapes: str | None, concrete_inputs: str | None
) -> int | None:
    """Returns an operator's FLOPs from its `Input Dims` and `Concrete Inputs`; None if unknown.

    >>> operator_flop_count("aten::mm", "[[2,3],[3,4]]", None)
    48
    """
    formula = _FLOP_FORMULA_BY_OPERATOR.get(operator_name)
    if formula is None or input_shapes is None:
        return None
    try:
        return formula(
            json.loads(input_shapes), json.loads(concrete_inputs) if concrete_inputs else []
        )
    except (ValueError, TypeError, IndexError, ZeroDivisionError):
        return None  # invalid shapes for the operator: its count is unknown


def _matrix_product_flop_count(left_shape: TensorShape, right_shape: TensorShape) -> int | None:
    """Returns the FLOPs of a product of two matrices, or of batches of them."""
    if not left_shape or not right_shape:
        return None
    *batch, rows, inner = left_shape
    return 2 * prod(batch) * rows * inner * right_shape[-1]


def _mm_flop_count(shapes: list[TensorShape], _inputs: list[Any]) -> int | None:
    return _matrix_product_flop_count(shapes[0], shapes[1])


def _addmm_flop_count(shapes: list[TensorShape], _inputs: list[Any]) -> int | None:
    return _matrix_product_flop_count(shapes[1], shapes[2])


def _elementwise_flop_count(shapes: list[TensorShape], _inputs: list[Any]) -> int | None:
    return prod(shapes[0]) if shapes[0] else None


def _conv2d_flop_count(shapes: list[TensorShape], inputs: list[Any]) -> int | None:
    batch, _channels, *image = shapes[0]
    out, channels_of_group, *kernel = shapes[1]
    stride, padding, dilation = (_values_for_two_dimensions(value) for value in inputs[3:6])
    sizes = [
        (image[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) // stride[d] + 1
        for d in range(2)
    ]
    return 2 * batch * prod(sizes) * prod(kernel) * channels_of_group * out


def _values_for_two_dimensions(value: Any) -> TensorShape:
    """Returns the two values of an argument given as one or two numbers, in a list or as text."""
    found = json.loads(value) if isinstance(value, str) else value
    listed = found if isinstance(found, list) else [found]
    return [int(n) for n in (listed * 2 if len(listed) == 1 else listed)]


_FLOP_FORMULA_BY_OPERATOR: Final[
    dict[str, Callable[[list[TensorShape], list[Any]], int | None]]
] = {
    "aten::mm": _mm_flop_count,
    "aten::bmm": _mm_flop_count,
    "aten::addmm": _addmm_flop_count,
    "aten::baddbmm": _addmm_flop_count,
    "aten::conv2d": _conv2d_flop_count,
    "aten::add": _elementwise_flop_count,
    "aten::mul": _elementwise_flop_count,
}
