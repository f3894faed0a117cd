import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = x + nn.functional.silu(layer(x))
        return x.float().square().mean()


class Actors(nn.Module):
    """A small policy for each kind of agent."""

    def __init__(self, agents, depth):
        super().__init__()
        self.depth = depth
        self.weights = nn.Parameter(torch.randn(agents, depth, 32, 32) / 32**0.5)
        self.shift = nn.Parameter(torch.zeros(agents, depth, 1, 32))

    def forward(self, seen):
        x = seen
        for i in range(self.depth):
            x = torch.tanh(torch.baddbmm(self.shift[:, i], x, self.weights[:, i]))
        return x


def build(knobs):
    device, width, agents = knobs["device"], 64 * knobs["width"], knobs["agents"]
    critic, actors = Critic(width, knobs["critic"]).to(device), Actors(agents, knobs["depth"])
    actors.to(device)
    learn_critic = torch.optim.SGD(critic.parameters(), lr=1e-5, fused=True)
    learn_actors = torch.optim.SGD(actors.parameters(), lr=1e-4, fused=True)
    states = torch.randn(64 * knobs["batch"], width, device=device)
    seen = torch.randn(agents, 64, 32, device=device)
    values, total = [], torch.zeros((), device=device)
    count = 0

    def step():
        nonlocal count
        learn_critic.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            value = critic(states)
        value.backward()
        learn_critic.step()
        total.add_(value.detach())
        count += 1
        if count % 50 == 0:
            values.append(total.item() / 50)
            total.zero_()
        learn_actors.zero_grad()
        loss = actors(seen).square().mean()
        loss.backward()
        learn_actors.step()
        return loss.detach()

    return step
