"""Fit a neural field to an image, with a closure as some optimizers need."""

import torch
from torch import nn


class Sine(nn.Module):
    def forward(self, x):
        return torch.sin(20 * x)


def picture(size):
    y, x = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
    return torch.stack([x, y], -1).view(-1, 2), ((x * 9).sin() * (y * 7).cos()).view(-1, 1)


def fit(where, what, rounds):
    field = nn.Sequential(nn.Linear(2, 96), Sine(), nn.Linear(96, 96), Sine(), nn.Linear(96, 1))
    optimizer = torch.optim.Adam(field.parameters(), lr=1e-4)
    losses = []
    for _ in range(rounds):

        def closure():
            optimizer.zero_grad()
            loss = (field(where) - what).square().mean()
            loss.backward()
            return loss

        losses.append(float(optimizer.step(closure)))
    return field, losses


torch.manual_seed(0)
points, values = picture(64)
_, losses = fit(points, values, 150)
print(losses[0], losses[-1])
