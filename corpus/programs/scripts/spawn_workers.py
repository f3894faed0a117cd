"""Two processes, each of which trains a model of its own."""

import torch
import torch.multiprocessing as mp
from torch import nn


def train(rank, learning_rates):
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(32, 256), nn.Tanh(), nn.Linear(256, 32))
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rates[rank])
    x = torch.randn(4096, 32)
    for step in range(200):
        batch = x[torch.randint(0, 4096, (256,))]
        loss = (model(batch) - batch.roll(1, 1)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"worker {rank}: {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    mp.spawn(train, args=([0.1, 0.3],), nprocs=2)
