"""Programs that were thought of after the sources of steps were built."""

# mypy: disable-error-code="no-untyped-call"
# `Tensor.backward` has no types, and programs call it.

import asyncio
import copy
import warnings
from concurrent.futures import ThreadPoolExecutor

import torch
from tests.capture.steps.programs.truth import At, Program, steps
from torch import nn
from torch.utils.data import DataLoader

from selftime.capture.steps import StepSource


def _loss(net: nn.Module) -> torch.Tensor:
    loss: torch.Tensor = net(torch.randn(2, 4)).mean()
    return loss


@steps(StepSource.OPTIMIZER, "update", "updated")
def an_actor_every_other_time(at: At) -> None:
    critic, actor = nn.Linear(4, 1), nn.Linear(4, 4)
    weight = torch.zeros(1, requires_grad=True)
    a, b = torch.optim.Adam(critic.parameters()), torch.optim.Adam(actor.parameters())
    c = torch.optim.Adam([weight])
    for number in range(24):
        with torch.no_grad():
            actor(torch.randn(1, 4))
        _loss(critic).backward()
        a.step()
        at("critic")
        if number % 2:
            critic(actor(torch.randn(2, 4))).mean().backward()
            b.step()
            at("actor")
            weight.exp().sum().backward()
            at("update")
            c.step()
            at("updated")


@steps(StepSource.OPTIMIZER, "update", "updated")
def optimizers_in_a_list(at: At) -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    matrices = [p for p in net.parameters() if p.ndim > 1]
    others = [p for p in net.parameters() if p.ndim == 1]
    optimizers = [torch.optim.SGD(matrices, lr=0.1), torch.optim.AdamW(others)]
    for _ in range(12):
        for _ in range(2):
            _loss(net).backward()
        for optimizer in optimizers:
            at("update")
            optimizer.step()
            at("updated" if optimizer is optimizers[-1] else "next")
        for optimizer in optimizers:
            optimizer.zero_grad()


@steps(StepSource.OPTIMIZER, "update", "updated")
def a_merge_after_twenty_steps(at: At) -> None:
    net = nn.Linear(4, 1)
    outer = torch.optim.SGD(net.parameters(), lr=0.7, momentum=0.9, nesterov=True)
    local = copy.deepcopy(net)
    inner = torch.optim.AdamW(local.parameters())
    for _ in range(5):
        for _ in range(20):
            _loss(local).backward()
            inner.step()
            at("inner")
            inner.zero_grad()
        for p, q in zip(net.parameters(), local.parameters(), strict=True):
            p.grad = p.data - q.data
        at("update")
        outer.step()
        at("updated")
        local.load_state_dict(net.state_dict())


@steps(StepSource.OPTIMIZER, "update", "updated", found=5)
def another_model_after_a_few_steps(at: At) -> None:
    one, two = nn.Linear(4, 1), nn.Linear(4, 1)
    a = torch.optim.SGD(one.parameters(), lr=0.1)
    b = torch.optim.SGD(two.parameters(), lr=0.1)
    for _ in range(5):
        _loss(one).backward()
        a.step()
    for _ in range(20):
        _loss(two).backward()
        at("update")
        b.step()
        at("updated")


@steps(StepSource.MODULE, "forward", "called", found=1)
def several_models_for_each_batch(at: At) -> None:
    models = [nn.Linear(4, 4) for _ in range(4)]
    with torch.no_grad():
        for _ in range(12):
            x = torch.randn(2, 4)
            for number, model in enumerate(models):
                at("other" if number else "forward")
                model(x)
                at("called")


@steps(StepSource.MODULE, "forward", "called", found=1)
def more_modules_than_are_remembered(at: At) -> None:
    net = nn.Sequential(*[nn.Identity() for _ in range(1200)])
    with torch.no_grad():
        for _ in range(6):
            at("forward")
            net(torch.randn(2, 4))
            at("called")


@steps(StepSource.MODULE, "forward", "called", found=1)
def a_server_on_another_thread(at: At) -> None:
    net = nn.Linear(4, 4)

    def answer() -> None:
        with torch.inference_mode():
            at("forward")
            net(torch.randn(1, 4))
            at("called")

    async def serve() -> None:
        with ThreadPoolExecutor(1) as pool:
            for _ in range(12):
                await asyncio.get_running_loop().run_in_executor(pool, answer)

    with ThreadPoolExecutor(1) as pool:  # a loop may be running on this thread
        pool.submit(asyncio.run, serve()).result()


@steps(StepSource.OPTIMIZER, "update", "updated")
def a_graph_that_breaks(at: At) -> None:
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    @torch.compile(backend="eager")
    def loss(x: torch.Tensor) -> torch.Tensor:
        y = net(x)
        torch._dynamo.graph_break()
        value: torch.Tensor = net(y.expand(-1, 4)).mean()
        return value

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler's own
        for _ in range(8):
            loss(torch.randn(2, 4)).backward()
            at("update")
            optimizer.step()
            at("updated")
            optimizer.zero_grad()


@steps(StepSource.BACKWARD, "asked", "batch", found=2)
def several_passes_for_each_batch(at: At) -> None:
    net = nn.Linear(4, 2)
    batches = iter(DataLoader(torch.randn(24, 4), batch_size=2))  # type: ignore[arg-type]  # a tensor is a dataset
    for _ in range(12):
        at("asked")
        x = next(batches)
        at("batch")
        wanted = net(x).argmax(-1)
        for _ in range(5):
            x.requires_grad_()
            loss = nn.functional.cross_entropy(net(x), wanted)
            (slope,) = torch.autograd.grad(loss, x)
            x = (x + 0.1 * slope.sign()).detach()
            at("changed")


@steps(StepSource.BACKWARD, "forward", "called", found=8)
def data_that_is_read_before(at: At) -> None:
    net = nn.Linear(4, 1)
    data = list(DataLoader(torch.randn(24, 4), batch_size=2))  # type: ignore[arg-type]  # as above
    for batch in data * 2:
        at("forward")
        loss = net(batch).mean()
        at("called")
        loss.backward()
        with torch.no_grad():
            for p in net.parameters():
                p.sub_(p.grad if p.grad is not None else 0, alpha=0.01)


PROGRAMS = [one for one in list(globals().values()) if isinstance(one, Program)]
