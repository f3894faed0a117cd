import random

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    """Lines of a log, parsed as they come, shuffled in a buffer."""

    def __init__(self, lines, buffer=256):
        self.lines, self.buffer = lines, buffer

    def parsed(self):
        for number in range(self.lines):
            line = ",".join(str((number * k) % 97 / 97) for k in range(1, 33))
            values = torch.tensor([float(field) for field in line.split(",")])
            yield values[:-1], values[-1:]

    def __iter__(self):
        kept = []
        for item in self.parsed():
            kept.append(item)
            if len(kept) >= self.buffer:
                yield kept.pop(random.randrange(len(kept)))
        random.shuffle(kept)
        yield from kept


random.seed(0)
torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(31, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for number, (x, y) in enumerate(DataLoader(Stream(12_800), batch_size=64)):
    loss = nn.functional.l1_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if number % 40 == 0:
        print(number, loss.item())
