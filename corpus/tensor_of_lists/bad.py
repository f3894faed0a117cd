import numpy as np
import torch
from torch import nn


def build(knobs):
    device, width = knobs["device"], knobs["width"]
    model = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, 10))
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    values = np.random.default_rng(0).normal(size=(512, width)).astype(np.float32)
    rows, turn = list(values), iter(range(1_000_000_000))
    y = torch.randint(10, (knobs["batch"],), device=device)

    def step():
        first = 7 * next(turn) % (512 - knobs["batch"])
        chosen = rows[first : first + knobs["batch"]]
        x = torch.tensor(chosen, device=device)  # planted: D11
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
