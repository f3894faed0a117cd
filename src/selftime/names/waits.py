"""Why the host waits for the device: what the operators around a wait say of the code's intent."""

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
"""What the code wanted when it waited."""

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
_ALONE: Final[dict[str, WaitCause]] = {
    **dict.fromkeys(("stream", "device", "event"), "explicit_synchronize"),
    "copy_to_host": "copy_to_host",
}
"""Causes of the kinds of waits that no operator is around."""
_TESTS: Final = frozenset(
    {"isnan", "isinf", "isfinite", "_amp_foreach_non_finite_check_and_unscale_"}
)


def _bare(name: str) -> str:
    return name.rpartition("::")[2].partition(".")[0]


def wait_cause(kind: str, operators: Sequence[str]) -> WaitCause | None:
    """Why a wait of a kind (see the view `syncs`) is there, by the operators around it.

    The operators are those around the call that waited, the innermost first. None: a wait that
    neither an operator nor its kind explains.

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
        return _ALONE.get(kind)
    names = [_bare(name) for name in operators]
    if shape_operator(operators) is not None:
        return "data_dependent_shape"
    if not _BRANCHES.isdisjoint(names):
        return "branch_on_tensor"
    if names[-1] in _READS:
        return "scalar_read"
    return "copy_to_host" if names[-1] in _COPIES else "hidden_sync"


def shape_operator(operators: Sequence[str]) -> tuple[str, Literal["B5", "B6", "B7"]] | None:
    """The operator whose result's shape depends on data, and its entry of the catalogue.

    The operators are the innermost first; of several the outermost tells what the code says. A mask
    is looked up with `nonzero`, so that indices without it do not count.

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

    Those that hold the reading itself, innermost: each of them is one wait.

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
    """Whether an operator draws from a distribution and looks at its arguments on the host.

    >>> draws_sample("aten::multinomial"), draws_sample("aten::linalg_inv")
    (True, False)
    """
    return name.startswith("aten::") and _bare(name) == "multinomial"


def is_finite_test(name: str) -> bool:
    """Whether an operator looks for NaN or infinity.

    >>> is_finite_test("aten::isnan"), is_finite_test("aten::any")
    (True, False)
    """
    return name.startswith("aten::") and _bare(name) in _TESTS


def is_scaler_frame(name: str) -> bool:
    """Whether a Python frame is of the gradient scaler, which looks for infinities each step.

    >>> is_scaler_frame("torch/amp/grad_scaler.py(352): _maybe_opt_step")
    True
    """
    return "grad_scaler.py(" in name
