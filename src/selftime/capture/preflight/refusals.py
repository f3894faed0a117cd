"""What CUDA refuses and the CPU would compute: tensors on the device with others on the host."""

# ruff: noqa: SLF001 - torch has no public name for the node whose gradient is computed
from typing import Any, Final

import torch

from selftime.capture.preflight.marks import At, at

_MIXES: Final = frozenset(
    {
        "copy_",
        "copy",
        "_to_copy",
        "_copy_from",
        "index",
        "_unsafe_index",
        "index_put",
        "index_put_",
        "_index_put_impl_",
        "_unsafe_index_put",
        "_pack_padded_sequence",
        "_pack_padded_sequence_backward",
        "_pad_packed_sequence",
        "_ctc_loss",
        "_ctc_loss_backward",
        "resize_as_",
        "set_",
        "lift_fresh",
        "_foreach_copy_",
        "_has_compatible_shallow_copy_type",
        "is_same_size",
    }
)
"""Operators that take arguments from both sides."""
_INDEXING: Final = frozenset(
    {"index", "_unsafe_index", "index_put", "index_put_", "_index_put_impl_"}
)
_MIXED: Final = (
    "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
)


def refuse(name: str, args: tuple[Any, ...], given: list[torch.Tensor]) -> None:
    """Raise what CUDA would for this operator, if it would.

    Gradients are let pass: C++ makes tensors there that are known to no mode.
    """
    if torch._C._current_autograd_node() is not None:
        return
    if name in _INDEXING:
        _refuse_index(args)
    elif name == "_pack_padded_sequence" and at(args[1]) is At.DEVICE:
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor"
        )
    elif name not in _MIXES and any(map(_is_alien, given)) and At.DEVICE in map(at, given):
        raise RuntimeError(_MIXED)


def _refuse_index(args: tuple[Any, ...]) -> None:
    indices = [index for index in args[1] if index is not None]
    if at(args[0]) in (At.HOST, At.PINNED) and any(at(index) is At.DEVICE for index in indices):
        raise RuntimeError(
            "indices should be either on cpu or on the same device as the indexed tensor (cpu)"
        )
    if at(args[0]) is At.DEVICE and len(args) > 2 and _is_alien(args[2]) and args[2].numel() > 1:
        raise RuntimeError(_MIXED)


def _is_alien(tensor: torch.Tensor) -> bool:
    """Whether it is on the host for certain, and no scalar, which any device takes."""
    on_host = at(tensor) in (At.HOST, At.PINNED) and not tensor.is_meta
    return on_host and tensor.dim() > 0 and tensor.numel() > 0
