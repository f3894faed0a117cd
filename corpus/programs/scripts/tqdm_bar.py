import torch
from torch import nn
from tqdm import tqdm

torch.manual_seed(0)
autoencoder = nn.Sequential(
    nn.Linear(784, 128),
    nn.ReLU(),
    nn.Linear(128, 16),
    nn.Linear(16, 128),
    nn.ReLU(),
    nn.Linear(128, 784),
)
optimizer = torch.optim.Adam(autoencoder.parameters())
basis = torch.rand(16, 784)
data = torch.rand(8192, 16) @ basis / 8

for epoch in range(3):
    bar = tqdm(data[torch.randperm(len(data))].split(64), desc=f"epoch {epoch}")
    for batch in bar:
        loss = nn.functional.mse_loss(autoencoder(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        bar.set_postfix(loss=f"{loss.item():.4f}")
