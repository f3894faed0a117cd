"""Classifies by name operators by what becomes of the positions, rows and order of their input."""

import re
from typing import Final

_LAYER_CONVOLUTION: Final = re.compile(r"aten::conv[123]d")
_DIMENSION_PERMUTATION: Final = re.compile(r"aten::(?:transpose|permute|t|swapaxes|numpy_T)")
_ORDER_KEEPING_COPY: Final = re.compile(r"aten::(?:contiguous|clone)")
_READING_NO_VALUES: Final = re.compile(
    r"aten::(?:(?:empty|zeros|ones|full|rand|randn|randint|bernoulli)_like"
    r"|new_(?:empty|zeros|ones|full|empty_strided)|size|sym_size|numel|result_type)"
)


def convolves_positions(operator: str) -> bool:
    """Returns whether an operator is a convolution as layers call it: dimension 1 has channels.

    >>> convolves_positions("aten::conv1d"), convolves_positions("aten::conv_transpose1d")
    (True, False)
    """
    return _LAYER_CONVOLUTION.fullmatch(operator) is not None


def permutes_dimensions(operator: str) -> bool:
    """Returns whether an operator makes a view with the dimensions in another order.

    >>> permutes_dimensions("aten::permute"), permutes_dimensions("aten::view")
    (True, False)
    """
    return _DIMENSION_PERMUTATION.fullmatch(operator) is not None


def copies_in_order(operator: str) -> bool:
    """Returns whether a result has the input's elements and sizes, maybe as a copy in memory.

    >>> copies_in_order("aten::contiguous"), copies_in_order("aten::to")
    (True, False)
    """
    return _ORDER_KEEPING_COPY.fullmatch(operator) is not None


def reads_no_values(operator: str) -> bool:
    """Returns whether an operator uses sizes or dtype of its inputs, and not their elements.

    >>> reads_no_values("aten::zeros_like"), reads_no_values("aten::add")
    (True, False)
    """
    return _READING_NO_VALUES.fullmatch(operator) is not None


def normalises_last_dimensions(operator: str) -> bool:
    """Returns whether a layer normalises each position by itself, over its last dimensions.

    >>> normalises_last_dimensions("aten::layer_norm")
    True
    >>> normalises_last_dimensions("aten::batch_norm")
    False
    """
    return operator in {"aten::layer_norm", "aten::rms_norm"}


def normalises_one_dimension(operator: str) -> bool:
    """Returns whether an operator is a softmax or its logarithm, along one dimension.

    >>> normalises_one_dimension("aten::log_softmax"), normalises_one_dimension("aten::sum")
    (True, False)
    """
    return operator in {"aten::softmax", "aten::log_softmax"}


def repeats_tensor(operator: str) -> bool:
    """Returns whether an operator writes a tensor several times along its dimensions.

    >>> repeats_tensor("aten::repeat"), repeats_tensor("aten::expand")
    (True, False)
    """
    return operator == "aten::repeat"


def repeats_by_view(operator: str) -> bool:
    """Returns whether an operator makes a view that repeats a tensor along its dimensions.

    >>> repeats_by_view("aten::expand"), repeats_by_view("aten::repeat")
    (True, False)
    """
    return operator in {"aten::expand", "aten::expand_as", "aten::broadcast_to"}


def changes_sizes_only(operator: str) -> bool:
    """Returns whether a result has the elements of the input in the same order, in other sizes.

    >>> changes_sizes_only("aten::view"), changes_sizes_only("aten::permute")
    (True, False)
    """
    return operator in {"aten::view", "aten::reshape", "aten::flatten", "aten::_unsafe_view"}
