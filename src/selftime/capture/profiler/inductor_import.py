"""Decides when torch's compiler is imported: neither without need, nor while frames are recorded.

Torch's profiler imports TorchInductor at each start, to read whether compiled code uses CUDA
graphs. That takes a program a second or more. Where nothing has imported it, nothing was compiled
with it, and the answer is the default.

The first optimizer of a program imports TorchDynamo, which imports TorchInductor. Recorded with
Python frames, that import is millions of events; stopping the recording then takes over 20 GB.
"""

import importlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch

from selftime.capture.attribute_patches import AttributePatches

_NAME: Final = "_inductor"


@contextmanager
def compiler_import(*, before_frames: bool) -> Iterator[None]:
    """Within the block, `hasattr(torch, "_inductor")` imports nothing in the calling thread.

    It is False there, unless TorchInductor has been imported already. With `before_frames` it is
    imported now, since Python frames of code that may import it are recorded next.
    """
    if before_frames:
        importlib.import_module("torch._dynamo")
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
