"""Reinforcement learning: policies, returns, buffers."""

import numpy as np
import torch
from torch.distributions import Categorical, Normal, Uniform, kl_divergence


def policy_that_validates() -> None:
    """Checks on the host: distribution.py, __init__ and _validate_sample, `not _is_all_true`."""
    logits = torch.randn(4, 3, device="cuda", requires_grad=True)
    policy = Categorical(logits=logits)  # waits: sync
    action = policy.sample()
    score = policy.log_prob(action)  # waits: sync
    (score.mean() - 0.01 * policy.entropy().mean()).backward()


def policy_that_trusts() -> None:
    """Checks nothing; multinomial asserts in a kernel (Distributions.cpp, _assert_async)."""
    logits = torch.randn(4, 3, device="cuda", requires_grad=True)
    policy = Categorical(logits=logits, validate_args=False)
    action = policy.sample()
    (policy.log_prob(action).mean() - 0.01 * policy.entropy().mean()).backward()


def gaussian_that_validates() -> None:
    """Checks location and scale on the host: distribution.py, __init__."""
    mean, scale = torch.zeros(4, 2, device="cuda"), torch.ones(4, 2, device="cuda")
    policy = Normal(mean, scale)  # waits: sync
    action = policy.rsample()
    score = policy.log_prob(action)  # waits: sync
    assert score.shape == (4, 2)


def gaussian_that_trusts() -> None:
    """Scales noise of the device: normal.py, rsample, _standard_normal."""
    mean, scale = torch.zeros(4, 2, device="cuda"), torch.ones(4, 2, device="cuda")
    policy = Normal(mean, scale, validate_args=False)
    action = policy.rsample()
    assert policy.log_prob(action).shape == policy.entropy().shape


def gaussian_that_draws() -> None:
    """Checks the scale on the host.

    Source: DistributionTemplates.h, CHECK_NORMAL_TENSOR_STD, item<bool>.
    """
    mean, scale = torch.zeros(4, 2, device="cuda"), torch.ones(4, 2, device="cuda")
    policy = Normal(mean, scale, validate_args=False)
    action = policy.sample()  # waits: sync
    assert action.shape == (4, 2)


def noise_of_tensor_scale() -> None:
    """Checks the scale on the host: DistributionTemplates.h, CHECK_NORMAL_TENSOR_STD."""
    mean, scale = torch.zeros(4, device="cuda"), torch.ones(4, device="cuda")
    noise = torch.normal(mean, scale)  # waits: sync
    assert noise.shape == (4,)


def noise_of_number_scale() -> None:
    """Checks a number of the host: DistributionTemplates.h, CHECK_NORMAL_STD."""
    mean = torch.zeros(4, device="cuda")
    noise = torch.normal(mean, 0.1) + torch.randn_like(mean) + mean.new_empty(4).normal_(0, 1)
    assert noise.shape == (4,)


def uniform_that_validates() -> None:
    """Compares bounds on the host: uniform.py, `not torch.lt(low, high).all()`."""
    low, high = torch.zeros(4, device="cuda"), torch.ones(4, device="cuda")
    prior = Uniform(low, high)  # waits: sync
    assert prior.rsample().shape == (4,)


def divergence() -> None:
    """Computes a closed form: kl.py, _kl_normal_normal."""
    mean, scale = torch.zeros(4, device="cuda"), torch.ones(4, device="cuda")
    p = Normal(mean, scale, validate_args=False)
    q = Normal(mean + 1, scale * 2, validate_args=False)
    assert kl_divergence(p, q).shape == (4,)


def coin() -> None:
    """Draws in a kernel: Distributions.cu, bernoulli_ by a tensor reads nothing."""
    chance = torch.rand(4, device="cuda")
    assert (torch.bernoulli(chance) + torch.poisson(chance)).shape == (4,)


def act_in_environment() -> None:
    """Reads the action and copies the observation: item(); to(device) of pageable memory."""
    net = torch.nn.Linear(3, 2, device="cuda")
    seen = np.zeros(3, dtype=np.float32)
    for _ in range(2):
        state = torch.from_numpy(seen).to("cuda")  # waits: copy_to_device
        action = net(state).argmax().item()  # waits: sync
        seen = seen + action


