"""Finds operators of which later operators use some positions of the result alone.

The operators of a step are read backwards: each tells which positions of its inputs it needs for
the positions of its result that are needed. A recording names no tensors, so that all of one size
count as one: it is needed where any operator after it needs any of them. What is not modelled needs
all positions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce
from math import prod
from typing import Final, Literal, TypeAlias

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import operators_in_counted_steps
from selftime.advice.detectors.elementwise_operators import (
    forward_operators,
    outside_backward_passes,
)
from selftime.advice.detectors.pattern_matrices import RecordedCall, multiplied_tensors, parsed_call
from selftime.analysis.models import UnknownOperatorArgument, work_of_operator_call
from selftime.analysis.models.recorded_operator_calls import broadcast_shape_of_two
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.names.position_operators import (
    convolves_positions,
    copies_in_order,
    normalises_last_dimensions,
    normalises_one_dimension,
    permutes_dimensions,
    reads_no_values,
)
from selftime.trace import Trace

TensorSizes: TypeAlias = tuple[int, ...]
PositionBox: TypeAlias = tuple[tuple[int, int], ...]
"""For each dimension the first position that is needed, and that after the last."""

_ARGUMENTS: Final = ("input_shapes", "input_types", "concrete_inputs")
_CHANNELS: Final = 1
"""The dimension of a convolution's result that holds its channels."""


@dataclass(frozen=True, slots=True)
class _PartlyUsedCall:
    """An operator, as its row in the table, and how many positions of its result are used."""

    row: int
    used: int
    positions: int
    is_product: bool
    source: TensorSizes
    result: TensorSizes

    @property
    def is_padded(self) -> bool:
        """Whether the padding of a convolution makes its result longer than its input."""
        places = zip(self.source[2:], self.result[2:], strict=False)
        return self.is_product and any(given < made for given, made in places)


@cached_per_trace
def partly_used_operators(trace: Trace) -> pl.DataFrame:
    """Returns the forward operators of training whose results are used at some positions alone.

    Columns: those of `forward_operators`; used and positions, their numbers in the result (of a
    slice, in its input); is_product, whether it is a matrix product or a convolution; product, the
    id of the product whose result they go on with, or their own; is_padded, whether a convolution's
    padding makes its result longer than its input.
    """
    table = forward_operators(trace)
    calls = _calls_of_training(trace, table)
    steps = _rows_of_steps(trace, table) if calls else []
    read_early = {sizes for rows in steps for sizes in _sizes_read_before_made(rows, calls)}
    read_early |= _sizes_read_by_functions(trace) if steps else set()
    has_gradient = _have_gradients(trace, table)
    ids = table["id"].to_list()
    found: list[tuple[_PartlyUsedCall, int]] = []
    for rows in steps:
        used = list(_partly_used_calls(rows, calls, read_early))
        kept = [one for one in reversed(used) if not one.is_product or has_gradient[one.row]]
        found += [(one, ids[product]) for one, product in _with_product(kept)]
    return table[[one.row for one, _ in found]].with_columns(
        used=pl.Series([one.used for one, _ in found], dtype=pl.Int64),
        positions=pl.Series([one.positions for one, _ in found], dtype=pl.Int64),
        is_product=pl.Series([one.is_product for one, _ in found], dtype=pl.Boolean),
        product=pl.Series([product for _, product in found], dtype=pl.Int64),
        is_padded=pl.Series([one.is_padded for one, _ in found], dtype=pl.Boolean),
    )


def _with_product(used: list[_PartlyUsedCall]) -> Iterator[tuple[_PartlyUsedCall, int]]:
    """Yields the calls, in order of time, with the row of the product that they go on with."""
    product_of_sizes: dict[TensorSizes, int] = {}
    for one in used:
        product = one.row if one.is_product else product_of_sizes.get(one.source)
        if product is not None:
            product_of_sizes[one.result] = product
            yield one, product


def _calls_of_training(trace: Trace, table: pl.DataFrame) -> list[RecordedCall]:
    """Returns the calls of the operators; [] where the steps do not train, or are compiled.

    Compiled code takes tensors that no operator is recorded to take.
    """
    named = table["name"].cast(pl.String).to_list()
    trains = filter_by_name(trace.slices, names.is_backward_node).height
    is_compiled = filter_by_name(trace.slices, _runs_compiled_code).height
    if not trains or is_compiled or not any(map(names.selects_part_of_dimension, named)):
        return []
    texts = table.select(pl.col("name", *_ARGUMENTS).cast(pl.String))
    return [parsed_call(*row) for row in texts.iter_rows()]


def _runs_compiled_code(name: str) -> bool:
    return names.compiled_region(name) is not None or names.is_compiled_graph_wrapper(name)


def _rows_of_steps(trace: Trace, table: pl.DataFrame) -> list[list[int]]:
    """Returns the rows of the table that each step has, in order of time."""
    begins = np.sort(steps_with_counted_flags(trace)["start"].to_numpy())
    start = table["start"].to_numpy()
    order = np.lexsort((table["id"].to_numpy(), start))
    edges = np.searchsorted(start[order], begins)
    return [rows.tolist() for rows in np.split(order, edges) if rows.size]


