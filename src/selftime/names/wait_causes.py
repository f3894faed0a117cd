"""Finds why the host waited for the device, from the operators around the wait."""

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
"""Why the host waited for the device, named by what the code did, such as `scalar_read`."""
WAIT_CAUSES: Final[tuple[WaitCause, ...]] = get_args(WaitCause)
"""Every reason for a wait of the host, named by what the code did."""

_SCALAR_READ_OPERATORS: Final = frozenset({"item", "_local_scalar_dense"})
_BRANCH_OPERATORS: Final = frozenset({"is_nonzero"})
_COPY_OPERATORS: Final = frozenset(
    {"to", "_to_copy", "copy_", "_copy_from", "cpu", "clone", "contiguous"}
)
_SELECTING_OPERATORS: Final = frozenset(
    {"index", "index_put", "index_put_", "_index_put_impl_", "masked_select", "_unsafe_index"}
)
_POSITION_OPERATORS: Final = frozenset({"nonzero", "argwhere", "nonzero_numpy"})
_COUNTING_OPERATORS: Final = frozenset(
    {"_unique", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive"}
    | {"bincount", "one_hot", "repeat_interleave"}
)
"""Operators whose result's size depends on the values of their input."""
_CAUSE_BY_WAIT_KIND: Final[dict[str, WaitCause]] = {
    **dict.fromkeys(("stream", "device", "event"), "explicit_synchronize"),
    "copy_to_host": "copy_to_host",
}
"""Maps the kind of a wait to its cause, for waits that no operator encloses."""
_FINITE_TEST_OPERATORS: Final = frozenset(
    {"isnan", "isinf", "isfinite", "_amp_foreach_non_finite_check_and_unscale_"}
)


def _operator_name_without_namespace(operator: str) -> str:
    """Returns an operator's name without namespace and overload."""
    return operator.rpartition("::")[2].partition(".")[0]


def wait_cause(wait_kind: str, operators: Sequence[str]) -> WaitCause | None:
    """Returns why the host waited, from the kind of wait and the operators around it, or None.

    `operators` are those around the waiting call, innermost first; `wait_kind` is as in the view
    `syncs`. Returns None if neither an operator nor the kind explains the wait.

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
    if wait_kind == "copy_to_device":
        return "upload"
    if not operators:
        return _CAUSE_BY_WAIT_KIND.get(wait_kind)
    names = [_operator_name_without_namespace(name) for name in operators]
    if data_dependent_shape_operator(operators) is not None:
        return "data_dependent_shape"
    if not _BRANCH_OPERATORS.isdisjoint(names):
        return "branch_on_tensor"
    if names[-1] in _SCALAR_READ_OPERATORS:
        return "scalar_read"
    return "copy_to_host" if names[-1] in _COPY_OPERATORS else "hidden_sync"


def data_dependent_shape_operator(
    operators: Sequence[str],
) -> tuple[str, Literal["B5", "B6", "B7"]] | None:
    """Returns the operator whose result size depends on data, and its bottleneck's id; else None.

    Operators are innermost first; of several the outermost is returned, as it is what the code
    calls. A mask is resolved by `nonzero`, so an index without it does not count.

    >>> data_dependent_shape_operator(["aten::nonzero", "aten::index"])
    ('aten::index', 'B6')
    >>> data_dependent_shape_operator(["aten::_local_scalar_dense", "aten::item", "aten::one_hot"])
    ('aten::one_hot', 'B7')
    >>> data_dependent_shape_operator(["aten::copy_", "aten::to", "aten::index"]) is None
    True
    """
    has_positions = not _POSITION_OPERATORS.isdisjoint(
        map(_operator_name_without_namespace, operators)
    )
    for name in reversed(operators):
        if _operator_name_without_namespace(name) in _COUNTING_OPERATORS:
            return name, "B7"
        if _operator_name_without_namespace(name) == "masked_select" or (
            has_positions and _operator_name_without_namespace(name) in _SELECTING_OPERATORS
        ):
            return name, "B6"
    return next(
        (
            (n, "B5")
            for n in reversed(operators)
            if _operator_name_without_namespace(n) in _POSITION_OPERATORS
        ),
        None,
    )


def reads_tensor_on_host(operator: str) -> bool:
    """Returns whether an operator would make the host wait if its tensor were on a device.

    Only the innermost operators that read count: each of them is one wait.

    >>> reads_tensor_on_host("aten::_local_scalar_dense"), reads_tensor_on_host("aten::nonzero")
    (True, True)
    >>> reads_tensor_on_host("aten::item"), reads_tensor_on_host("aten::mm")
    (False, False)
    """
    bare = _operator_name_without_namespace(operator)
    return operator.startswith("aten::") and (
        bare in {"_local_scalar_dense", "nonzero"} or bare.startswith(("_unique", "unique_"))
    )


def draws_random_sample(operator: str) -> bool:
    """Returns whether an operator draws samples and checks its arguments on the host.

    >>> draws_random_sample("aten::multinomial"), draws_random_sample("aten::linalg_inv")
    (True, False)
    """
    return (
        operator.startswith("aten::")
        and _operator_name_without_namespace(operator) == "multinomial"
    )


def is_finite_test(operator: str) -> bool:
    """Returns whether an operator tests for NaN or infinity.

    >>> is_finite_test("aten::isnan"), is_finite_test("aten::any")
    (True, False)
    """
    return (
        operator.startswith("aten::")
        and _operator_name_without_namespace(operator) in _FINITE_TEST_OPERATORS
    )


def is_gradient_scaler_frame(frame_name: str) -> bool:
    """Returns whether a Python frame belongs to AMP's gradient scaler, which tests for infinities.

    >>> is_gradient_scaler_frame("torch/amp/grad_scaler.py(352): _maybe_opt_step")
    True
    """
    return "grad_scaler.py(" in frame_name
