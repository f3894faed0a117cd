"""Find the cause of a host's wait for the device, from the operators around the wait."""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, get_args

WaitCause: TypeAlias = Literal[
    "scalar_read",
    "branch_on_tensor",
    "finite_check",
    "copy_to_host",
    "data_dependent_shape",
    "hidden_sync",
    "explicit_synchronize",
    "upload",
]
WAIT_CAUSES: Final[tuple[WaitCause, ...]] = get_args(WaitCause)
"""Every cause of a wait, by what the code did."""

_READS: Final = frozenset({"item", "_local_scalar_dense"})
_BRANCHES: Final = frozenset({"is_nonzero"})
_COPIES: Final = frozenset({"to", "_to_copy", "copy_", "_copy_from", "cpu", "clone", "contiguous"})
_SELECTIONS: Final = frozenset(
    {"index", "index_put", "index_put_", "_index_put_impl_", "masked_select", "_unsafe_index"}
)
_POSITIONS: Final = frozenset({"nonzero", "argwhere", "nonzero_numpy"})
_COUNTS: Final = frozenset(
    {"_unique", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive"}
    | {"bincount", "one_hot", "repeat_interleave"}
)
_CAUSE_WITHOUT_OPERATOR: Final[dict[str, WaitCause]] = {
    **dict.fromkeys(("stream", "device", "event"), "explicit_synchronize"),
    "copy_to_host": "copy_to_host",
}
"""Causes of waits without an operator around them, by kind of wait."""
_TESTS: Final = frozenset(
    {"isnan", "isinf", "isfinite", "_amp_foreach_non_finite_check_and_unscale_"}
)


def _bare(name: str) -> str:
    return name.rpartition("::")[2].partition(".")[0]


def wait_cause(kind: str, operators: Sequence[str]) -> WaitCause | None:
    """Returns the cause of a wait of this kind (see the view `syncs`), from its operators.

    `operators` are those around the waiting call, innermost first. Returns None if neither an
    operator nor the kind explains the wait.

    >>> wait_cause("copy_to_host", ["aten::_local_scalar_dense", "aten::item"])
    'scalar_read'
    >>> wait_cause("copy_to_host", ["aten::_local_scalar_dense", "aten::item", "aten::is_nonzero"])
    'branch_on_tensor'
    >>> wait_cause("copy_to_host", ["aten::nonzero", "aten::index"])
    'data_dependent_shape'
    >>> wait_cause("copy_to_host", ["aten::item", "aten::multinomial"])
    'hidden_sync'
    >>> wait_cause("stream", []), wait_cause("copy_to_device", ["aten::copy_", "aten::to"])
    ('explicit_synchronize', 'upload')
    """
    if kind == "copy_to_device":
        return "upload"
    if not operators:
        return _CAUSE_WITHOUT_OPERATOR.get(kind)
    names = [_bare(name) for name in operators]
    if shape_operator(operators) is not None:
        return "data_dependent_shape"
    if not _BRANCHES.isdisjoint(names):
        return "branch_on_tensor"
    if names[-1] in _READS:
        return "scalar_read"
    return "copy_to_host" if names[-1] in _COPIES else "hidden_sync"


def shape_operator(operators: Sequence[str]) -> tuple[str, Literal["B5", "B6", "B7"]] | None:
    """Returns the operator with a data-dependent result shape, and its catalogue entry.

    Operators are innermost first; of several the outermost is returned, as it is what the code
    calls. A mask is resolved by `nonzero`, so an index without it does not count.

    >>> shape_operator(["aten::nonzero", "aten::index"])
    ('aten::index', 'B6')
    >>> shape_operator(["aten::_local_scalar_dense", "aten::item", "aten::one_hot"])
    ('aten::one_hot', 'B7')
    >>> shape_operator(["aten::copy_", "aten::to", "aten::index"]) is None
    True
    """
    has_positions = not _POSITIONS.isdisjoint(map(_bare, operators))
    for name in reversed(operators):
        if _bare(name) in _COUNTS:
            return name, "B7"
        if _bare(name) == "masked_select" or (has_positions and _bare(name) in _SELECTIONS):
            return name, "B6"
    return next(((n, "B5") for n in reversed(operators) if _bare(n) in _POSITIONS), None)


def reads_on_host(name: str) -> bool:
    """Whether an operator would make the host wait if its tensor were on a device.

    Only the innermost operators that read count: each of them is one wait.

    >>> reads_on_host("aten::_local_scalar_dense"), reads_on_host("aten::nonzero")
    (True, True)
    >>> reads_on_host("aten::item"), reads_on_host("aten::mm")
    (False, False)
    """
    bare = _bare(name)
    return name.startswith("aten::") and (
        bare in {"_local_scalar_dense", "nonzero"} or bare.startswith(("_unique", "unique_"))
    )


def draws_sample(name: str) -> bool:
    """Whether an operator draws samples and checks its arguments on the host.

    >>> draws_sample("aten::multinomial"), draws_sample("aten::linalg_inv")
    (True, False)
    """
    return name.startswith("aten::") and _bare(name) == "multinomial"


def is_finite_test(name: str) -> bool:
    """Whether an operator tests for NaN or infinity.

    >>> is_finite_test("aten::isnan"), is_finite_test("aten::any")
    (True, False)
    """
    return name.startswith("aten::") and _bare(name) in _TESTS


def is_scaler_frame(name: str) -> bool:
    """Whether a Python frame belongs to the gradient scaler, which tests for infinities.

    >>> is_scaler_frame("torch/amp/grad_scaler.py(352): _maybe_opt_step")
    True
    """
    return "grad_scaler.py(" in name