def _sizes_read_before_made(rows: list[int], calls: list[RecordedCall]) -> set[TensorSizes]:
    """Returns sizes of tensors that a step reads before it makes any: they may be older."""
    made: set[TensorSizes] = set()
    early: set[TensorSizes] = set()
    for at in rows:
        call = calls[at]
        if not reads_no_values(call.name):
            early |= {tensor.shape for tensor in call.tensors} - made
        flow = _flow_of(call)
        if flow is not None:
            made.add(flow.result)
    return early


def _sizes_read_by_functions(trace: Trace) -> set[TensorSizes]:
    """Returns sizes of the tensors that functions of autograd written in Python take.

    What they do with them need not be an operator.
    """
    every = outside_backward_passes(trace, operators_in_counted_steps(trace))
    functions = filter_by_name(every, _is_function)
    texts = functions.select(pl.col("name", *_ARGUMENTS).cast(pl.String)).unique()
    return {tensor.shape for row in texts.iter_rows() for tensor in parsed_call(*row).tensors}


def _is_function(name: str) -> bool:
    return not names.is_dispatched_operator(name) and not names.is_backward_node(name)


def _partly_used_calls(
    rows: list[int], calls: list[RecordedCall], read_early: set[TensorSizes]
) -> Iterator[_PartlyUsedCall]:
    """Yields the operators of a step that are used in part, the last one first."""
    needs: dict[TensorSizes, PositionBox] = {sizes: _whole(sizes) for sizes in read_early}
    for at in reversed(rows):
        call = calls[at]
        if reads_no_values(call.name):
            continue
        flow = _flow_of(call)
        box = _whole(()) if flow is None else needs.get(flow.result, _whole(flow.result))
        for sizes in {tensor.shape for tensor in call.tensors}:
            is_known = flow is not None and sizes == flow.source
            need = flow.needed(box) if flow is not None and is_known else _whole(sizes)
            needs[sizes] = _both(needs.get(sizes, need), need)
        if flow is None or flow.kind == "view":
            continue
        sizes = flow.source if flow.kind == "part" else flow.result
        share = _used_positions(sizes, needs[sizes] if flow.kind == "part" else box, flow.channels)
        if share[0] < share[1]:
            is_product = flow.kind == "product"
            yield _PartlyUsedCall(at, *share, is_product, flow.source, flow.result)


def _whole(sizes: TensorSizes) -> PositionBox:
    return tuple((0, size) for size in sizes)


def _both(first: PositionBox, second: PositionBox) -> PositionBox:
    """Returns the smallest box that holds both."""
    return tuple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(first, second, strict=True))


def _used_positions(sizes: TensorSizes, box: PositionBox, channels: int | None) -> tuple[int, int]:
    """Returns how many positions are used, and how many there are, whatever the channels."""
    own = [at for at in range(len(sizes)) if at != channels]
    return prod(box[at][1] - box[at][0] for at in own), prod(sizes[at] for at in own)


def _have_gradients(trace: Trace, operators: pl.DataFrame) -> list[bool]:
    """Returns for each operator whether a node of the backward pass belongs to it."""
    links = trace.op_args["forward"].drop_nulls()
    starts = np.sort(trace.slices["start"].gather(links).to_numpy())
    first, last = (operators[name].to_numpy() for name in ("start", "end"))
    return [bool(many) for many in np.searchsorted(starts, last) - np.searchsorted(starts, first)]


@dataclass(frozen=True, slots=True)
class _PositionFlow:
    """Which positions of an input an operator needs for those of its result."""

    kind: Literal["product", "pointwise", "part", "view"]
    source: TensorSizes
    """Sizes of the inputs whose needed positions depend on those of the result."""
    result: TensorSizes
    needed: Callable[[PositionBox], PositionBox]
    """Returns the positions of a source that are needed for some of the result."""
    channels: int | None = None
    """The dimension of a product's result that holds no positions."""


@lru_cache(maxsize=4096)
def _flow_of(call: RecordedCall) -> _PositionFlow | None:
    """Returns how an operator passes positions on; None if it may need all of its inputs."""
    models = (
        _flow_of_product,
        _flow_of_convolution,
        _flow_of_view,
        _flow_along,
        _flow_of_pointwise,
    )
    try:
        flow = next((found for model in models if (found := model(call)) is not None), None)
    except (UnknownOperatorArgument, IndexError, ValueError):
        return None
    alike = [tensor for tensor in call.tensors if flow is not None and tensor.shape == flow.source]
    is_clear = flow is not None and (flow.kind == "pointwise" or len(alike) == 1)
    return flow if is_clear else None


def _flow_of_product(call: RecordedCall) -> _PositionFlow | None:
    """Returns the flow of a product by a matrix: each row of the result needs its row."""
    if not names.multiplies_weights(call.name):
        return None
    operands = multiplied_tensors(call)
    if len(operands) != 2 or len(operands[1].shape) != 2 or len(operands[0].shape) < 2:
        return None
    source, weight = operands[0].shape, operands[1].shape
    columns = weight[0] if call.name == "aten::linear" else weight[1]
    result = (*source[:-1], columns)
    return _PositionFlow(
        "product",
        source,
        result,
        lambda box: (*box[:-1], (0, source[-1])),
        channels=len(result) - 1,
    )


