import torch
from torch import nn


class Recommender(nn.Module):
    def __init__(self, users, items, width):
        super().__init__()
        self.users = nn.Embedding(users, width)
        self.items = nn.Embedding(items, width)
        self.score = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, user, item):
        pair = torch.cat([self.users(user), self.items(item)], dim=1)
        return self.score(pair).squeeze(1)


def build(knobs):
    device, batch = knobs["device"], knobs["batch"] * 512
    model = Recommender(500, 2_000, knobs["width"] * 64).to(device)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    criterion = nn.BCEWithLogitsLoss()
    user = torch.randint(500, (batch,), device=device)
    item = torch.randint(2_000, (batch,), device=device)
    liked = (torch.rand(batch, device=device) < 0.3).float()
    history, done = [], 0

    def step():
        nonlocal done
        optimizer.zero_grad()
        loss = criterion(model(user, item), liked)
        loss.backward()
        optimizer.step()
        done += 1
        if done % 50 == 0:
            history.append(loss.item())

    return step
