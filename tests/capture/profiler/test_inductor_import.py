"""A recording does not import TorchInductor into a program that compiles nothing."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import torch
import selftime

with selftime.profile(with_stack=True):
    torch.ones(3) + 1
print([name for name in ("torch._inductor", "torch._dynamo") if name in sys.modules])
print(hasattr(torch, "_inductor"), "torch._inductor" in sys.modules)
"""


@pytest.mark.torch
def test_a_recording_does_not_import_the_compiler() -> None:
    done = subprocess.run(  # noqa: S603 - a program of this file
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["[]", "True True"]
