"""Models of operators that move data (copies, fills, look-ups), and of recurrent layers.

A look-up reads as many rows as requested, at most the whole table.

    embedding, index_select, gather    rows read, indices, result
    index                              the same
    scatter_, scatter_add_             values and indices read; as many written, or read and written
    index_add_, index_copy_            the same by rows

The indices of `index` are not recorded. Its sizes are those with which it calls `as_strided`, which
repeats the input along indexed dimensions by strides of 0: `restride_src` in PyTorch's
`aten/src/ATen/native/TensorAdvancedIndexing.cpp`.
"""

from math import prod
from typing import Final

from selftime.analysis.models.recorded_operator_calls import (
    OperatorWork,
    OperatorWorkModel,
    RecordedOperatorCall,
    RecordedTensor,
    UnknownOperatorArgument,
    total_element_count,
    total_tensor_bytes,
)


def _copy_work(call: RecordedOperatorCall) -> OperatorWork:
    target, source = call.tensor_argument(0), call.tensor_argument(1)
    return OperatorWork("movement", 0, total_tensor_bytes(target, source), target.dtype)


def _fill_work(call: RecordedOperatorCall) -> OperatorWork:
    target = call.tensor_argument(0)
    return OperatorWork("movement", 0, total_tensor_bytes(target), target.dtype)


def _concatenation_work(call: RecordedOperatorCall) -> OperatorWork:
    """Returns how many elements a concatenation reads and writes; the trace lacks their dtype."""
    return OperatorWork(
        "movement", 0, None, None, 2 * total_element_count(call.tensor_list_argument(0))
    )


def _tensor_of_rows_read(table: RecordedTensor, row_count: int, row_size: int) -> RecordedTensor:
    return table.like(min(row_count * row_size, table.elements))


def _embedding_work(call: RecordedOperatorCall) -> OperatorWork:
    table, places = call.tensor_argument(0), call.tensor_argument(1)
    row = prod(table.shape[1:])
    out = table.like(places.elements, row)
    read = total_tensor_bytes(_tensor_of_rows_read(table, places.elements, row), places, out)
    return OperatorWork("movement", 0, read, table.dtype)


def _embedding_backward_work(call: RecordedOperatorCall) -> OperatorWork:
    """Returns an embedding gradient's FLOPs and bytes: rows are added, the table is written."""
    gradient, places = call.tensor_argument(0), call.tensor_argument(1)
    if not gradient.shape:
        raise UnknownOperatorArgument
    table = gradient.like(call.number(2), gradient.shape[-1])
    return OperatorWork(
        "movement", gradient.elements, total_tensor_bytes(gradient, places, table), gradient.dtype
    )


def _index_select_work(call: RecordedOperatorCall) -> OperatorWork:
    given, dim, places = call.tensor_argument(0), call.number(1), call.tensor_argument(2)
    row = given.elements // given.shape[dim] if given.shape and given.shape[dim] else 0
    out = given.like(row * places.elements)
    read = total_tensor_bytes(_tensor_of_rows_read(given, places.elements, row), places, out)
    return OperatorWork("movement", 0, read, given.dtype)


def _gather_operator_work(call: RecordedOperatorCall) -> OperatorWork:
    given, places = call.tensor_argument(0), call.tensor_argument(2)
    out = given.like(*places.shape)
    return OperatorWork(
        "movement",
        0,
        total_tensor_bytes(_tensor_of_rows_read(given, places.elements, 1), places, out),
        given.dtype,
    )


