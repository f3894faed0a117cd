"""Where tensors pretend to be: a mark on their storage, which all views share.

It dies with the storage. A tensor without a mark is on the host. `ANYWHERE` is for what C++ made on
the way, for itself: on a GPU it would be where the other tensors of that call are.
"""

from enum import Enum
from typing import Any, Final

import torch
from torch._C import _functorch as functorch

MARK: Final = "_selftime_pretends"
"""The attribute of a storage that says so."""


class At(Enum):
    """Where the data of a tensor would be."""

    HOST = "host"
    PINNED = "pinned"
    DEVICE = "device"
    ANYWHERE = "anywhere"


_ON_DEVICE: Final = frozenset({At.DEVICE, At.ANYWHERE})


def at(tensor: torch.Tensor) -> At:
    """Where a tensor pretends to be."""
    return getattr(_bearer(tensor), MARK, At.HOST)


def on_device(tensor: torch.Tensor) -> bool:
    """Whether it is on the device, or would be with the tensors that it was made for."""
    return at(tensor) in _ON_DEVICE


def mark(tensor: torch.Tensor, where: At) -> torch.Tensor:
    """The tensor itself, which pretends to be there from now on, and all that share its storage."""
    bearer = _bearer(tensor)
    if where is At.HOST:
        if hasattr(bearer, MARK):
            delattr(bearer, MARK)
    else:
        setattr(bearer, MARK, where)
    return tensor


def _bearer(tensor: torch.Tensor) -> Any:
    """What bears the mark: the storage, or the tensor itself if it has none, as sparse ones."""
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        if functorch.is_functorch_wrapped_tensor(tensor):  # as within `torch.vmap`
            return _bearer(functorch.get_unwrapped(tensor))
        return tensor


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors in nested tuples, lists and dicts."""
    found: list[torch.Tensor] = []
    _gather(value, found)
    return found


def _gather(value: Any, found: list[torch.Tensor]) -> None:
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, list | tuple):
        for item in value:
            _gather(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            _gather(item, found)
