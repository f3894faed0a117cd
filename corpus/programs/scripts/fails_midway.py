import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Records(Dataset):
    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        width = 31 if index == 4_815 else 32  # one record is damaged
        return torch.randn(width), index % 3


torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 3)
)
optimizer = torch.optim.Adam(model.parameters())
for number, (x, y) in enumerate(DataLoader(Records(), batch_size=32)):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if number % 50 == 0:
        print(number, loss.item())
print("never reached")
