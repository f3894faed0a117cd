"""Programs that train with optimizers of torch."""

# mypy: disable-error-code="no-untyped-call"
# `Tensor.backward` has no types, and programs call it.

import copy
import pickle

import torch
from tests.capture.steps.programs.truth import At, Program, steps
from torch import nn

from selftime.capture.steps import StepSource


def _net() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))


def _loss(net: nn.Module) -> torch.Tensor:
    loss: torch.Tensor = net(torch.randn(2, 4)).pow(2).mean()
    return loss


@steps(StepSource.OPTIMIZER, "update", "updated")
def plain_loop(at: At) -> None:
    net = _net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(12):
        at("begin")
        _loss(net).backward()
        at("update")
        optimizer.step()
        at("updated")
        optimizer.zero_grad()


@steps(StepSource.OPTIMIZER, "update", "updated")
def several_in_one_iteration(at: At) -> None:
    one, two, three = _net(), _net(), _net()
    a = torch.optim.Adam(one.parameters())
    b = torch.optim.SGD(two.parameters(), lr=0.1)
    c = torch.optim.AdamW(three.parameters())
    for _ in range(12):
        at("begin")
        (_loss(one) + _loss(two) + _loss(three)).backward()
        b.step()
        at("between")
        a.step()
        at("between")
        at("update")
        c.step()
        at("updated")


@steps(StepSource.SOME_OPTIMIZERS, "update", "updated", found=1)
def one_that_never_steps_beside(at: At) -> None:
    one, two, frozen = _net(), _net(), _net()
    a = torch.optim.Adam(one.parameters())
    b = torch.optim.SGD(two.parameters(), lr=0.1)
    unused = torch.optim.SGD(frozen.parameters(), lr=0.1)
    for _ in range(12):
        at("begin")
        (_loss(one) + _loss(two)).backward()
        a.step()
        at("between")
        at("update")
        b.step()
        at("updated")
    assert unused.param_groups


@steps(StepSource.OPTIMIZER, "update", "updated")
def gradients_of_sixty_batches(at: At) -> None:
    net = _net()
    optimizer = torch.optim.Adagrad(net.parameters(), lr=0.1)
    for number in range(180):
        _loss(net).backward()
        if number % 60 == 59:
            at("update")
            optimizer.step()
            at("updated")
            optimizer.zero_grad()


@steps(StepSource.OPTIMIZER, "update", "updated")
def adversaries_in_turn(at: At) -> None:
    maker, judge = nn.Linear(4, 4), _net()
    g = torch.optim.Adam(maker.parameters())
    d = torch.optim.Adam(judge.parameters())
    for _ in range(12):
        at("begin")
        (judge(torch.randn(2, 4)) - judge(maker(torch.randn(2, 4)).detach())).mean().backward()
        d.step()
        at("judge")
        d.zero_grad()
        judge(maker(torch.randn(2, 4))).mean().backward()
        at("update")
        g.step()
        at("updated")
        g.zero_grad()


@steps(StepSource.OPTIMIZER, "update", "updated")
def adversaries_that_freeze_each_other(at: At) -> None:
    maker, judge = nn.Linear(4, 4), _net()
    g = torch.optim.Adam(maker.parameters())
    d = torch.optim.Adam(judge.parameters())
    for _ in range(12):
        at("begin")
        judge.requires_grad_(False)
        judge(maker(torch.randn(2, 4))).mean().backward()
        g.step()
        at("maker")
        judge.requires_grad_(True)
        (judge(torch.randn(2, 4)) - judge(maker(torch.randn(2, 4)).detach())).mean().backward()
        at("update")
        d.step()
        at("updated")
        d.zero_grad()
        g.zero_grad()


@steps(StepSource.SOME_OPTIMIZERS, "update", "updated", found=1)
def one_whose_parameters_stay_frozen_beside(at: At) -> None:
    head, backbone = _net(), nn.Linear(4, 4).requires_grad_(False)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    later = torch.optim.SGD(backbone.parameters(), lr=0.1)
    for _ in range(12):
        at("begin")
        head(backbone(torch.randn(2, 4))).mean().backward()
        at("update")
        optimizer.step()
        at("updated")
        later.zero_grad()


