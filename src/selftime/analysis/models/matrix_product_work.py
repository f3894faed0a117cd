"""FLOP models of matrix products: two FLOPs for each pair of elements that is multiplied and added.

mm, addmm, linear       2 m n k
    bmm, baddbmm            2 b m n k
    mv, dot                 2 m k, 2 k
    grouped products        2 m n k over all rows of all groups, including padding

Adding a bias or an accumulator is not counted extra, as in torch.utils.flop_counter.
"""

from math import prod
from typing import Final

from selftime import names
from selftime.analysis.models.recorded_operator_calls import (
    OperatorWork,
    OperatorWorkModel,
    RecordedOperatorCall,
    RecordedTensor,
    UnknownOperatorArgument,
    broadcast_shape_of_two,
    common_dtype_of_tensors,
    total_tensor_bytes,
)


def _matrix_product_work(
    left: RecordedTensor,
    right: RecordedTensor,
    *others: RecordedTensor | None,
    result_dtype: str | None = None,
) -> OperatorWork:
    """Returns the FLOPs and bytes of `left @ right`; `others` are tensors that are also read."""
    rows, inner, columns, batch = _matrix_product_sizes(left, right)
    result = left.like(*batch, rows, columns, dtype=result_dtype)
    flops = 2 * prod(batch) * rows * inner * columns
    return OperatorWork(
        "product",
        flops,
        total_tensor_bytes(left, right, *others, result),
        common_dtype_of_tensors(left, right),
    )


def _matrix_product_sizes(
    left: RecordedTensor, right: RecordedTensor
) -> tuple[int, int, int, tuple[int, ...]]:
    """Returns row count, inner size, column count and batch sizes of the product `left @ right`."""
    if not left.shape or not right.shape:
        raise UnknownOperatorArgument
    first = left.shape if len(left.shape) > 1 else (1, *left.shape)
    second = right.shape if len(right.shape) > 1 else (*right.shape, 1)
    if first[-1] != second[-2]:
        raise UnknownOperatorArgument
    batch = broadcast_shape_of_two(first[:-2], second[:-2])
    return first[-2], first[-1], second[-1], batch


def _work_of_plain_product(call: RecordedOperatorCall) -> OperatorWork:
    return _matrix_product_work(call.tensor_argument(0), call.tensor_argument(1))


def _work_of_product_with_addend(call: RecordedOperatorCall) -> OperatorWork:
    return _matrix_product_work(
        call.tensor_argument(1), call.tensor_argument(2), call.optional_tensor_argument(0)
    )


def _work_of_batched_product_sum(call: RecordedOperatorCall) -> OperatorWork:
    """Returns the FLOPs and bytes of batched matrix products, all added to one matrix."""
    left, right = call.tensor_argument(1), call.tensor_argument(2)
    work = _matrix_product_work(left, right)
    result = left.like(*left.shape[1:-1], right.shape[-1])
    read = total_tensor_bytes(left, right, call.optional_tensor_argument(0), result)
    return OperatorWork("product", work.flops, read, work.dtype)


def _work_of_linear_layer(call: RecordedOperatorCall) -> OperatorWork:
    given, weight = call.tensor_argument(0), call.tensor_argument(1)
    if len(weight.shape) == 1:
        weight = weight.like(1, *weight.shape)
    transposed = RecordedTensor(tuple(reversed(weight.shape)), weight.dtype)
    rows = given.like(prod(given.shape[:-1]), *given.shape[-1:])
    return _matrix_product_work(rows, transposed, call.optional_tensor_argument(2))


def _work_of_outer_product(call: RecordedOperatorCall) -> OperatorWork:
    """Returns the FLOPs and bytes of a matrix plus the outer product of two vectors."""
    left, right = call.tensor_argument(1), call.tensor_argument(2)
    result = left.like(left.elements, right.elements)
    read = total_tensor_bytes(call.optional_tensor_argument(0), left, right, result)
    return OperatorWork("product", 2 * result.elements, read, common_dtype_of_tensors(left, right))


def _work_of_scaled_product(call: RecordedOperatorCall) -> OperatorWork:
    return _matrix_product_work(
        call.tensor_argument(0),
        call.tensor_argument(1),
        *map(call.optional_tensor_argument, (2, 3, 4)),
        result_dtype=_requested_result_dtype(call, 6),
    )


def _work_of_integer_product(call: RecordedOperatorCall) -> OperatorWork:
    return _matrix_product_work(
        call.tensor_argument(0), call.tensor_argument(1), result_dtype="int32"
    )


def _work_of_grouped_product(call: RecordedOperatorCall) -> OperatorWork:
    return _grouped_matrix_product_work(
        call.tensor_argument(0),
        call.tensor_argument(1),
        result_dtype=_requested_result_dtype(call, 4),
    )


def _work_of_scaled_grouped_product(call: RecordedOperatorCall) -> OperatorWork:
    return _grouped_matrix_product_work(
        call.tensor_argument(0),
        call.tensor_argument(1),
        call.optional_tensor_argument(2),
        call.optional_tensor_argument(3),
        result_dtype=_requested_result_dtype(call, 7),
    )


def _grouped_matrix_product_work(
    left: RecordedTensor,
    right: RecordedTensor,
    *scales: RecordedTensor | None,
    result_dtype: str | None,
) -> OperatorWork:
    """Returns FLOPs and bytes of a grouped matrix product, whose groups are adjacent rows."""
    if len(left.shape) + len(right.shape) == 5:
        rows, inner, columns = left.shape[-2], left.shape[-1], right.shape[-1]
        result = left.like(rows, columns, dtype=result_dtype)
        flops = 2 * rows * inner * columns
        return OperatorWork(
            "product",
            flops,
            total_tensor_bytes(left, right, *scales, result),
            common_dtype_of_tensors(left, right),
        )
    if len(left.shape) == len(right.shape) == 3:
        return _matrix_product_work(left, right, *scales, result_dtype=result_dtype)
    raise UnknownOperatorArgument  # the number of groups, and so the size of the result, is unknown


def _requested_result_dtype(call: RecordedOperatorCall, position: int) -> str | None:
    """Returns the result dtype that a call requests, or None if it requests none."""
    told = call.value(position)
    return names.dtype_of_scalar_type_number(told) if isinstance(told, int) else None


MATRIX_PRODUCT_MODELS: Final[dict[str, OperatorWorkModel]] = {
    "mm": _work_of_plain_product,
    "bmm": _work_of_plain_product,
    "mv": _work_of_plain_product,
    "dot": _work_of_plain_product,
    "vdot": _work_of_plain_product,
    "matmul": _work_of_plain_product,
    "_int_mm": _work_of_integer_product,
    "addmm": _work_of_product_with_addend,
    "_addmm_activation": _work_of_product_with_addend,
    "baddbmm": _work_of_product_with_addend,
    "addmv": _work_of_product_with_addend,
    "addbmm": _work_of_batched_product_sum,
    "addr": _work_of_outer_product,
    "linear": _work_of_linear_layer,
    "mkldnn_linear": _work_of_linear_layer,
    "_mps_linear": _work_of_linear_layer,
    "mkldnn::_linear_pointwise": _work_of_linear_layer,
    "_scaled_mm": _work_of_scaled_product,
    "_grouped_mm": _work_of_grouped_product,
    "_scaled_grouped_mm": _work_of_scaled_grouped_product,
}
"""Maps a matrix product operator's name, without `aten::`, to the model of its FLOPs and bytes."""
