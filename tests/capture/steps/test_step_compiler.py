"""What torch.compile makes of a program is the same while its steps are looked for."""

# mypy: disable-error-code="no-untyped-call"
# `Tensor.backward` has no types, and programs call it.

import pytest

pytest.importorskip("torch")

import torch
from tests.capture.steps.programs.truth import watch
from torch import nn

pytestmark = pytest.mark.torch


class Broken(nn.Module):
    """A model whose graph breaks between its two halves."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.second = nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        torch._dynamo.graph_break()
        loss: torch.Tensor = self.second(y).mean()
        return loss


def _train(at: object) -> None:
    """Trains with a compiled update, and infers in both modes."""
    del at
    net = Broken()
    model = torch.compile(net, backend="eager")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    @torch.compile(backend="eager")
    def update() -> None:
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(6):
        model(torch.randn(2, 4)).backward()
        update()
    with torch.no_grad():
        for _ in range(6):
            model(torch.randn(2, 4))
        net.eval()
        for _ in range(6):
            model(torch.randn(2, 4))


def _infer(at: object) -> None:
    """Infers, and trains without an optimizer."""
    del at
    net = Broken()
    model = torch.compile(net, backend="eager")
    with torch.no_grad():
        for _ in range(6):
            model(torch.randn(2, 4))
    for _ in range(6):
        model(torch.randn(2, 4)).backward()


def _counters() -> dict[str, dict[str, int]]:
    counters = torch._dynamo.utils.counters
    return {kind: dict(counters[kind]) for kind in ("stats", "frames", "graph_break", "recompiles")}


@pytest.mark.filterwarnings("ignore")  # the compiler's own, about the optimizer
@pytest.mark.parametrize("program", [_train, _infer])
@pytest.mark.sweep(1)
def test_graphs_breaks_and_frames_are_those_of_the_program_alone(program: object) -> None:
    assert callable(program)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    program(None)
    alone = _counters()
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    seen = watch(program)

    assert seen.source is not None
    assert _counters() == alone
