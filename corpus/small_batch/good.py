import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH = 256  # all of the 256 rows that one step of this program goes through


class Network(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.first = nn.Linear(32, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.last = nn.Linear(width, 4)

    def forward(self, x):
        x = self.first(x).relu()
        for layer in self.hidden:
            x = layer(x).relu()
        return self.last(x)


def build(knobs):
    device = knobs["device"]
    model = Network(32 * knobs["width"], knobs["layers"]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    data = TensorDataset(torch.randn(256, 32), torch.randint(4, (256,)))
    batches = [(x.to(device), y.to(device)) for x, y in DataLoader(data, batch_size=BATCH)]

    def step():
        total = torch.zeros((), device=device)
        for x, y in batches:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        return total / len(batches)

    return step
