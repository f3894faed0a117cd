"""A loop of one's own: `selftime.watch` around whatever is iterated."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import selftime

model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters())
loader = DataLoader(TensorDataset(torch.randn(400, 32)), batch_size=10)
for (batch,) in selftime.watch(loader):
    model(batch).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
