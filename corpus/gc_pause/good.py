import gc

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    """Rows with what is known of each: many small objects that live as long as the program."""

    def __init__(self, rows, width):
        self.index = [{"id": i, "tags": [i % 7, i % 11], "source": [i]} for i in range(rows)]
        self.values = torch.randn(1024, width)

    def __len__(self):
        return 1024

    def __getitem__(self, i):
        return self.values[i], self.index[i]["tags"][0]


def build(knobs):
    width, every = knobs["width"], knobs["every"]
    data = Samples(knobs["rows"] * 1000, width)
    loader = DataLoader(data, batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 7))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, foreach=True)
    batches = iter(loader)
    seen = 0
    gc.collect()
    gc.freeze()

    def step():
        nonlocal batches, seen
        batch = next(batches, None)
        if batch is None:
            batches = iter(loader)
            batch = next(batches)
        x, y = batch
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        seen += 1
        if seen % (1000 * every) == 0:
            gc.collect()
        return loss.detach()

    return step
