"""Siamese towers, trained until the held-out loss is below a limit."""

import torch
from torch import nn


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(
            nn.Conv1d(1, 16, 7, stride=2),
            nn.ReLU(),
            nn.Conv1d(16, 32, 5, stride=2),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.compare = nn.Linear(32 * 29, 1)

    def forward(self, left, right):
        return self.compare((self.tower(left) - self.tower(right)).abs()).squeeze(1)


def pairs(signals, count):
    i = torch.randint(0, len(signals), (count,))
    j = torch.where(torch.rand(count) < 0.5, i, torch.randint(0, len(signals), (count,)))
    noise = 0.3 * torch.randn(2, count, 1, 128)
    return signals[i] + noise[0], signals[j] + noise[1], (i == j).float()


torch.manual_seed(0)
signals = torch.randn(20, 1, 128).cumsum(-1)
model = Siamese()
loss_function = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
held_out = [pairs(signals, 64) for _ in range(10)]
best, found, epoch = float("inf"), float("inf"), 0
while epoch < 5 or found > 5:  # stop early once it is good enough, but not before five epochs
    model.train()
    for _ in range(40):
        left, right, same = pairs(signals, 64)
        loss = loss_function(model(left, right), same)
        model.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        found = sum(loss_function(model(a, b), same).item() for a, b, same in held_out) / 10
    epoch += 1
    if found < best:
        best = found
        torch.save(model.state_dict(), "best.pt")
    print(f"epoch {epoch}: {found:.4f}")