def _index_work(call: RecordedOperatorCall) -> OperatorWork:
    """Returns the bytes of indexing by tensors; the values are those of the inner `as_strided`."""
    given, sizes, strides = call.tensor_argument(0), call.value(1), call.value(2)
    if not isinstance(sizes, list) or not isinstance(strides, list):
        raise UnknownOperatorArgument
    out = given.like(*sizes)
    count = prod(size for size, step in zip(sizes, strides, strict=True) if step == 0)
    read = _tensor_of_rows_read(given, count, out.elements // max(count, 1))
    places = given.like(count, dtype="int64")
    return OperatorWork("movement", 0, total_tensor_bytes(read, places, out), given.dtype)


def _scatter_work(call: RecordedOperatorCall) -> OperatorWork:
    given, places = call.tensor_argument(0), call.tensor_argument(2)
    written = given.like(places.elements)
    value = call.optional_tensor_argument(3)
    read = None if value is None else written
    return OperatorWork("movement", 0, total_tensor_bytes(places, read, written), given.dtype)


def _scatter_add_work(call: RecordedOperatorCall) -> OperatorWork:
    given, places = call.tensor_argument(0), call.tensor_argument(2)
    each = given.like(places.elements)
    moved = total_tensor_bytes(places, each, each, each)
    return OperatorWork("movement", places.elements, moved, given.dtype)


def _index_add_work(call: RecordedOperatorCall) -> OperatorWork:
    given, places, added = (call.tensor_argument(at) for at in (0, 2, 3))
    moved = total_tensor_bytes(places, added, added, added)
    return OperatorWork("movement", added.elements, moved, given.dtype)


def _index_copy_work(call: RecordedOperatorCall) -> OperatorWork:
    given, places, copied = (call.tensor_argument(at) for at in (0, 2, 3))
    return OperatorWork("movement", 0, total_tensor_bytes(places, copied, copied), given.dtype)


MOVEMENT_MODELS: Final[dict[str, OperatorWorkModel]] = {
    "copy_": _copy_work,
    "fill_": _fill_work,
    "zero_": _fill_work,
    "cat": _concatenation_work,
    "_cat": _concatenation_work,
    "embedding": _embedding_work,
    "embedding_dense_backward": _embedding_backward_work,
    "index_select": _index_select_work,
    "gather": _gather_operator_work,
    "index": _index_work,
    "scatter_": _scatter_work,
    "scatter_add_": _scatter_add_work,
    "index_add_": _index_add_work,
    "index_copy_": _index_copy_work,
}
"""Maps a data movement operator's name, without `aten::`, to the model of its FLOPs and bytes."""


def _recurrent_work(call: RecordedOperatorCall) -> OperatorWork:
    """Returns the FLOPs of a recurrent layer: all weights are multiplied once per input row."""
    return _recurrence_work(call.tensor_argument(0), call.tensor_list_argument(1), passes=1)


def _recurrent_backward_work(call: RecordedOperatorCall) -> OperatorWork:
    """Returns the FLOPs of a recurrent layer's backward pass: twice those of the forward pass."""
    return _recurrence_work(call.tensor_argument(0), call.tensor_list_argument(1), passes=2)


def _recurrent_layer_work(call: RecordedOperatorCall) -> OperatorWork:
    return _recurrence_work(
        call.tensor_argument(0), (call.tensor_argument(1), call.tensor_argument(2)), passes=1
    )


def _recurrent_layer_backward_work(call: RecordedOperatorCall) -> OperatorWork:
    return _recurrence_work(
        call.tensor_argument(0), (call.tensor_argument(1), call.tensor_argument(2)), passes=2
    )


def _recurrence_work(
    layer_input: RecordedTensor, weights: tuple[RecordedTensor, ...], *, passes: int
) -> OperatorWork:
    """Returns the FLOPs of a recurrent layer's weights: two per weight element and input row."""
    rows = prod(layer_input.shape[:-1])
    matrices = sum(w.elements for w in weights if len(w.shape) == 2)
    if not matrices:
        raise UnknownOperatorArgument
    return OperatorWork("recurrence", 2 * passes * rows * matrices, None, layer_input.dtype)


RECURRENCE_MODELS: Final[dict[str, OperatorWorkModel]] = {
    "_cudnn_rnn": _recurrent_work,
    "_cudnn_rnn_backward": _recurrent_backward_work,
    "miopen_rnn": _recurrent_work,
    "miopen_rnn_backward": _recurrent_backward_work,
    "mkldnn_rnn_layer": _recurrent_layer_work,
    "mkldnn_rnn_layer_backward": _recurrent_layer_backward_work,
}
"""Maps a recurrent layer operator's name, without `aten::`, to the model of its FLOPs."""
