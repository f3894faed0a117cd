"""Which loops on a stack may be loops of steps."""

import sys
import threading
from collections.abc import Callable

import pytest

pytest.importorskip("torch")

import torch

from selftime.capture.steps.loop_place import loops_that_may_step

pytestmark = pytest.mark.torch

SEEN: list[list[str]] = []


class Reads(torch.nn.Module):
    """Reads the stack in its call."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        SEEN.append([loop.code.co_name for loop in loops_that_may_step(sys._getframe())])
        return x


class Layers(torch.nn.Module):
    """Calls a module for each of its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = Reads()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            x = self.layer(x)
        return x


def repeat() -> None:
    for _ in range(2):
        Layers()(torch.ones(2))


def once() -> None:
    Layers()(torch.ones(2))


def in_sequence() -> None:
    torch.nn.Sequential(Reads(), Reads())(torch.ones(2))


@pytest.mark.parametrize(
    ("program", "loops"), [(repeat, ["repeat"]), (once, ["forward"]), (in_sequence, [])]
)
def test_a_loop_over_layers_is_none_if_its_module_is_called_in_a_loop(
    program: Callable[[], None], loops: list[str]
) -> None:
    SEEN.clear()
    thread = threading.Thread(target=program)  # on whose stack there is no loop of pytest
    thread.start()
    thread.join()
    assert SEEN
    assert all(seen == loops for seen in SEEN)
