"""Floating-point operations of operators, from the shapes of their inputs.

The formulas are those of PyTorch's own recorder (torch/csrc/profiler/util.cpp, `computeFlops`): a
multiply-add counts as two; operators without a formula have no count, which is not zero.

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

from selftime.analysis.slice_arguments import arguments_of
from selftime.trace import Trace

Shape: TypeAlias = list[int]


def flops_of(trace: Trace, names: pl.Series, ids: pl.Series) -> pl.Series:
    """FLOPs of slices of these names: as recorded, else by formula, else null."""
    if trace.op_args["flops"].is_not_null().any():
        return arguments_of(trace, "op_args", ids, "flops")["flops"]
    unique = names.unique()
    has_formula = unique.filter(unique.cast(pl.String).is_in(list(_FORMULAS)))
    asked = names.is_in(has_formula.implode())
    at = asked.arg_true()
    calls = arguments_of(trace, "op_args", ids.gather(at), "input_shapes", "concrete_inputs")
    calls = calls.with_columns(name=names.gather(at))
    keys = ["name", "input_shapes", "concrete_inputs"]
    distinct = calls.select(keys).unique()
    counts = [operator_flops(*row) for row in distinct.cast(pl.String).iter_rows()]
    table = distinct.with_columns(counted=pl.Series(counts, dtype=pl.Int64))
    found = calls.join(table, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return pl.repeat(None, ids.len(), dtype=pl.Int64, eager=True).scatter(at, found["counted"])


def operator_flops(name: str, shapes: str | None, inputs: str | None) -> int | None:
    """FLOPs of one operator from its `Input Dims` and `Concrete Inputs`; None if unknown.

    >>> operator_flops("aten::mm", "[[2,3],[3,4]]", None)
    48
    """
    formula = _FORMULAS.get(name)
    if formula is None or shapes is None:
        return None
    try:
        return formula(json.loads(shapes), json.loads(inputs) if inputs else [])
    except (ValueError, TypeError, IndexError, ZeroDivisionError):
        return None  # shapes that do not fit the operator: its count is not known


def _product(first: Shape, second: Shape) -> int | None:
    """Two matrices, or batches of them."""
    if not first or not second:
        return None
    *batch, rows, inner = first
    return 2 * prod(batch) * rows * inner * second[-1]


def _mm(shapes: list[Shape], _inputs: list[Any]) -> int | None:
    return _product(shapes[0], shapes[1])


def _addmm(shapes: list[Shape], _inputs: list[Any]) -> int | None:
    return _product(shapes[1], shapes[2])


def _elements(shapes: list[Shape], _inputs: list[Any]) -> int | None:
    return prod(shapes[0]) if shapes[0] else None


def _conv2d(shapes: list[Shape], inputs: list[Any]) -> int | None:
    batch, _channels, *image = shapes[0]
    out, channels_of_group, *kernel = shapes[1]
    stride, padding, dilation = (_pair(value) for value in inputs[3:6])
    sizes = [
        (image[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) // stride[d] + 1
        for d in range(2)
    ]
    return 2 * batch * prod(sizes) * prod(kernel) * channels_of_group * out


def _pair(value: Any) -> Shape:
    """A number for both dimensions, or one for each; as a list or as its text."""
    found = json.loads(value) if isinstance(value, str) else value
    listed = found if isinstance(found, list) else [found]
    return [int(n) for n in (listed * 2 if len(listed) == 1 else listed)]


_FORMULAS: Final[dict[str, Callable[[list[Shape], list[Any]], int | None]]] = {
    "aten::mm": _mm,
    "aten::bmm": _mm,
    "aten::addmm": _addmm,
    "aten::baddbmm": _addmm,
    "aten::conv2d": _conv2d,
    "aten::add": _elements,
    "aten::mul": _elements,
}