def _critics(at: At, critics: int, rounds: int, first: int) -> None:
    maker, judge = nn.Linear(4, 4), _net()
    g = torch.optim.Adam(maker.parameters())
    d = torch.optim.Adam(judge.parameters())
    for number in range(critics * rounds):
        at("begin")
        judge(maker(torch.randn(2, 4)).detach()).mean().backward()
        d.step()
        at("judge")
        if number % critics == first:
            judge(maker(torch.randn(2, 4))).mean().backward()
            at("update")
            g.step()
            at("updated")


@steps(StepSource.OPTIMIZER, "update", "updated")
def five_steps_of_the_critic(at: At) -> None:
    _critics(at, 5, 8, first=4)


@steps(StepSource.OPTIMIZER, "update", "updated")
def the_critic_begins_with_both(at: At) -> None:
    _critics(at, 5, 8, first=0)


@steps(StepSource.OPTIMIZER, "within", "updated")
def a_layer_each_within_backward(at: At) -> None:
    net = nn.Sequential(*[nn.Linear(4, 4) for _ in range(25)])
    for parameter in net.parameters():
        optimizer = torch.optim.SGD([parameter], lr=0.01)

        def update(p: torch.Tensor, optimizer: torch.optim.Optimizer = optimizer) -> None:
            at("within")
            optimizer.step()
            at("within")
            p.grad = None

        parameter.register_post_accumulate_grad_hook(update)
    for _ in range(8):
        at("begin")
        at("update")
        net(torch.randn(2, 4)).pow(2).mean().backward()
        at("updated")


@steps(StepSource.OPTIMIZER, "update", "updated")
def gathered_gradients(at: At) -> None:
    net = _net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for number in range(48):
        at("begin" if number % 4 == 0 else "more")
        (_loss(net) / 4).backward()
        if number % 4 == 3:
            at("update")
            optimizer.step()
            at("updated")
            optimizer.zero_grad()


@steps(StepSource.OPTIMIZER, "update", "updated")
def scaled_losses(at: At) -> None:
    net = _net()
    optimizer = torch.optim.AdamW(net.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(12):
        at("begin")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = _loss(net)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        at("update")
        scaler.step(optimizer)
        at("updated")
        scaler.update()
        scheduler.step()
        optimizer.zero_grad()


@steps(StepSource.OPTIMIZER, "within", "updated")
def evaluations_within_the_step(at: At) -> None:
    net = _net()
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=4)
    x = torch.randn(8, 4)

    def closure() -> torch.Tensor:
        at("within")
        optimizer.zero_grad()
        loss: torch.Tensor = net(x).pow(2).mean()
        loss.backward()
        return loss

    for _ in range(8):
        at("begin")
        at("update")
        optimizer.step(closure)
        at("updated")


class Sharpness(torch.optim.Optimizer):
    """Climbs, evaluates again, and steps with the optimizer that it holds."""

    def __init__(self, params: object, base: type[torch.optim.Optimizer]) -> None:
        super().__init__(params, {})  # type: ignore[arg-type]  # as torch's own accept
        self.base = base(self.param_groups, lr=0.1)  # type: ignore[call-arg]  # each has one

    def climb(self) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                p.data.add_(p.grad, alpha=0.01)
        self.zero_grad()

    def step(self, closure: object = None) -> None:  # type: ignore[override]  # none is needed
        del closure
        self.base.step()


@steps(StepSource.OPTIMIZER, "update", "updated")
def an_optimizer_that_holds_another(at: At) -> None:
    net = _net()
    optimizer = Sharpness(net.parameters(), torch.optim.SGD)
    for _ in range(12):
        at("begin")
        _loss(net).backward()
        optimizer.climb()
        at("climbed")
        _loss(net).backward()
        at("update")
        optimizer.step()
        at("updated")
        optimizer.zero_grad()


