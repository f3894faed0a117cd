"""Classifies by name operators that reduce dimensions of a tensor, by what they compute of them."""

from typing import Final, Literal, TypeAlias

ReductionKind: TypeAlias = Literal[
    "norm", "variance", "deviation", "softmax", "log_softmax", "sum", "mean"
]
"""What a reduction computes along dimensions of a tensor."""

_KINDS: Final[dict[str, ReductionKind]] = {
    "aten::linalg_vector_norm": "norm",
    "aten::var": "variance",
    "aten::var_mean": "variance",
    "aten::std": "deviation",
    "aten::std_mean": "deviation",
    "aten::_softmax": "softmax",
    "aten::_log_softmax": "log_softmax",
    "aten::sum": "sum",
    "aten::mean": "mean",
}


def reduction_kind(operator: str) -> ReductionKind | None:
    """Returns what an operator computes along dimensions of a tensor; None if it is no reduction.

    Of operators that call each other it is the one that does the work.

    >>> [reduction_kind(name) for name in ("aten::linalg_vector_norm", "aten::norm")]
    ['norm', None]
    """
    return _KINDS.get(operator)


def is_reduction(operator: str) -> bool:
    """Returns whether `reduction_kind` knows what an operator computes.

    >>> is_reduction("aten::sum"), is_reduction("aten::cumsum")
    (True, False)
    """
    return operator in _KINDS


def dimensions_argument(kind: ReductionKind) -> int:
    """Returns the position of the dimensions among the arguments of a reduction.

    >>> dimensions_argument("norm"), dimensions_argument("sum")
    (2, 1)
    """
    return 2 if kind == "norm" else 1
