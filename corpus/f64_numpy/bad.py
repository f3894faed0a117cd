import numpy as np
import torch
from torch import nn


def build(knobs):
    images = np.random.default_rng(0).integers(
        0, 256, (knobs["batch"], 3, knobs["size"], knobs["size"]), dtype=np.uint8
    )
    channels = knobs["channels"]
    model = nn.Sequential(
        nn.Conv2d(3, channels, 3), nn.ReLU(), nn.Conv2d(channels, channels, 3), nn.Flatten()
    ).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        x = torch.from_numpy(images / 255.0)  # planted: E13
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return step
