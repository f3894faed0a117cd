import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Encoder(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(layers)])
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return self.head(x)


def build(knobs):
    width, parts = knobs["width"], knobs["parts"]
    model = DistributedDataParallel(Encoder(width, knobs["layers"]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    x = torch.randn(parts, knobs["batch"], width)
    y = torch.randint(10, (parts, knobs["batch"]))

    def step():
        optimizer.zero_grad()
        total = 0.0
        for part, target in zip(x, y, strict=True):
            loss = nn.functional.cross_entropy(model(part), target) / parts  # planted: I1
            loss.backward()
            total = total + loss.detach()
        optimizer.step()
        return total

    return step
