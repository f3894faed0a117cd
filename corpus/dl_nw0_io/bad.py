import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    """Samples that wait for storage."""

    def __init__(self, wait_us, width):
        self.wait, self.width = wait_us / 1e6, width

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        time.sleep(self.wait)
        return torch.full((self.width,), float(index % 7)), index % 10


def build(knobs):
    width = knobs["width"]
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Slow(knobs["wait_us"], width), knobs["batch"], num_workers=0)
    batches = iter(loader)

    def step():
        x, y = next(batches)  # planted: A1
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step