@steps(StepSource.OPTIMIZER, "update", "updated")
def learning_to_learn(at: At) -> None:
    net = _net()
    outer = torch.optim.Adam(net.parameters())
    for _ in range(8):
        at("begin")
        for _ in range(3):
            fast = copy.deepcopy(net)
            inner = torch.optim.SGD(fast.parameters(), lr=0.1)
            for _ in range(4):
                _loss(fast).backward()
                inner.step()
                at("inner")
            for p, q in zip(net.parameters(), fast.parameters(), strict=True):
                p.grad = p.data - q.data
        at("update")
        outer.step()
        at("updated")


@steps(StepSource.OPTIMIZER, "update", "updated")
def an_optimizer_that_was_pickled(at: At) -> None:
    net = _net()
    built = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = pickle.loads(pickle.dumps((net, built)))  # noqa: S301 - our own
    del built
    for _ in range(12):
        at("begin")
        _loss(net).backward()
        at("update")
        optimizer.step()
        at("updated")


@steps(StepSource.OPTIMIZER, "update", "updated")
def one_model_after_the_other(at: At) -> None:
    for width in (3, 4, 5):
        net = nn.Linear(width, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(6):
            at("begin")
            net(torch.randn(2, width)).mean().backward()
            at("update")
            optimizer.step()
            at("updated")


@steps(StepSource.OPTIMIZER, "update", "updated")
def models_that_stay_are_trained_in_turn(at: At) -> None:
    kept = []
    for width in (3, 4, 5):
        net = nn.Linear(width, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        kept.append(optimizer)
        for _ in range(6):
            at("begin")
            net(torch.randn(2, width)).mean().backward()
            at("update")
            optimizer.step()
            at("updated")


@steps(StepSource.OPTIMIZER, "update", "updated")
def an_optimizer_for_each_image(at: At) -> None:
    for _ in range(5):
        image = torch.randn(4, requires_grad=True)
        optimizer = torch.optim.Adam([image])
        for _ in range(4):
            at("begin")
            image.pow(2).sum().backward()
            at("update")
            optimizer.step()
            at("updated")
            optimizer.zero_grad()


@steps(StepSource.OPTIMIZER, "update", "updated", found=1)
def rollouts_between_updates(at: At) -> None:
    policy = _net()
    optimizer = torch.optim.Adam(policy.parameters())
    for _ in range(8):
        at("begin")
        with torch.no_grad():
            for _ in range(20):
                policy(torch.randn(1, 4))
                at("acted")
        _loss(policy).backward()
        at("update")
        optimizer.step()
        at("updated")


@steps(StepSource.OPTIMIZER, "last update", "updated", found=2)
def three_updates_after_each_rollout(at: At) -> None:
    policy = _net()
    optimizer = torch.optim.Adam(policy.parameters())
    for _ in range(8):
        for _ in range(20):
            policy(torch.randn(4))
            at("acted")
        for number in range(3):
            policy(torch.randn(20, 4)).pow(2).mean().backward()
            at("update" if number < 2 else "last update")
            optimizer.step()
            at("updated")


@steps(StepSource.OPTIMIZER, "update", "updated")
def sampled_every_few_updates(at: At) -> None:
    net = _net()
    optimizer = torch.optim.Adam(net.parameters())
    for number in range(60):
        at("begin")
        _loss(net).backward()
        at("update")
        optimizer.step()
        at("updated")
        if number % 20 == 0:
            with torch.no_grad():
                for _ in range(20):
                    net(torch.randn(1, 4))


@steps(StepSource.OPTIMIZER, "update", "updated", found=16)
def layers_one_after_the_other(at: At) -> None:
    layers = [_net() for _ in range(3)]
    optimizers = [torch.optim.Adam(layer.parameters()) for layer in layers]
    for layer, optimizer in zip(layers, optimizers, strict=True):
        for _ in range(8):
            at("begin")
            _loss(layer).backward()
            at("update")
            optimizer.step()
            at("updated")


@steps(StepSource.OPTIMIZER, "update", "updated")
def failures_are_caught(at: At) -> None:
    net = _net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for number in range(12):
        at("begin")
        try:
            if number % 3 == 1:
                net(torch.randn(2, 5))
            _loss(net).backward()
        except RuntimeError:
            at("failed")
            continue
        at("update")
        optimizer.step()
        at("updated")


PROGRAMS = [one for one in list(globals().values()) if isinstance(one, Program)]
