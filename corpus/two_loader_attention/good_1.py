import math
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Reviews(Dataset):
    """Texts that are read from slow storage when they are asked for."""

    def __init__(self, length, width, wait_us):
        self.length, self.width, self.wait = length, width, wait_us / 1e6

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        time.sleep(self.wait)
        words = torch.arange(index, index + self.length * self.width) % 97
        return words.float().view(self.length, self.width) / 97, index % 5


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.project = nn.ModuleList(nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        q, k, v = (p(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in self.project)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        y = torch.softmax(scores, dim=-1) @ v
        return y.transpose(1, 2).flatten(2)


class Classifier(nn.Module):
    def __init__(self, width, heads, layers):
        super().__init__()
        self.layers = nn.ModuleList(SelfAttention(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, 5)

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x.mean(1))


def build(knobs):
    device, width, length = knobs["device"], 32 * knobs["heads"], 32 * knobs["length"]
    model = Classifier(width, knobs["heads"], knobs["layers"]).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    loader = DataLoader(
        Reviews(length, width, knobs["wait_us"]),
        knobs["batch"],
        num_workers=4,
        persistent_workers=True,
    )
    batches = iter(loader)

    def step():
        x, y = next(batches)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
        optimizer.step()

    return step
