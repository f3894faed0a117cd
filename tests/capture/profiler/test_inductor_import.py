"""A recording imports torch's compiler before it records frames, and else not at all."""

import subprocess
import sys

import pytest

COMPILER = ["torch._inductor", "torch._dynamo"]

PROGRAM = """
import sys
import torch
import selftime

with selftime.profile(with_stack={with_stack}) as prof:
    torch.ones(3) + 1
print([name for name in ("torch._inductor", "torch._dynamo") if name in sys.modules])
print(hasattr(torch, "_inductor"), "torch._inductor" in sys.modules)
"""

FIRST_OPTIMIZER = """
import torch
import selftime

with selftime.profile(with_stack=True) as prof:
    torch.optim.AdamW([torch.ones(3, requires_grad=True)])
print(len(prof.events()))
"""


def printed(program: str) -> list[str]:
    done = subprocess.run(  # noqa: S603 - a program of this file
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.sweep(1)
@pytest.mark.torch
@pytest.mark.parametrize(("with_stack", "imported"), [(False, []), (True, COMPILER)])
def test_only_a_recording_of_frames_imports_the_compiler(
    *, with_stack: bool, imported: list[str]
) -> None:
    assert printed(PROGRAM.format(with_stack=with_stack)) == [str(imported), "True True"]


@pytest.mark.sweep
@pytest.mark.torch
def test_a_first_optimizer_in_a_recording_imports_no_compiler() -> None:
    """That import is millions of events; it took more than 20 GB."""
    [events] = printed(FIRST_OPTIMIZER)
    assert int(events) < 100_000
