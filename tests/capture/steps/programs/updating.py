"""Programs that update their parameters themselves, without an optimizer of torch."""

# mypy: disable-error-code="no-untyped-call"
# `Tensor.backward` has no types, and programs call it.

import torch
from tests.capture.steps.programs.truth import At, Program, steps
from torch import nn
from torch.func import functional_call, grad
from torch.utils.data import DataLoader

from selftime.capture.steps import StepSource


def _update(parameters: list[torch.Tensor]) -> None:
    with torch.no_grad():
        for p in parameters:
            if p.grad is not None:
                p.sub_(p.grad, alpha=0.01)
                p.grad = None


class Momentum:
    """An optimizer that is no optimizer of torch."""

    def __init__(self, parameters: list[torch.Tensor]) -> None:
        self.parameters = parameters
        self.velocity = [torch.zeros_like(p) for p in parameters]

    @torch.no_grad()
    def step(self) -> None:
        for p, v in zip(self.parameters, self.velocity, strict=True):
            v.mul_(0.9).add_(p.grad)  # type: ignore[arg-type]  # after a backward pass there is one
            p.sub_(v, alpha=0.01)
            p.grad = None


@steps(StepSource.BACKWARD, "forward", "called", found=2)
def an_optimizer_of_its_own(at: At) -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = Momentum(list(net.parameters()))
    for _ in range(12):
        at("forward")
        loss = net(torch.randn(2, 4)).mean()
        at("called")
        loss.backward()
        optimizer.step()


@steps(StepSource.BACKWARD, "pass", "passed", found=1)
def plain_tensors(at: At) -> None:
    weight = torch.randn(4, 1, requires_grad=True)
    for _ in range(12):
        at("forward")
        loss = (torch.randn(2, 4) @ weight).pow(2).mean()
        at("pass")
        loss.backward()
        at("passed")
        _update([weight])


@steps(StepSource.BACKWARD, "pass", "passed", found=1)
def gradients_as_values(at: At) -> None:
    weight = torch.randn(4, 1, requires_grad=True)
    for _ in range(12):
        loss = (torch.randn(2, 4) @ weight).pow(2).mean()
        at("pass")
        (slope,) = torch.autograd.grad(loss, [weight])
        at("passed")
        weight = (weight - 0.1 * slope).detach().requires_grad_()


@steps(StepSource.BACKWARD, "passed", "pass", found=1)
def a_function_is_transformed(at: At) -> None:
    net = nn.Linear(4, 1)
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def loss(parameters: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        value: torch.Tensor = functional_call(net, parameters, (x,)).pow(2).mean()
        at("pass")
        return value

    for _ in range(12):
        slopes = grad(loss)(parameters, torch.randn(2, 4))
        at("passed")
        parameters = {name: p - 0.1 * slopes[name] for name, p in parameters.items()}


@steps(StepSource.BACKWARD, "asked", "batch", found=2)
def batches_and_plain_tensors(at: At) -> None:
    weight = torch.randn(4, 1, requires_grad=True)
    batches = iter(DataLoader(torch.randn(24, 4), batch_size=2))  # type: ignore[arg-type]  # a tensor is a dataset
    for _ in range(12):
        at("asked")
        batch = next(batches)
        at("batch")
        (batch @ weight).pow(2).mean().backward()
        _update([weight])


@steps(StepSource.BACKWARD, "asked", "batch", found=2)
def adversaries_without_optimizers(at: At) -> None:
    maker, judge = nn.Linear(4, 4), nn.Linear(4, 1)
    batches = iter(DataLoader(torch.randn(24, 4), batch_size=2))  # type: ignore[arg-type]  # as above
    for _ in range(12):
        at("asked")
        real = next(batches)
        at("batch")
        (judge(real) - judge(maker(torch.randn(2, 4)).detach())).mean().backward()
        _update(list(judge.parameters()))
        judge(maker(torch.randn(2, 4))).mean().backward()
        _update(list(maker.parameters()))


@steps(StepSource.BACKWARD, "forward", "called", found=2)
def slopes_within_forward(at: At) -> None:
    class Force(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.energy = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x.requires_grad_()
            (slope,) = torch.autograd.grad(self.energy(x).sum(), x, create_graph=True)
            at("called")
            return -slope

    net = Force()
    for _ in range(12):
        at("forward")
        net(torch.randn(2, 3)).pow(2).mean().backward()
        _update(list(net.parameters()))


PROGRAMS = [one for one in list(globals().values()) if isinstance(one, Program)]
