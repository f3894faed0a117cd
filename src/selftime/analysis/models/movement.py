"""Operators that move numbers and compute none: copies, fills, look-ups; and recurrent layers.

A look-up reads as many rows as it is asked for, at most the whole table.
"""

from math import prod
from typing import Final

from selftime.analysis.models.calls import Call, Model, Tensor, Untold, Work, elements, moved


def _copy(call: Call) -> Work:
    target, source = call.tensor(0), call.tensor(1)
    return Work("movement", 0, moved(target, source), target.dtype)


def _fill(call: Call) -> Work:
    target = call.tensor(0)
    return Work("movement", 0, moved(target), target.dtype)


def _join(call: Call) -> Work:
    """The trace does not tell the dtypes in a list."""
    return Work("movement", 0, None, None, 2 * elements(call.tensors(0)))


def _rows_read(table: Tensor, rows: int, row: int) -> Tensor:
    return table.like(min(rows * row, table.elements))


def _embedding(call: Call) -> Work:
    table, places = call.tensor(0), call.tensor(1)
    row = prod(table.shape[1:])
    out = table.like(places.elements, row)
    read = moved(_rows_read(table, places.elements, row), places, out)
    return Work("movement", 0, read, table.dtype)


def _embedding_backward(call: Call) -> Work:
    """All gradients are added to their rows; the whole table's gradient is written."""
    gradient, places = call.tensor(0), call.tensor(1)
    if not gradient.shape:
        raise Untold
    table = gradient.like(call.number(2), gradient.shape[-1])
    return Work("movement", gradient.elements, moved(gradient, places, table), gradient.dtype)


def _select(call: Call) -> Work:
    given, dim, places = call.tensor(0), call.number(1), call.tensor(2)
    row = given.elements // given.shape[dim] if given.shape and given.shape[dim] else 0
    out = given.like(row * places.elements)
    read = moved(_rows_read(given, places.elements, row), places, out)
    return Work("movement", 0, read, given.dtype)


def _gather(call: Call) -> Work:
    given, places = call.tensor(0), call.tensor(2)
    out = given.like(*places.shape)
    return Work(
        "movement", 0, moved(_rows_read(given, places.elements, 1), places, out), given.dtype
    )


MOVEMENT: Final[dict[str, Model]] = {
    "copy_": _copy,
    "fill_": _fill,
    "zero_": _fill,
    "cat": _join,
    "_cat": _join,
    "embedding": _embedding,
    "embedding_dense_backward": _embedding_backward,
    "index_select": _select,
    "gather": _gather,
}


def _recurrent(call: Call) -> Work:
    """Each step multiplies each weight of its matrices once for each row of the batch."""
    return _layers(call.tensor(0), call.tensors(1), times=1)


def _recurrent_backward(call: Call) -> Work:
    """The gradients of input and weights, each as many operations as forward."""
    return _layers(call.tensor(0), call.tensors(1), times=2)


def _layer(call: Call) -> Work:
    return _layers(call.tensor(0), (call.tensor(1), call.tensor(2)), times=1)


def _layer_backward(call: Call) -> Work:
    return _layers(call.tensor(0), (call.tensor(1), call.tensor(2)), times=2)


def _layers(given: Tensor, weights: tuple[Tensor, ...], *, times: int) -> Work:
    """Matrices among the weights, in two operations a number; packed rows are told as they are."""
    rows = prod(given.shape[:-1])
    matrices = sum(w.elements for w in weights if len(w.shape) == 2)
    if not matrices:
        raise Untold
    return Work("recurrence", 2 * times * rows * matrices, None, given.dtype)


RECURRENCE: Final[dict[str, Model]] = {
    "_cudnn_rnn": _recurrent,
    "_cudnn_rnn_backward": _recurrent_backward,
    "miopen_rnn": _recurrent,
    "miopen_rnn_backward": _recurrent_backward,
    "mkldnn_rnn_layer": _layer,
    "mkldnn_rnn_layer_backward": _layer_backward,
}
