import torch
from torch import nn


def build(knobs):
    width = knobs["width"]
    layers = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(knobs["layers"])]
    model = nn.Sequential(*layers, nn.Linear(width, 10))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    x, y = torch.randn(knobs["batch"], width), torch.randint(10, (knobs["batch"],))

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step
