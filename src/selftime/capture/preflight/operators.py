"""Finds out from an operator's arguments whether its call makes the host wait for a CUDA device.

They are taken from ATen's CUDA kernels of torch 2.13 (`aten/src/ATen/native/cuda` and the composite
kernels beside it). The host waits if a kernel copies a value to it: because the size of the result
depends on it, because the kernel checks its input, or because a library returns a status. Composite
operators need no rule: the modes see the operators that they call.
"""

# ruff: noqa: SLF001 - torch has no public name for operator schemas and autograd nodes

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch

from selftime.capture.preflight import fixes
from selftime.capture.preflight.locations import (
    TensorLocation,
    is_on_device,
    location_of,
    nested_tensors_in,
)
from selftime.capture.preflight.results import WaitKind


@dataclass(frozen=True, slots=True)
class OperatorWait:
    """A wait of the host for the device during an operator's call, or a copy without a wait."""

    kind: WaitKind | None
    """The kind of wait; None for a copy for which the host does not wait."""
    fix: str


_COPY_WITHOUT_WAIT: Final = OperatorWait(None, "")

_FIX_BY_SYNCHRONIZING_OPERATOR: Final[dict[str, str]] = {
    "_local_scalar_dense": fixes.FIX_FOR_ITEM,
    "item": fixes.FIX_FOR_ITEM,
    "is_nonzero": fixes.FIX_FOR_ITEM,
    "equal": fixes.FIX_FOR_EQUAL,
    "allclose": fixes.FIX_FOR_EQUAL,
    "nonzero": fixes.FIX_FOR_NONZERO,
    "nonzero_numpy": fixes.FIX_FOR_NONZERO,
    "argwhere": fixes.FIX_FOR_NONZERO,
    "masked_select": fixes.FIX_FOR_BOOLEAN_MASK,
    "masked_scatter_backward": fixes.FIX_FOR_BOOLEAN_MASK,
    "_unique": fixes.FIX_FOR_UNIQUE,
    "_unique2": fixes.FIX_FOR_UNIQUE,
    "unique_dim": fixes.FIX_FOR_UNIQUE,
    "unique_consecutive": fixes.FIX_FOR_UNIQUE,
    "unique_dim_consecutive": fixes.FIX_FOR_UNIQUE,
    "bincount": fixes.FIX_FOR_BINCOUNT,
    "_linalg_check_errors": fixes.FIX_FOR_LINALG_ERROR_CHECK,
    "cholesky": fixes.FIX_FOR_LINALG_ERROR_CHECK,
    "cholesky_inverse": fixes.FIX_FOR_LINALG_ERROR_CHECK,
    "_linalg_eigh": fixes.FIX_FOR_LINALG_SOLVER,
    "linalg_eig": fixes.FIX_FOR_LINALG_SOLVER,
    "linalg_eigvals": fixes.FIX_FOR_LINALG_SOLVER,
    "_linalg_eigvals": fixes.FIX_FOR_LINALG_SOLVER,
    "_linalg_svd": fixes.FIX_FOR_LINALG_SOLVER,
    "linalg_lstsq": fixes.FIX_FOR_LINALG_SOLVER,
    "linalg_matrix_exp": fixes.FIX_FOR_LINALG_SOLVER,
    "linalg_pinv": fixes.FIX_FOR_LINALG_SOLVER,
    "_coalesce": fixes.FIX_FOR_SPARSE_TENSOR,
    "_to_sparse": fixes.FIX_FOR_SPARSE_TENSOR,
    "_to_sparse_csr": fixes.FIX_FOR_SPARSE_TENSOR,
    "_to_sparse_csc": fixes.FIX_FOR_SPARSE_TENSOR,
    "_to_sparse_bsr": fixes.FIX_FOR_SPARSE_TENSOR,
    "_to_sparse_bsc": fixes.FIX_FOR_SPARSE_TENSOR,
    "_nested_tensor_from_mask": fixes.FIX_FOR_BOOLEAN_MASK,
    "_nested_tensor_from_mask_left_aligned": fixes.FIX_FOR_BOOLEAN_MASK,
}
"""Maps each operator that always copies a value to the host to the advice for the user."""

_OPERATORS_WITH_OPTIONAL_ERROR_CHECK: Final = frozenset(
    {
        "linalg_inv_ex",
        "linalg_cholesky_ex",
        "_linalg_solve_ex",
        "linalg_lu_factor_ex",
        "linalg_ldl_factor_ex",
    }
)
"""Linear algebra operators that copy an error code to the host if `check_errors` is True."""


