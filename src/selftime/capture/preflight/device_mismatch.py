"""Raises CUDA's errors for operators whose tensors are on different devices."""

# ruff: noqa: SLF001 - torch has no public name for the node whose gradient is computed
from typing import Any, Final

import torch

from selftime.capture.preflight.locations import TensorLocation, location_of

_OPERATORS_THAT_ACCEPT_MIXED_DEVICES: Final = frozenset(
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
"""Operators that accept tensors on the host and on the device in the same call."""
_OPERATORS_THAT_INDEX_A_TENSOR: Final = frozenset(
    {"index", "_unsafe_index", "index_put", "index_put_", "_index_put_impl_"}
)
_MIXED_DEVICES_MESSAGE: Final = (
    "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
)


def check_operator_devices(name: str, args: tuple[Any, ...], tensors: list[torch.Tensor]) -> None:
    """Raises CUDA's error if an operator's tensors are on the host and on the device.

    The backward pass is not checked: C++ creates tensors in it that no mode sees.
    """
    if torch._C._current_autograd_node() is not None:
        return
    if name in _OPERATORS_THAT_INDEX_A_TENSOR:
        _raise_if_index_on_wrong_device(args)
    elif name == "_pack_padded_sequence" and location_of(args[1]) is TensorLocation.DEVICE:
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor"
        )
    elif (
        name not in _OPERATORS_THAT_ACCEPT_MIXED_DEVICES
        and any(map(_is_host_tensor_with_dimensions, tensors))
        and TensorLocation.DEVICE in map(location_of, tensors)
    ):
        raise RuntimeError(_MIXED_DEVICES_MESSAGE)


def _raise_if_index_on_wrong_device(args: tuple[Any, ...]) -> None:
    indices = [index for index in args[1] if index is not None]
    if location_of(args[0]) in (TensorLocation.HOST, TensorLocation.PINNED) and any(
        location_of(index) is TensorLocation.DEVICE for index in indices
    ):
        raise RuntimeError(
            "indices should be either on cpu or on the same device as the indexed tensor (cpu)"
        )
    if (
        location_of(args[0]) is TensorLocation.DEVICE
        and len(args) > 2
        and _is_host_tensor_with_dimensions(args[2])
        and args[2].numel() > 1
    ):
        raise RuntimeError(_MIXED_DEVICES_MESSAGE)


def _is_host_tensor_with_dimensions(tensor: torch.Tensor) -> bool:
    """Returns whether a tensor is on the host and neither empty nor zero-dimensional."""
    on_host = (
        location_of(tensor) in (TensorLocation.HOST, TensorLocation.PINNED) and not tensor.is_meta
    )
    return on_host and tensor.dim() > 0 and tensor.numel() > 0
