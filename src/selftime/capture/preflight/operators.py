"""Which operators make the host wait on a CUDA device.

Read from ATen's CUDA kernels of torch 2.13 (`aten/src/ATen/native/cuda` and the composite kernels
beside it). An operator waits if its kernel copies a value to the host: because the size of the
result depends on it, because it checks its input, or because a library reports to the host.
Operators that are made of others need no rule: the others are seen themselves.
"""

# ruff: noqa: SLF001 - torch has no public name for what a pretended device must answer

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch

from selftime.capture.preflight import fixes
from selftime.capture.preflight.found import Kind
from selftime.capture.preflight.marks import At, at, on_device, tensors_in


@dataclass(frozen=True, slots=True)
class Verdict:
    """One wait of an operator."""

    kind: Kind | None
    """None for a copy that the host does not wait for."""
    fix: str


_NO_WAIT: Final = Verdict(None, "")

_ALWAYS: Final[dict[str, str]] = {
    "_local_scalar_dense": fixes.ITEM,
    "item": fixes.ITEM,
    "is_nonzero": fixes.ITEM,
    "equal": fixes.COMPARISON,
    "allclose": fixes.COMPARISON,
    "nonzero": fixes.NONZERO,
    "nonzero_numpy": fixes.NONZERO,
    "argwhere": fixes.NONZERO,
    "masked_select": fixes.MASK,
    "masked_scatter_backward": fixes.MASK,
    "_unique": fixes.UNIQUE,
    "_unique2": fixes.UNIQUE,
    "unique_dim": fixes.UNIQUE,
    "unique_consecutive": fixes.UNIQUE,
    "unique_dim_consecutive": fixes.UNIQUE,
    "bincount": fixes.COUNTS,
    "_linalg_check_errors": fixes.INFO,
    "cholesky": fixes.INFO,
    "cholesky_inverse": fixes.INFO,
    "_linalg_eigh": fixes.LINALG,
    "linalg_eig": fixes.LINALG,
    "linalg_eigvals": fixes.LINALG,
    "_linalg_eigvals": fixes.LINALG,
    "_linalg_svd": fixes.LINALG,
    "linalg_lstsq": fixes.LINALG,
    "linalg_matrix_exp": fixes.LINALG,
    "linalg_pinv": fixes.LINALG,
    "_coalesce": fixes.SPARSE,
    "_to_sparse": fixes.SPARSE,
    "_to_sparse_csr": fixes.SPARSE,
    "_to_sparse_csc": fixes.SPARSE,
    "_to_sparse_bsr": fixes.SPARSE,
    "_to_sparse_bsc": fixes.SPARSE,
    "_nested_tensor_from_mask": fixes.MASK,
    "_nested_tensor_from_mask_left_aligned": fixes.MASK,
}
"""Operators that always read on the host."""

_CHECKED_BY_FLAG: Final = frozenset(
    {
        "linalg_inv_ex",
        "linalg_cholesky_ex",
        "_linalg_solve_ex",
        "linalg_lu_factor_ex",
        "linalg_ldl_factor_ex",
    }
)
"""Linear algebra that reads its error code only where `check_errors` says so."""


def verdicts(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Verdict]:
    """What the host would wait for in this call, which has an argument on the device."""
    name = func._schema.name.partition("::")[2]
    fix = _ALWAYS.get(name)
    if fix is not None:
        yield Verdict("sync", fix)
        return
    rule = _RULES.get(name)
    if rule is not None:
        yield from rule(_Given(func, args, kwargs))


