"""Classify two spirals, with everything in functions."""

import math

import torch
from torch import nn
from torch.nn import functional as F


def make_spirals(count):
    radius = torch.linspace(0.1, 1.0, count).repeat(2)
    label = torch.arange(2).repeat_interleave(count)
    angle = radius * 3 * math.pi + label * math.pi
    points = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return points + 0.02 * torch.randn_like(points), label


def make_model(width=256):
    return nn.Sequential(
        nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2)
    )


def train_step(model, optimizer, x, y):
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        hits = sum(
            (model(part).argmax(1) == want).sum() for part, want in zip(x.split(500), y.split(500))
        )
    model.train()
    return hits.item() / len(y)


def main():
    torch.manual_seed(1)
    x, y = make_spirals(4000)
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(5):
        order = torch.randperm(len(x))
        for rows in order.split(128):
            loss = train_step(model, optimizer, x[rows], y[rows])
        found = accuracy(model, x, y)
        print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {found:.3f}")


if __name__ == "__main__":
    main()
