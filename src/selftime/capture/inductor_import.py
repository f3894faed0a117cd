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

    vars(torch)["__getattr__"] = find_other_attribute
    try:
        yield
    finally:
        if vars(torch)["__getattr__"] is find_other_attribute:
            vars(torch)["__getattr__"] = find_attribute


def import_dynamo_before_recording_frames() -> None:
    """Imports TorchDynamo, so that an optimizer of the recorded code does not."""
    importlib.import_module("torch._dynamo")
