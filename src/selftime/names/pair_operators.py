"""Classifies by name operators that compare rows, and the steps of a comparison written out."""

import re
from typing import Final

_ROW_COMPARISON: Final = re.compile(r"aten::(?:cosine_similarity|pairwise_distance)")
_STEP_OF_DISTANCE: Final = re.compile(
    r"aten::(?:pow|square|abs|mul|neg|add|sub|sqrt|pow_|square_|abs_|mul_|add_)"
)
_REDUCTION_OF_PAIRS: Final = re.compile(
    r"aten::(?:sum|mean|norm|linalg_vector_norm|linalg_norm|frobenius_norm)"
)
_NORM: Final = re.compile(r"aten::(?:norm|linalg_vector_norm|linalg_norm|frobenius_norm)")


def compares_rows(operator: str) -> bool:
    """Returns whether an operator compares rows of two tensors that it broadcasts.

    >>> compares_rows("aten::cosine_similarity"), compares_rows("aten::cdist")
    (True, False)
    """
    return _ROW_COMPARISON.fullmatch(operator) is not None


def is_difference(operator: str) -> bool:
    """Returns whether an operator subtracts one tensor from another.

    >>> is_difference("aten::sub"), is_difference("aten::add")
    (True, False)
    """
    return operator in {"aten::sub", "aten::rsub"}


def is_elementwise_product(operator: str) -> bool:
    """Returns whether an operator multiplies two tensors element by element.

    >>> is_elementwise_product("aten::mul"), is_elementwise_product("aten::mm")
    (True, False)
    """
    return operator == "aten::mul"


def is_step_of_distance(operator: str) -> bool:
    """Returns whether an operator makes of differences what a distance adds up, such as squares.

    >>> is_step_of_distance("aten::pow"), is_step_of_distance("aten::tanh")
    (True, False)
    """
    return _STEP_OF_DISTANCE.fullmatch(operator) is not None


def reduces_pairs(operator: str) -> bool:
    """Returns whether an operator adds up a dimension, or takes a norm along it.

    >>> reduces_pairs("aten::linalg_vector_norm"), reduces_pairs("aten::max")
    (True, False)
    """
    return _REDUCTION_OF_PAIRS.fullmatch(operator) is not None


def takes_norm(operator: str) -> bool:
    """Returns whether an operator takes a norm, with its dimensions as third argument.

    >>> takes_norm("aten::norm"), takes_norm("aten::sum")
    (True, False)
    """
    return _NORM.fullmatch(operator) is not None
