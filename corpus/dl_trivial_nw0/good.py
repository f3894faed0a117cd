import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build(knobs):
    width = knobs["width"]
    data = TensorDataset(torch.randn(20_000, width), torch.randint(10, (20_000,)))
    model = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = iter(DataLoader(data, knobs["batch"]))

    def step():
        x, y = next(batches)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step
