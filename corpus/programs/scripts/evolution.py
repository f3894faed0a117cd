"""An evolution strategy: no gradient, a population of perturbed policies."""

import torch

torch.manual_seed(0)
POPULATION, SIGMA, LR, HORIZON = 64, 0.1, 0.05, 30


def rollout(weights):
    """Steer points to the origin; all of the population at once."""
    w1, w2 = weights[:, :128].view(-1, 4, 32), weights[:, 128:192].view(-1, 32, 2)
    state = torch.tensor([1.0, 1.0, 0.0, 0.0]).repeat(len(weights), 16, 1)
    state += 0.3 * torch.randn(16, 4)
    reward = torch.zeros(len(weights))
    for _ in range(HORIZON):
        force = torch.tanh(torch.tanh(state @ w1) @ w2)
        speed = state[..., 2:] + 0.1 * force
        place = state[..., :2] + 0.1 * speed
        state = torch.cat([place, speed], -1)
        reward -= place.pow(2).sum(-1).mean(-1)
    return reward


mean = torch.zeros(192)
for generation in range(150):
    noise = torch.randn(POPULATION, 192)
    noise = torch.cat([noise, -noise])
    scores = rollout(mean + SIGMA * noise)
    ranks = scores.argsort().argsort().float() / (len(scores) - 1) - 0.5
    mean = mean + LR / SIGMA * (ranks[:, None] * noise).mean(0)
    if generation % 30 == 0:
        print(generation, scores.mean().item())
