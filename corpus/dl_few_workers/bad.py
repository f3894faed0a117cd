import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Recordings(Dataset):
    """Sequences that lie on a slow disk."""

    def __init__(self, length, wait):
        self.length, self.wait = length, wait

    def __len__(self):
        return 50_000

    def __getitem__(self, index):
        time.sleep(self.wait)
        return torch.linspace(0, index % 13, self.length), float(index % 3)


class Tagger(nn.Module):
    def __init__(self, length, hidden):
        super().__init__()
        self.encoder = nn.Linear(length, hidden)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.head(torch.relu(self.encoder(x))).squeeze(1)


def build(knobs):
    torch.set_num_threads(1)  # the other cores are for the workers
    model = Tagger(knobs["length"], knobs["hidden"])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = Recordings(knobs["length"], knobs["wait_us"] / 1e6)
    loader = DataLoader(data, batch_size=knobs["batch"], shuffle=True, num_workers=1)

    def forever():
        while True:
            yield from loader  # planted: A2

    batches = forever()

    def step():
        x, y = next(batches)
        loss = nn.functional.mse_loss(model(x), y.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
