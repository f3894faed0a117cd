import torch
import torch.nn.functional as F
from torch import nn


def augment(x):
    x = x + 0.1 * torch.randn_like(x)
    keep = (torch.rand_like(x) > 0.2).float()
    return x * keep


def nt_xent(a, b, temperature=0.5):
    z = F.normalize(torch.cat([a, b]), dim=1)
    similarity = z @ z.T / temperature
    similarity.fill_diagonal_(float("-inf"))
    count = len(a)
    positives = torch.cat([torch.arange(count, 2 * count), torch.arange(count)])
    return F.cross_entropy(similarity, positives)


class SimCLR(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(256, 256), nn.BatchNorm1d(256), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 64))

    def forward(self, x):
        return self.head(self.encoder(x))


def pretrain():
    torch.manual_seed(0)
    data = torch.randn(8, 256)[torch.randint(0, 8, (4096,))] + torch.randn(4096, 256)
    model = SimCLR()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=20)
    for epoch in range(8):
        for rows in torch.randperm(len(data)).split(256):
            a, b = augment(data[rows]), augment(data[rows])
            loss = nt_xent(model(a), model(b))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            warmup.step()
        print(epoch, loss.item())


pretrain()
