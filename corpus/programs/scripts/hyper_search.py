"""Random search: several trainings in one process."""

import random

import torch
from torch import nn


def make_data():
    x = torch.randn(2000, 24)
    return x, (x[:, :3].sum(1) > x[:, 3:6].prod(1)).long()


def trial(x, y, width, lr, optimizer_class):
    model = nn.Sequential(
        nn.Linear(24, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2)
    )
    optimizer = optimizer_class(model.parameters(), lr=lr)
    for step in range(50):
        rows = torch.randint(0, 1600, (128,))
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        return (model(x[1600:]).argmax(1) == y[1600:]).float().mean().item()


random.seed(0)
torch.manual_seed(0)
x, y = make_data()
tried = []
for number in range(6):
    choice = {
        "width": random.choice([128, 192, 256]),
        "lr": 10 ** random.uniform(-3, -1),
        "optimizer_class": random.choice([torch.optim.SGD, torch.optim.Adam]),
    }
    tried.append((trial(x, y, **choice), choice))
    print(f"trial {number}: {tried[-1][0]:.3f}")
print("best", max(tried, key=lambda pair: pair[0])[1])