def greedy_by_device_coin() -> None:
    """Branches on data: is_nonzero reads item()."""
    value = torch.randn(4, 3, device="cuda")
    if torch.rand((), device="cuda") < 0.1:  # waits: sync
        value = torch.rand_like(value)
    assert value.argmax(dim=1).shape == (4,)


def greedy_by_host_coin() -> None:
    """Branches on a host tensor."""
    value = torch.randn(4, 3, device="cuda")
    if torch.rand(()) < 0.1:
        value = torch.rand_like(value)
    assert value.argmax(dim=1).shape == (4,)


def greedy_by_mask() -> None:
    """Chooses in a kernel."""
    value = torch.randn(4, 3, device="cuda")
    explore = torch.rand(4, device="cuda") < 0.1
    action = torch.where(explore, torch.randint(0, 3, (4,), device="cuda"), value.argmax(dim=1))
    assert action.shape == (4,)


def advantages() -> None:
    """Loops over known steps and writes rows from the device: copy_kernel_cuda."""
    reward, value = torch.randn(5, 4, device="cuda"), torch.randn(6, 4, device="cuda")
    alive = (torch.rand(5, 4, device="cuda") > 0.1).float()
    advantage = torch.zeros_like(reward)
    last = torch.zeros(4, device="cuda")
    for t in reversed(range(5)):
        delta = reward[t] + 0.99 * value[t + 1] * alive[t] - value[t]
        last = delta + 0.95 * alive[t] * last
        advantage[t] = last
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)


def returns_that_branch() -> None:
    """Asks each step: is_nonzero reads item()."""
    reward, done = torch.randn(5, device="cuda"), torch.rand(5, device="cuda") > 0.5
    total = torch.zeros((), device="cuda")
    for t in reversed(range(5)):
        if done[t]:  # waits: sync
            total = torch.zeros((), device="cuda")
        total = reward[t] + 0.99 * total


def returns_from_floats() -> None:
    """Copies a list: internal_new_from_data, to(device) blocking."""
    returns = [1.0, 0.99, 0.98]
    target = torch.tensor(returns, dtype=torch.float32, device="cuda")  # waits: copy_to_device
    assert (target - torch.randn(3, device="cuda")).square().mean().shape == ()


def replay_pinned() -> None:
    """Copies from pinned memory without waiting: copy_kernel_cuda, non_blocking."""
    states = torch.randn(64, 3).pin_memory()
    batch = states[:16].to("cuda", non_blocking=True)
    assert torch.nn.Linear(3, 2, device="cuda")(batch).shape == (16, 2)


def replay_pinned_but_waiting() -> None:
    """Waits although pinned: copy_kernel_cuda, memcpy_and_sync unless non_blocking."""
    states = torch.randn(64, 3).pin_memory()
    batch = states[:16].to("cuda")  # waits: copy_to_device
    assert torch.nn.Linear(3, 2, device="cuda")(batch).shape == (16, 2)


def q_learning() -> None:
    """Gathers by actions of the device and clips."""
    net, old = torch.nn.Linear(3, 2, device="cuda"), torch.nn.Linear(3, 2, device="cuda")
    state = torch.randn(8, 3, device="cuda")
    action = torch.randint(0, 2, (8, 1), device="cuda")
    with torch.no_grad():
        target = torch.rand(8, device="cuda") + 0.9 * old(state).max(dim=1).values
    loss = torch.nn.functional.smooth_l1_loss(net(state).gather(1, action).squeeze(1), target)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    with torch.no_grad():
        for slow, fast in zip(old.parameters(), net.parameters(), strict=True):
            slow.lerp_(fast, 0.01)


def prioritised() -> None:
    """Searches the summed priorities on the device."""
    priority = torch.rand(32, device="cuda")
    total = priority.cumsum(dim=0)
    draw = torch.rand(4, device="cuda") * total[-1]
    where = torch.searchsorted(total, draw).clamp(max=31)
    priority[where] = torch.rand(4, device="cuda")


def surrogate() -> None:
    """Clips ratios on the device, then stops by data: is_nonzero reads item()."""
    new, old = torch.randn(8, device="cuda", requires_grad=True), torch.randn(8, device="cuda")
    ratio = (new - old).exp()
    loss = -torch.min(ratio, ratio.clamp(0.8, 1.2)).mean()
    loss.backward()
    if (old - new).mean() > 0.015:  # waits: sync
        return
