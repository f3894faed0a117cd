"""Accelerate: a loop that gathers the gradients of two batches, recorded by optimizer steps."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from selftime.frameworks.accelerate import recording

accelerator = Accelerator(gradient_accumulation_steps=2, cpu=True)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
loader = DataLoader(TensorDataset(torch.randn(1600, 32)), batch_size=10)
optimizer = torch.optim.AdamW(model.parameters())
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
with recording(accelerator):
    for (batch,) in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(batch).pow(2).mean())
            optimizer.step()
            optimizer.zero_grad()