class _Given:
    """The arguments of a call by their names in the operator's schema, defaults filled in."""

    def __init__(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.overload = func._overloadname
        self._values = dict(kwargs)
        for number, argument in enumerate(func._schema.arguments):
            if number < len(args):
                self._values[argument.name] = args[number]
            elif argument.name not in kwargs and argument.has_default_value():
                self._values[argument.name] = argument.default_value

    def __getitem__(self, name: str) -> Any:
        return self._values.get(name)


def _is_mask(index: torch.Tensor) -> bool:
    return index.dtype in (torch.bool, torch.uint8)


def _indices(given: _Given) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Masks and whole numbers among the indices."""
    indices = [index for index in given["indices"] if index is not None]
    masks = [index for index in indices if _is_mask(index)]
    return masks, [index for index in indices if not _is_mask(index)]


def _is_small_on_host(value: torch.Tensor) -> bool:
    return value.numel() == 1 and not on_device(value)


def _index(given: _Given) -> Iterator[Verdict]:
    masks, numbers = _indices(given)
    if any(on_device(mask) for mask in masks):
        yield Verdict("sync", fixes.MASK)
    if any(map(_is_uploaded, numbers)):
        yield Verdict("copy_to_device", fixes.CPU_INDEX)


def _is_uploaded(tensor: torch.Tensor) -> bool:
    """Whether it is copied to the device where it is used there; nothing is, of no elements."""
    return at(tensor) in (At.HOST, At.PINNED) and tensor.numel() > 0


def _index_put(given: _Given) -> Iterator[Verdict]:
    masks, numbers = _indices(given)
    value = given["values"]
    fills = _is_small_on_host(value) and not given["accumulate"]
    if fills and len(masks) == 1 and not numbers and on_device(masks[0]):
        return  # ATen turns it into masked_fill_
    if any(on_device(mask) for mask in masks):
        # In the backward pass it is the gradient of `x[mask]`.
        is_gradient = torch._C._current_autograd_node() is not None
        yield Verdict("sync", fixes.MASK if is_gradient else fixes.MASKED_VALUE)
    if any(map(_is_uploaded, numbers)):
        yield Verdict("copy_to_device", fixes.CPU_INDEX)
    elif value.dim() == 0 and at(value) is At.HOST:
        yield Verdict("copy_to_device", fixes.SCALAR)


def _repeat_interleave(given: _Given) -> Iterator[Verdict]:
    if given["output_size"] is None:
        yield Verdict("sync", fixes.REPEATS)


def _normal(given: _Given) -> Iterator[Verdict]:
    if isinstance(given["std"], torch.Tensor):
        yield Verdict("sync", fixes.NORMAL)


def _masked_fill(given: _Given) -> Iterator[Verdict]:
    if isinstance(given["value"], torch.Tensor) and on_device(given["value"]):
        yield Verdict("sync", fixes.DEVICE_VALUE)


def _where(given: _Given) -> Iterator[Verdict]:
    values = tensors_in([given["self"], given["other"]])
    if any(at(value) in (At.HOST, At.PINNED) and value.dim() == 0 for value in values):
        yield Verdict("copy_to_device", fixes.HOST_SCALAR)


def _range(given: _Given) -> Iterator[Verdict]:
    if any(on_device(end) for end in tensors_in([given["start"], given["end"]])):
        yield Verdict("sync", fixes.DEVICE_VALUE)


def _ctc(given: _Given) -> Iterator[Verdict]:
    lengths = tensors_in([given["input_lengths"], given["target_lengths"]])
    if any(on_device(length) for length in lengths):
        yield Verdict("copy_to_host", fixes.CTC)
    yield Verdict("copy_to_device", fixes.CTC)


def _isin(given: _Given) -> Iterator[Verdict]:
    elements, tests = given["elements"], given["test_elements"]
    both = isinstance(elements, torch.Tensor) and isinstance(tests, torch.Tensor)
    # ATen compares each with each where that is cheaper, and sorts and counts otherwise.
    if both and not given["assume_unique"] and tests.numel() >= 10 * elements.numel() ** 0.145:
        yield Verdict("sync", fixes.ISIN)


def _histc(given: _Given) -> Iterator[Verdict]:
    if given["min"] == given["max"]:
        yield Verdict("sync", fixes.RANGE)


def _mode(given: _Given) -> Iterator[Verdict]:
    tensor = given["self"]
    if tensor.dim() and tensor.size(given["dim"]) > 2048:
        yield Verdict("sync", fixes.MODE)


def _searchsorted(given: _Given) -> Iterator[Verdict]:
    if given["sorter"] is not None and given["sorter"].numel():
        yield Verdict("sync", fixes.SORTER)


def _segments(given: _Given) -> Iterator[Verdict]:
    if given["lengths"] is not None and not given["unsafe"]:
        yield Verdict("sync", fixes.SEGMENTS)


def _checked(given: _Given) -> Iterator[Verdict]:
    if given["check_errors"]:
        yield Verdict("sync", fixes.INFO)


def _copy(given: _Given) -> Iterator[Verdict]:
    to, source = given["self"], given["src"]
    if At.ANYWHERE in (at(to), at(source)):
        return
    if to.numel() == 0:
        return
    waits = not given["non_blocking"]
    if on_device(to) and not on_device(source):
        pinned = at(source) is At.PINNED
        if not pinned:
            yield Verdict("copy_to_device", fixes.PAGEABLE)
        elif waits:
            yield Verdict("copy_to_device", fixes.PIN)
        else:
            yield _NO_WAIT
    elif on_device(source) and not on_device(to):
        if waits:
            yield Verdict("copy_to_host", fixes.TO_HOST)
        elif at(to) is not At.PINNED:
            yield Verdict("copy_to_host", fixes.TO_HOST_PAGEABLE)
        else:
            yield _NO_WAIT


_RULES: Final[dict[str, Callable[[_Given], Iterator[Verdict]]]] = {
    "index": _index,
    "_unsafe_index": _index,
    "index_put": _index_put,
    "index_put_": _index_put,
    "_index_put_impl": _index_put,
    "_index_put_impl_": _index_put,
    "_unsafe_index_put": _index_put,
    "repeat_interleave": _repeat_interleave,
    "normal": _normal,
    "normal_": _normal,
    "masked_fill": _masked_fill,
    "masked_fill_": _masked_fill,
    "index_fill": _masked_fill,
    "index_fill_": _masked_fill,
    "where": _where,
    "linspace": _range,
    "logspace": _range,
    "_ctc_loss": _ctc,
    "_ctc_loss_backward": _ctc,
    "isin": _isin,
    "histc": _histc,
    "mode": _mode,
    "searchsorted": _searchsorted,
    "segment_reduce": _segments,
    "copy_": _copy,
    **dict.fromkeys(_CHECKED_BY_FLAG, _checked),
}
