# %% imports
import torch
from torch import nn

# %% data
torch.manual_seed(0)
days = torch.arange(3000) / 3000
series = torch.sin(60 * days) + 0.3 * torch.sin(400 * days) + 0.1 * torch.randn(3000)
windows = series.unfold(0, 65, 1)
inputs, targets = windows[:, :64], windows[:, 64:]

# %% model
model = nn.Sequential(
    nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

# %% training
losses = []
for epoch in range(4):
    for rows in torch.randperm(len(inputs)).split(64):
        loss = (model(inputs[rows]) - targets[rows]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(len(losses), "steps", losses[-1])
