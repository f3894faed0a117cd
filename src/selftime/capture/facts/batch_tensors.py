"""Keeps of how many tensors the batches consist that a program takes from a DataLoader.

A worker process hands each tensor over by itself, so that the price of a batch grows with them.
"""

from collections import Counter, UserDict
from typing import Any, Final

import torch

MAX_PARTS: Final = 4096
"""Largest number of parts of a batch that are looked at: nested lists, tuples, dicts and what they
hold."""

_batches_by_count: Final[Counter[int]] = Counter()


def note_batch(batch: Any) -> None:
    """Notes a batch, if it holds tensors; calls no code of the program."""
    count = tensor_count(batch)
    if count:
        _batches_by_count[count] += 1


def tensors_of_most_batches() -> int | None:
    """Returns the number of tensors that most batches so far had; None if no batch had any."""
    most = _batches_by_count.most_common(1)
    return most[0][0] if most else None


def tensor_count(batch: Any) -> int:
    """Returns the number of tensors in nested lists, tuples and dicts.

    >>> tensor_count({"x": torch.ones(2), "y": [torch.ones(1), (torch.ones(1), "name")]})
    3
    """
    count, left = 0, [batch]
    for _ in range(MAX_PARTS):
        if not left:
            break
        part = left.pop()
        kind = type(part)  # a class of the program may pretend to be another
        if issubclass(kind, torch.Tensor):
            count += 1
        elif issubclass(kind, UserDict):
            left.append(vars(part).get("data"))
        elif issubclass(kind, dict):
            left += list(dict.values(part))[:MAX_PARTS]
        elif issubclass(kind, list):
            left += list.__getitem__(part, slice(MAX_PARTS))
        elif issubclass(kind, tuple):
            left += tuple.__getitem__(part, slice(MAX_PARTS))
    return count
