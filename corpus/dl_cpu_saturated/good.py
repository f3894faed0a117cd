import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


class Reviews(Dataset):
    """Texts as counts of their words."""

    def __init__(self, words, table):
        self.words, self.table = words, table
        self.texts = [f"it was no {i} and " * (words // 5) for i in range(20)]
        self.known = [self.counts(text) for text in self.texts]

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        return self.known[index % 20], index % 2

    def counts(self, text):
        found = torch.zeros(self.table)
        for word in text.split():
            number = 7
            for letter in word:
                number = (number * 31 + ord(letter)) % 1_000_003
            found[number % self.table] += 1
        return found


def build(knobs):
    torch.set_num_threads(1)  # the other cores are for the workers
    table, width = knobs["table"], knobs["width"]
    model = nn.Sequential(nn.Linear(table, width), nn.ReLU(), nn.Linear(width, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = Reviews(knobs["words"], table)
    loader = DataLoader(data, knobs["batch"], num_workers=CORES, persistent_workers=True)
    batches = iter(loader)

    def step():
        counts, y = next(batches)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(counts), y).backward()
        optimizer.step()

    return step