def operator_waits(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[OperatorWait]:
    """Yields the waits of the host that a call of an operator on a CUDA device would cause."""
    name = func._schema.name.partition("::")[2]
    fix = _FIX_BY_SYNCHRONIZING_OPERATOR.get(name)
    if fix is not None:
        yield OperatorWait("sync", fix)
        return
    rule = _WAIT_RULE_BY_OPERATOR.get(name)
    if rule is not None:
        yield from rule(_CallArguments(func, args, kwargs))


class _CallArguments:
    """The arguments of an operator's call by name, including default values."""

    def __init__(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.overload = func._overloadname
        self._values = dict(kwargs)
        for position, argument in enumerate(func._schema.arguments):
            if position < len(args):
                self._values[argument.name] = args[position]
            elif argument.name not in kwargs and argument.has_default_value():
                self._values[argument.name] = argument.default_value

    def __getitem__(self, name: str) -> Any:
        return self._values.get(name)


def _is_boolean_mask_index(index: torch.Tensor) -> bool:
    return index.dtype in (torch.bool, torch.uint8)


def _mask_and_integer_indices(
    arguments: _CallArguments,
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Returns (boolean masks, integer tensors) among the index tensors of a call."""
    indices = [index for index in arguments["indices"] if index is not None]
    masks = [index for index in indices if _is_boolean_mask_index(index)]
    return masks, [index for index in indices if not _is_boolean_mask_index(index)]


def _is_one_element_host_tensor(value: torch.Tensor) -> bool:
    return value.numel() == 1 and not is_on_device(value)


def _waits_of_index(arguments: _CallArguments) -> Iterator[OperatorWait]:
    masks, integers = _mask_and_integer_indices(arguments)
    if any(is_on_device(mask) for mask in masks):
        yield OperatorWait("sync", fixes.FIX_FOR_BOOLEAN_MASK)
    if any(map(_is_copied_to_device, integers)):
        yield OperatorWait("copy_to_device", fixes.FIX_FOR_HOST_INDEX)


def _is_copied_to_device(tensor: torch.Tensor) -> bool:
    """Returns whether a tensor is on the host and not empty, so that the operator copies it."""
    return (
        location_of(tensor) in (TensorLocation.HOST, TensorLocation.PINNED) and tensor.numel() > 0
    )


def _waits_of_index_put(arguments: _CallArguments) -> Iterator[OperatorWait]:
    masks, integers = _mask_and_integer_indices(arguments)
    value = arguments["values"]
    fills = _is_one_element_host_tensor(value) and not arguments["accumulate"]
    if fills and len(masks) == 1 and not integers and is_on_device(masks[0]):
        return  # ATen turns it into masked_fill_
    if any(is_on_device(mask) for mask in masks):
        # In the backward pass this is the gradient of `x[mask]`.
        is_gradient = torch._C._current_autograd_node() is not None
        yield OperatorWait(
            "sync", fixes.FIX_FOR_BOOLEAN_MASK if is_gradient else fixes.FIX_FOR_MASKED_ASSIGNMENT
        )
    if any(map(_is_copied_to_device, integers)):
        yield OperatorWait("copy_to_device", fixes.FIX_FOR_HOST_INDEX)
    elif value.dim() == 0 and location_of(value) is TensorLocation.HOST:
        yield OperatorWait("copy_to_device", fixes.FIX_FOR_ASSIGNED_SCALAR)


def _waits_of_repeat_interleave(arguments: _CallArguments) -> Iterator[OperatorWait]:
    if arguments["output_size"] is None:
        yield OperatorWait("sync", fixes.FIX_FOR_REPEAT_INTERLEAVE)


def _waits_of_normal(arguments: _CallArguments) -> Iterator[OperatorWait]:
    if isinstance(arguments["std"], torch.Tensor):
        yield OperatorWait("sync", fixes.FIX_FOR_NORMAL)


def _waits_of_masked_fill(arguments: _CallArguments) -> Iterator[OperatorWait]:
    if isinstance(arguments["value"], torch.Tensor) and is_on_device(arguments["value"]):
        yield OperatorWait("sync", fixes.FIX_FOR_DEVICE_SCALAR)


def _waits_of_where(arguments: _CallArguments) -> Iterator[OperatorWait]:
    values = nested_tensors_in([arguments["self"], arguments["other"]])
    if any(
        location_of(value) in (TensorLocation.HOST, TensorLocation.PINNED) and value.dim() == 0
        for value in values
    ):
        yield OperatorWait("copy_to_device", fixes.FIX_FOR_HOST_SCALAR)


def _waits_of_linspace(arguments: _CallArguments) -> Iterator[OperatorWait]:
    if any(is_on_device(end) for end in nested_tensors_in([arguments["start"], arguments["end"]])):
        yield OperatorWait("sync", fixes.FIX_FOR_DEVICE_SCALAR)


def _waits_of_ctc(arguments: _CallArguments) -> Iterator[OperatorWait]:
    lengths = nested_tensors_in([arguments["input_lengths"], arguments["target_lengths"]])
    if any(is_on_device(length) for length in lengths):
        yield OperatorWait("copy_to_host", fixes.FIX_FOR_CTC_LOSS)
    yield OperatorWait("copy_to_device", fixes.FIX_FOR_CTC_LOSS)


def _waits_of_isin(arguments: _CallArguments) -> Iterator[OperatorWait]:
    elements, tests = arguments["elements"], arguments["test_elements"]
    both = isinstance(elements, torch.Tensor) and isinstance(tests, torch.Tensor)
    # ATen compares all pairs where that is cheaper, and sorts otherwise.
    if both and not arguments["assume_unique"] and tests.numel() >= 10 * elements.numel() ** 0.145:
        yield OperatorWait("sync", fixes.FIX_FOR_ISIN)


def _waits_of_histc(arguments: _CallArguments) -> Iterator[OperatorWait]:
    if arguments["min"] == arguments["max"]:
        yield OperatorWait("sync", fixes.FIX_FOR_HISTC)


def _waits_of_mode(arguments: _CallArguments) -> Iterator[OperatorWait]:
    tensor = arguments["self"]
    if tensor.dim() and tensor.size(arguments["dim"]) > 2048:
        yield OperatorWait("sync", fixes.FIX_FOR_MODE)


def _waits_of_searchsorted(arguments: _CallArguments) -> Iterator[OperatorWait]:
    if arguments["sorter"] is not None and arguments["sorter"].numel():
        yield OperatorWait("sync", fixes.FIX_FOR_SEARCHSORTED)


def _waits_of_segment_reduce(arguments: _CallArguments) -> Iterator[OperatorWait]:
    if arguments["lengths"] is not None and not arguments["unsafe"]:
        yield OperatorWait("sync", fixes.FIX_FOR_SEGMENT_REDUCE)


def _waits_of_optional_error_check(arguments: _CallArguments) -> Iterator[OperatorWait]:
    if arguments["check_errors"]:
        yield OperatorWait("sync", fixes.FIX_FOR_LINALG_ERROR_CHECK)


def _waits_of_copy(arguments: _CallArguments) -> Iterator[OperatorWait]:
    destination, source = arguments["self"], arguments["src"]
    if TensorLocation.UNDECIDED in (location_of(destination), location_of(source)):
        return
    if destination.numel() == 0:
        return
    waits = not arguments["non_blocking"]
    if is_on_device(destination) and not is_on_device(source):
        pinned = location_of(source) is TensorLocation.PINNED
        if not pinned:
            yield OperatorWait("copy_to_device", fixes.FIX_FOR_PAGEABLE_COPY)
        elif waits:
            yield OperatorWait("copy_to_device", fixes.FIX_FOR_BLOCKING_PINNED_COPY)
        else:
            yield _COPY_WITHOUT_WAIT
    elif is_on_device(source) and not is_on_device(destination):
        if waits:
            yield OperatorWait("copy_to_host", fixes.FIX_FOR_COPY_TO_HOST)
        elif location_of(destination) is not TensorLocation.PINNED:
            yield OperatorWait("copy_to_host", fixes.FIX_FOR_COPY_TO_PAGEABLE_HOST)
        else:
            yield _COPY_WITHOUT_WAIT


_WAIT_RULE_BY_OPERATOR: Final[dict[str, Callable[[_CallArguments], Iterator[OperatorWait]]]] = {
    "index": _waits_of_index,
    "_unsafe_index": _waits_of_index,
    "index_put": _waits_of_index_put,
    "index_put_": _waits_of_index_put,
    "_index_put_impl": _waits_of_index_put,
    "_index_put_impl_": _waits_of_index_put,
    "_unsafe_index_put": _waits_of_index_put,
    "repeat_interleave": _waits_of_repeat_interleave,
    "normal": _waits_of_normal,
    "normal_": _waits_of_normal,
    "masked_fill": _waits_of_masked_fill,
    "masked_fill_": _waits_of_masked_fill,
    "index_fill": _waits_of_masked_fill,
    "index_fill_": _waits_of_masked_fill,
    "where": _waits_of_where,
    "linspace": _waits_of_linspace,
    "logspace": _waits_of_linspace,
    "_ctc_loss": _waits_of_ctc,
    "_ctc_loss_backward": _waits_of_ctc,
    "isin": _waits_of_isin,
    "histc": _waits_of_histc,
    "mode": _waits_of_mode,
    "searchsorted": _waits_of_searchsorted,
    "segment_reduce": _waits_of_segment_reduce,
    "copy_": _waits_of_copy,
    **dict.fromkeys(_OPERATORS_WITH_OPTIONAL_ERROR_CHECK, _waits_of_optional_error_check),
}
