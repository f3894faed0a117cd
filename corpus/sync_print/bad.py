from itertools import pairwise

import torch
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        sizes = [width >> i for i in range(depth + 1)]
        pairs = list(pairwise(sizes))
        self.down = nn.ModuleList(nn.Linear(a, b) for a, b in pairs)
        self.up = nn.ModuleList(nn.Linear(b, a) for a, b in reversed(pairs))

    def forward(self, x):
        for layer in self.down:
            x = layer(x).relu()
        *inner, last = self.up
        for layer in inner:
            x = layer(x).relu()
        return last(x)


def build(knobs):
    device, width = knobs["device"], 64 * knobs["width"]
    model = Autoencoder(width, knobs["depth"]).to(device)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    x = torch.randn(32 * knobs["batch"], width, device=device)
    count = 0

    def step():
        nonlocal count
        count += 1
        optimizer.zero_grad()
        rebuilt = model(x)
        errors = (rebuilt - x).square().mean(0)
        errors.mean().backward()
        optimizer.step()
        print("errors:", errors.detach()[: knobs["shown"]])  # planted: B3
        return errors.detach().mean()

    return step
