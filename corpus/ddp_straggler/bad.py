import os
import time

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

RANK = int(os.environ["RANK"])


class Clips(Dataset):
    """Clips that come from storage; one rank has the long ones."""

    def __init__(self, length, width, wait_us):
        self.length, self.width, self.wait = length, width, wait_us / 1e6

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        time.sleep(self.wait)
        values = torch.arange(self.length * self.width, dtype=torch.float32)
        return torch.sin(values + index).view(self.length, self.width), index % 8


def build(knobs):
    width, wait_us = knobs["width"], knobs["wait_us"]
    shares = (1, 3)
    data = Clips(knobs["length"], width, wait_us * shares[RANK % 2])
    batches = iter(DataLoader(data, knobs["batch"]))
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, 8))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        clips, labels = next(batches)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(clips).mean(dim=1), labels).backward()
        optimizer.step()

    return step
