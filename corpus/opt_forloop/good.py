import torch
from torch import nn


def build(knobs):
    width = knobs["width"]
    model = nn.Sequential(*(nn.Linear(width, width) for _ in range(knobs["layers"])))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    x = torch.randn(8, width)

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return step
