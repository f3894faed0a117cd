"""Classifies by name operators that make, carry and multiply matrices of a known pattern."""

import re
from typing import Final

_DIAGONAL_MATRIX_OPERATOR: Final = re.compile(r"aten::(?:diag_embed|diag|diagflat)")
_MATRIX_PRODUCT_OPERATOR: Final = re.compile(
    r"aten::(?:matmul|linalg_matmul|mm|bmm|einsum|linear|addmm|baddbmm|tensordot)"
)
_PRODUCT_WITH_ADDEND_OPERATOR: Final = re.compile(r"aten::(?:addmm|baddbmm)")
_ELEMENT_KEEPING_OPERATOR: Final = re.compile(
    r"aten::(?:to|_to_copy|contiguous|clone|detach|alias|t|numpy_T|transpose|swapaxes|permute"
    r"|movedim|unsqueeze|squeeze|expand|expand_as|view|reshape|_unsafe_view|flatten|type_as"
    r"|lift_fresh|resolve_conj|requires_grad_)"
)
_ZEROS_OPERATOR: Final = re.compile(r"aten::(?:zeros|new_zeros|zeros_like|zero_)")


def makes_diagonal_matrix(operator: str) -> bool:
    """Returns whether an operator makes of a vector a matrix that is zero off its diagonal.

    `aten::diag` does so of a vector, and takes the diagonal of a matrix.

    >>> makes_diagonal_matrix("aten::diag_embed"), makes_diagonal_matrix("aten::diagonal")
    (True, False)
    """
    return _DIAGONAL_MATRIX_OPERATOR.fullmatch(operator) is not None


def makes_identity_matrix(operator: str) -> bool:
    """Returns whether an operator makes a matrix of ones on the diagonal.

    >>> makes_identity_matrix("aten::eye")
    True
    """
    return operator == "aten::eye"


def makes_one_hot_rows(operator: str) -> bool:
    """Returns whether an operator makes of each index a row that is 1 there, and else 0.

    >>> makes_one_hot_rows("aten::one_hot")
    True
    """
    return operator == "aten::one_hot"


def writes_one_value(operator: str) -> bool:
    """Returns whether an operator writes values at indices, which may all be one number.

    >>> writes_one_value("aten::scatter_"), writes_one_value("aten::scatter_add_")
    (True, False)
    """
    return operator in {"aten::scatter_", "aten::scatter"}


def writes_at_indices(operator: str) -> bool:
    """Returns whether an operator writes elements of a tensor at indices, and leaves the others.

    >>> writes_at_indices("aten::index_put_"), writes_at_indices("aten::index_copy_")
    (True, False)
    """
    return operator in {"aten::index_put_", "aten::scatter_", "aten::scatter"}


def makes_zeros(operator: str) -> bool:
    """Returns whether an operator makes a tensor of zeros, or sets one to zero.

    >>> makes_zeros("aten::new_zeros"), makes_zeros("aten::ones")
    (True, False)
    """
    return _ZEROS_OPERATOR.fullmatch(operator) is not None


def multiplies_two_matrices(operator: str) -> bool:
    """Returns whether an operator multiplies two matrices, or two batches of them.

    >>> [multiplies_two_matrices(name) for name in ("aten::einsum", "aten::mm", "aten::conv2d")]
    [True, True, False]
    """
    return _MATRIX_PRODUCT_OPERATOR.fullmatch(operator) is not None


def adds_first_input(operator: str) -> bool:
    """Returns whether a product's first input is added to it, and the next two are multiplied.

    >>> adds_first_input("aten::addmm"), adds_first_input("aten::linear")
    (True, False)
    """
    return _PRODUCT_WITH_ADDEND_OPERATOR.fullmatch(operator) is not None


def keeps_elements(operator: str) -> bool:
    """Returns whether a result has the elements of the input, in other order, dtype or sizes.

    >>> keeps_elements("aten::to"), keeps_elements("aten::t"), keeps_elements("aten::select")
    (True, True, False)
    """
    return _ELEMENT_KEEPING_OPERATOR.fullmatch(operator) is not None
