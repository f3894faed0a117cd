"""Products of matrices: two operations for each pair of numbers multiplied and added.

    mm, addmm, linear       2 m n k
    bmm, baddbmm            2 b m n k
    mv, dot                 2 m k, 2 k
    grouped products        2 m n k over all rows of all groups, padding between them included

A bias or an accumulator is added within the same operations, as torch.utils.flop_counter has it.
"""

from math import prod
from typing import Final

from selftime import names
from selftime.analysis.models.calls import (
    Call,
    Model,
    Tensor,
    Untold,
    Work,
    broadcast,
    moved,
    wider,
)


def _product(left: Tensor, right: Tensor, *others: Tensor | None, out: str | None = None) -> Work:
    """`left @ right` with what else is read; `out` is the dtype of the result if it is another."""
    rows, inner, columns, batch = _sizes(left, right)
    result = left.like(*batch, rows, columns, dtype=out)
    flops = 2 * prod(batch) * rows * inner * columns
    return Work("product", flops, moved(left, right, *others, result), wider(left, right))


def _sizes(left: Tensor, right: Tensor) -> tuple[int, int, int, tuple[int, ...]]:
    """Rows, inner size, columns and batch; a vector is a row on the left, a column on the right."""
    if not left.shape or not right.shape:
        raise Untold
    first = left.shape if len(left.shape) > 1 else (1, *left.shape)
    second = right.shape if len(right.shape) > 1 else (*right.shape, 1)
    if first[-1] != second[-2]:
        raise Untold
    batch = broadcast(first[:-2], second[:-2])
    return first[-2], first[-1], second[-1], batch


def _plain(call: Call) -> Work:
    return _product(call.tensor(0), call.tensor(1))


def _added(call: Call) -> Work:
    return _product(call.tensor(1), call.tensor(2), call.optional(0))


def _added_batches(call: Call) -> Work:
    """The products of a batch, all added to one matrix."""
    left, right = call.tensor(1), call.tensor(2)
    work = _product(left, right)
    result = left.like(*left.shape[1:-1], right.shape[-1])
    read = moved(left, right, call.optional(0), result)
    return Work("product", work.flops, read, work.dtype)


def _linear(call: Call) -> Work:
    given, weight = call.tensor(0), call.tensor(1)
    if len(weight.shape) == 1:
        weight = weight.like(1, *weight.shape)
    transposed = Tensor(tuple(reversed(weight.shape)), weight.dtype)
    rows = given.like(prod(given.shape[:-1]), *given.shape[-1:])
    return _product(rows, transposed, call.optional(2))


def _outer(call: Call) -> Work:
    """A matrix and the outer product of two vectors, added."""
    left, right = call.tensor(1), call.tensor(2)
    result = left.like(left.elements, right.elements)
    read = moved(call.optional(0), left, right, result)
    return Work("product", 2 * result.elements, read, wider(left, right))


def _scaled(call: Call) -> Work:
    return _product(
        call.tensor(0), call.tensor(1), *map(call.optional, (2, 3, 4)), out=_told_dtype(call, 6)
    )


def _integers(call: Call) -> Work:
    return _product(call.tensor(0), call.tensor(1), out="int32")


def _grouped(call: Call) -> Work:
    return _of_groups(call.tensor(0), call.tensor(1), out=_told_dtype(call, 4))


def _scaled_grouped(call: Call) -> Work:
    return _of_groups(
        call.tensor(0), call.tensor(1), call.optional(2), call.optional(3), out=_told_dtype(call, 7)
    )


def _of_groups(left: Tensor, right: Tensor, *scales: Tensor | None, out: str | None) -> Work:
    """Rows, inner sizes or columns of all groups lie one after the other in a matrix."""
    if len(left.shape) + len(right.shape) == 5:
        rows, inner, columns = left.shape[-2], left.shape[-1], right.shape[-1]
        result = left.like(rows, columns, dtype=out)
        flops = 2 * rows * inner * columns
        return Work("product", flops, moved(left, right, *scales, result), wider(left, right))
    if len(left.shape) == len(right.shape) == 3:
        return _product(left, right, *scales, out=out)
    raise Untold  # the number of groups, and so the size of the result, is not told


def _told_dtype(call: Call, place: int) -> str | None:
    """The dtype asked for; None where it is that of the inputs."""
    told = call.value(place)
    return names.dtype_of_number(told) if isinstance(told, int) else None


PRODUCTS: Final[dict[str, Model]] = {
    "mm": _plain,
    "bmm": _plain,
    "mv": _plain,
    "dot": _plain,
    "vdot": _plain,
    "matmul": _plain,
    "_int_mm": _integers,
    "addmm": _added,
    "_addmm_activation": _added,
    "baddbmm": _added,
    "addmv": _added,
    "addbmm": _added_batches,
    "addr": _outer,
    "linear": _linear,
    "mkldnn_linear": _linear,
    "_mps_linear": _linear,
    "mkldnn::_linear_pointwise": _linear,
    "_scaled_mm": _scaled,
    "_grouped_mm": _grouped,
    "_scaled_grouped_mm": _scaled_grouped,
}
