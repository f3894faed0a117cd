from itertools import pairwise

import torch
from torch import nn


class Member(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        sizes = [8, *[width] * depth, 1]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.sin(layer(x)) * 0.5 + 0.1 * x.mean(1, keepdim=True)  # planted: J9
        return self.layers[-1](x)


class Ensemble(nn.Module):
    """Small regressors whose mean and spread tell how sure the prediction is."""

    def __init__(self, members, width, depth):
        super().__init__()
        self.members = nn.ModuleList(Member(width, depth) for _ in range(members))

    def forward(self, x):
        return torch.cat([member(x) for member in self.members], dim=1)


def build(knobs):
    device = knobs["device"]
    model = Ensemble(knobs["members"], knobs["width"], knobs["depth"]).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    x = torch.randn(knobs["batch"], 8, device=device)
    y = torch.randn(knobs["batch"], 1, device=device)

    def step():
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
