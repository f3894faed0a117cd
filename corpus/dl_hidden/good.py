import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Shards(Dataset):
    """Samples from storage that is fast enough."""

    def __init__(self, width, wait):
        self.width, self.wait = width, wait

    def __len__(self):
        return 200_000

    def __getitem__(self, index):
        time.sleep(self.wait)
        return torch.full((self.width,), (index % 11) / 11), index % 10


def build(knobs):
    device, width = knobs["device"], knobs["width"]
    blocks = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(knobs["layers"])]
    model = nn.Sequential(*blocks, nn.Linear(width, 10)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    loader = DataLoader(
        Shards(width, knobs["wait_us"] / 1e6),
        batch_size=knobs["batch"],
        num_workers=2,
        persistent_workers=True,
        prefetch_factor=4,
        pin_memory=device == "cuda",
    )
    batches = iter(loader)

    def step():
        x, y = next(batches)
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step
