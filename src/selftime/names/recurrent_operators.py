"""Recognises operators of recurrent layers, and those that pick the next input of one."""

import re
from typing import Final

_RECURRENT_OPERATOR: Final = re.compile(r"aten::(?:gru|lstm|rnn_tanh|rnn_relu)(?:_cell)?")
_FEEDBACK_OPERATOR: Final = re.compile(
    r"aten::(?:multinomial|argmax|topk|bernoulli|sort|_?softmax|_?scaled_dot_product\w+)"
)


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
