"""Keeps torch's profiler from importing TorchInductor, which takes a program a second or more.

The profiler imports it at each start, to read whether compiled code uses CUDA graphs. Where
nothing has imported it, nothing was compiled with it, and the answer is the default.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch

from selftime.capture.attribute_patches import AttributePatches

_NAME: Final = "_inductor"


@contextmanager
def without_inductor_import() -> Iterator[None]:
    """Within the block, `hasattr(torch, "_inductor")` imports nothing in the calling thread.

    It is False there, unless the program has imported TorchInductor already.
    """
    find_attribute = vars(torch).get("__getattr__")
    if find_attribute is None or f"torch.{_NAME}" in sys.modules:
        yield
        return
    thread = threading.get_ident()

    def find_other_attribute(name: str) -> Any:
        if name == _NAME and threading.get_ident() == thread:
            raise AttributeError(name)
        return find_attribute(name)

    patches = AttributePatches()
    try:
        patches.replace_attribute(torch, "__getattr__", find_other_attribute)
        yield
    finally:
        patches.restore_all()
