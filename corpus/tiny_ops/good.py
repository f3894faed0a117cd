from itertools import pairwise

import torch
from torch import nn


class Ensemble(nn.Module):
    """Small regressors, all at once: their weights are stacked."""

    def __init__(self, members, width, depth):
        super().__init__()
        sizes = [8, *[width] * depth, 1]
        layers = [[nn.Linear(a, b) for a, b in pairwise(sizes)] for _ in range(members)]
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for same in zip(*layers, strict=True):
            self.weights.append(torch.stack([layer.weight.detach().T for layer in same]))
            self.biases.append(torch.stack([layer.bias.detach()[None] for layer in same]))

    def forward(self, x):
        x = x.expand(self.weights[0].shape[0], *x.shape)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = torch.sin(torch.baddbmm(bias, x, weight)) * 0.5 + 0.1 * x.mean(2, keepdim=True)
        x = torch.baddbmm(self.biases[-1], x, self.weights[-1])
        return x.squeeze(2).T


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
