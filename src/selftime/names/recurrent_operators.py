"""Recognises operators of recurrent layers, and those that pick the next input of one."""

import json
import re
from typing import Final

_RECURRENT_OPERATOR: Final = re.compile(r"aten::(?:gru|lstm|rnn_tanh|rnn_relu)(?:_cell)?")
_FEEDBACK_OPERATOR: Final = re.compile(
    r"aten::(?:multinomial|argmax|topk|bernoulli|sort|_?softmax|_?scaled_dot_product\w+)"
)
_CELL_DIMENSIONS: Final = 2
"""Number of dimensions of a cell's input: batch and features."""
_STATE_DIMENSIONS: Final = 3
"""Number of dimensions of a layer's state: layers, batch and features."""
_PACKED_STATE: Final = 2
"""Which input is the state where the sequences are packed: their data and batch sizes come first.
"""


def is_recurrent_operator(operator: str) -> bool:
    """Returns whether an operator is a recurrent layer, or a cell of one.

    >>> is_recurrent_operator("aten::gru_cell"), is_recurrent_operator("aten::linear")
    (True, False)
    """
    return _RECURRENT_OPERATOR.fullmatch(operator) is not None


def picks_or_weighs_results(operator: str) -> bool:
    """Returns whether an operator picks one of its inputs, or weighs them, as in attention.

    >>> picks_or_weighs_results("aten::argmax"), picks_or_weighs_results("aten::tanh")
    (True, False)
    """
    return _FEEDBACK_OPERATOR.fullmatch(operator) is not None


def recurrent_batch(operator: str, shapes: str | None) -> int | None:
    """Returns the number of samples that a recurrent layer or cell gets; None if unknown.

    Of a layer its first state tells, which is (layers, batch, features) whatever `batch_first` is;
    of a packed sequence too.

    >>> recurrent_batch("aten::gru", "[[1,50,8],[1,50,4],[[12,8],[12,4]]]")
    50
    >>> recurrent_batch("aten::lstm", "[[50,1,8],[[2,50,4],[2,50,4]],[[16,8],[16,4]]]")
    50
    >>> recurrent_batch("aten::gru_cell", "[[3,8],[3,4]]")
    3
    """
    try:
        inputs = json.loads(shapes or "[]")
    except ValueError:
        return None
    if operator.endswith("_cell"):
        rows = inputs[0] if inputs else []
        return rows[0] if len(rows) == _CELL_DIMENSIONS else None
    is_packed = len(inputs) > _PACKED_STATE and len(inputs[1]) == 1
    states = inputs[_PACKED_STATE if is_packed else 1 :][:1]
    state = states[0] if states else []
    first = state[0] if state and isinstance(state[0], list) else state
    return first[1] if len(first) == _STATE_DIMENSIONS else None
