import math

import numpy as np
import torch
from torch import nn


def prepared(rows):
    batch = []
    for row in rows:
        values = []
        for value in row:
            values.append(math.sqrt(abs(value)) - 0.5)  # planted: D9
        batch.append(values)
    return np.array(batch, np.float32)


def build(knobs):
    device, width = knobs["device"], knobs["width"]
    model = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, 10))
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    rows = np.random.default_rng(0).normal(size=(knobs["batch"], width)).astype(np.float32)
    y = torch.randint(10, (knobs["batch"],), device=device)

    def step():
        x = torch.from_numpy(prepared(rows)).to(device)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
