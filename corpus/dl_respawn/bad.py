import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, 2 * width)
        self.last = nn.Linear(2 * width, 1)

    def forward(self, x):
        return self.last(torch.relu(self.first(x))).squeeze(-1)


def build(knobs):
    torch.set_num_threads(1)  # the other cores are for the workers
    width, rows = knobs["width"], knobs["batch"] * knobs["batches"]
    data = TensorDataset(torch.randn(rows, width), torch.randn(rows))
    loader = DataLoader(data, batch_size=knobs["batch"], shuffle=True, num_workers=knobs["workers"])
    model = Regressor(width)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def epoch():
        for x, y in loader:  # planted: A7
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()

    return epoch