def _flow_of_convolution(call: RecordedCall) -> _PositionFlow | None:
    """Returns the flow of a convolution: a position needs those that its kernel reaches."""
    if not convolves_positions(call.name):
        return None
    source, weight = call.tensors[0].shape, call.tensors[1].shape
    many = len(weight) - 2
    if len(source) != len(weight):
        return None
    strides, pads, dilations = (call.arguments.numbers(place, many) for place in (3, 4, 5))
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, weight[2:], strict=True)]
    lengths = [
        (size + 2 * pad - far) // stride + 1
        for size, pad, far, stride in zip(source[2:], pads, reach, strides, strict=True)
    ]

    def needed(box: PositionBox) -> PositionBox:
        places = [
            (max(a * stride - pad, 0), min((b - 1) * stride - pad + far, size))
            for (a, b), stride, pad, far, size in zip(
                box[2:], strides, pads, reach, source[2:], strict=True
            )
        ]
        return (box[0], (0, source[_CHANNELS]), *places)

    result = (source[0], weight[0], *lengths)
    return _PositionFlow("product", source, result, needed, channels=_CHANNELS)


def _flow_of_view(call: RecordedCall) -> _PositionFlow | None:
    """Returns the flow of a slice, or of a view or copy whose dimensions are in another order."""
    if copies_in_order(call.name):
        sizes = call.tensors[0].shape
        return _PositionFlow("pointwise", sizes, sizes, lambda box: box)
    if permutes_dimensions(call.name):
        sizes = call.tensors[0].shape
        order = order_of_dimensions(call, len(sizes))
        result = tuple(sizes[dim] for dim in order)
        places = [order.index(dim) for dim in range(len(order))]
        return _PositionFlow(
            "view", sizes, result, lambda box: tuple(box[place] for place in places)
        )
    return _flow_of_part(call) if names.selects_part_of_dimension(call.name) else None


def order_of_dimensions(call: RecordedCall, rank: int) -> list[int]:
    """Returns for each dimension of a view which one of its input it is."""
    if call.name == "aten::permute":
        return [dim % rank for dim in call.arguments.numbers(1, rank)]
    if call.name in {"aten::t", "aten::numpy_T"}:
        return list(reversed(range(rank)))
    first, second = call.arguments.number(1) % rank, call.arguments.number(2) % rank
    order = list(range(rank))
    order[first], order[second] = second, first
    return order


def _flow_of_part(call: RecordedCall) -> _PositionFlow:
    """Returns the flow of a slice along a dimension, or of one index of it."""
    sizes = call.tensors[0].shape
    dim = call.arguments.number(1) % len(sizes)
    if names.selects_one_index(call.name):
        index = call.arguments.number(2) % sizes[dim]
        result = (*sizes[:dim], *sizes[dim + 1 :])
        return _PositionFlow(
            "part", sizes, result, lambda box: (*box[:dim], (index, index + 1), *box[dim:])
        )
    begin, end, step = slice(
        *(call.arguments.optional_value_argument(place) for place in (2, 3, 4))
    ).indices(sizes[dim])
    result = (*sizes[:dim], len(range(begin, end, step)), *sizes[dim + 1 :])

    def needed(box: PositionBox) -> PositionBox:
        first, last = box[dim]
        return (*box[:dim], (begin + first * step, begin + (last - 1) * step + 1), *box[dim + 1 :])

    return _PositionFlow("part", sizes, result, needed)


def _flow_along(call: RecordedCall) -> _PositionFlow | None:
    """Returns the flow of a softmax or a norm of each position: those along it are all needed."""
    sizes = call.tensors[0].shape if call.tensors else ()
    if normalises_one_dimension(call.name):
        dims = {call.arguments.number(1) % len(sizes)}
    elif normalises_last_dimensions(call.name):
        listed = call.arguments.value(1)
        count = len(listed) if isinstance(listed, list) else len(sizes)
        dims = set(range(len(sizes) - count, len(sizes)))
    else:
        return None

    def needed(box: PositionBox) -> PositionBox:
        return tuple((0, sizes[at]) if at in dims else box[at] for at in range(len(sizes)))

    return _PositionFlow("pointwise", sizes, sizes, needed)


def _flow_of_pointwise(call: RecordedCall) -> _PositionFlow | None:
    """Returns the flow of an elementwise operator on a tensor of the sizes of its result."""
    work = work_of_operator_call(call.name, call.arguments)
    if work is None or work.family != "pointwise" or not call.tensors:
        return None
    if names.is_in_place(call.name) and len(call.tensors) > 1:
        return None  # what it writes may be a view of a tensor of other sizes
    if any(isinstance(argument, tuple) for argument in call.arguments.arguments):
        return None
    shapes: list[TensorSizes] = [tensor.shape for tensor in call.tensors]
    result: TensorSizes = reduce(broadcast_shape_of_two, shapes)
    return _PositionFlow("pointwise", result, result, lambda box: box)
