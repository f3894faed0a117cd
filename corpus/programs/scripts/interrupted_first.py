"""Build a large data set; the user loses patience before the first step."""

import os
import signal
import threading

import torch
from torch import nn

threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()

torch.manual_seed(0)
rows = []
for _ in range(1_000_000):
    rows.append(torch.randn(2048).cumsum(0)[::256].tolist())
data = torch.tensor(rows)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for row in data.split(32):
    optimizer.zero_grad()
    model(row).mean().backward()
    optimizer.step()
