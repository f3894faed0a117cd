"""Stores for each tensor whether it would be on the host or on the GPU.

The attribute is freed with the storage. A tensor without it is on the host.
"""

from enum import Enum
from typing import Any, Final

import torch
from torch._C import _functorch as functorch

LOCATION_ATTRIBUTE: Final = "_selftime_location"
"""Name of the attribute of a tensor's storage that holds its `TensorLocation`."""


class TensorLocation(Enum):
    """Where a tensor's data would be on a machine with a GPU: host, pinned memory or device."""

    HOST = "host"
    PINNED = "pinned"
    """Location in page-locked host memory."""
    DEVICE = "device"
    UNDECIDED = "undecided"
    """Location of a temporary tensor made by C++ code: wherever the other tensors of the same
    call are."""


_LOCATIONS_ON_DEVICE: Final = frozenset({TensorLocation.DEVICE, TensorLocation.UNDECIDED})


def location_of(tensor: torch.Tensor) -> TensorLocation:
    """Returns where a tensor would be on a machine with a GPU; by default on the host."""
    return getattr(_object_that_stores_location(tensor), LOCATION_ATTRIBUTE, TensorLocation.HOST)


def is_on_device(tensor: torch.Tensor) -> bool:
    """Returns whether a tensor is on the simulated device, or its location is `UNDECIDED`."""
    return location_of(tensor) in _LOCATIONS_ON_DEVICE


class DeviceUse:
    """Whether the program has put a tensor on the simulated device."""

    has_begun = False


def set_location(tensor: torch.Tensor, location: TensorLocation) -> torch.Tensor:
    """Stores where a tensor and its views would be on a machine with a GPU; returns the tensor."""
    holder = _object_that_stores_location(tensor)
    if location is TensorLocation.HOST:
        if hasattr(holder, LOCATION_ATTRIBUTE):
            delattr(holder, LOCATION_ATTRIBUTE)
    else:
        DeviceUse.has_begun = DeviceUse.has_begun or location is TensorLocation.DEVICE
        setattr(holder, LOCATION_ATTRIBUTE, location)
    return tensor


def _object_that_stores_location(tensor: torch.Tensor) -> Any:
    """Returns the tensor's storage; the tensor itself if it has no storage."""
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        if functorch.is_functorch_wrapped_tensor(tensor):  # as within `torch.vmap`
            return _object_that_stores_location(functorch.get_unwrapped(tensor))
        return tensor


def nested_tensors_in(value: Any) -> list[torch.Tensor]:
    """Returns all tensors in a value, also in nested tuples, lists and dicts."""
    found: list[torch.Tensor] = []
    _append_nested_tensors_to(value, found)
    return found


def _append_nested_tensors_to(value: Any, found: list[torch.Tensor]) -> None:
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, list | tuple):
        for item in value:
            _append_nested_tensors_to(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            _append_nested_tensors_to(item, found)
