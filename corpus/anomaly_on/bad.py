from itertools import pairwise

import torch
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        sizes = [max(width // 2**i, 8) for i in range(depth + 1)]
        down = [nn.Linear(a, b) for a, b in pairwise(sizes)]
        up = [nn.Linear(b, a) for a, b in pairwise(sizes)]
        self.layers = nn.ModuleList([*down, *reversed(up)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = nn.functional.silu(layer(x))
        return self.layers[-1](x)


def build(knobs):
    model = Autoencoder(knobs["width"], knobs["depth"])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 100)
    rows = torch.randn(knobs["batch"], knobs["width"])

    def step():
        optimizer.zero_grad()
        with torch.autograd.set_detect_anomaly(True):  # planted: F5
            loss = nn.functional.mse_loss(model(rows), rows)
            loss.backward()
        optimizer.step()
        scheduler.step()
        return loss.detach()

    return step
