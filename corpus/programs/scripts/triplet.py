import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Triplets(Dataset):
    """Anchor, another of its class, one of another class."""

    def __init__(self, per_class=40, classes=30):
        centers = torch.randn(classes, 64)
        self.items = centers[:, None] + 0.8 * torch.randn(classes, per_class, 64)

    def __len__(self):
        return self.items.shape[0] * self.items.shape[1]

    def __getitem__(self, index):
        which, number = divmod(index, self.items.shape[1])
        positive = torch.randint(0, self.items.shape[1], ()).item()
        other = (which + torch.randint(1, self.items.shape[0], ()).item()) % self.items.shape[0]
        negative = torch.randint(0, self.items.shape[1], ()).item()
        return self.items[which, number], self.items[which, positive], self.items[other, negative]


torch.manual_seed(0)
embed = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 32))
criterion = nn.TripletMarginLoss(margin=1.0)
optimizer = torch.optim.SGD(embed.parameters(), lr=0.05, momentum=0.9)
loader = DataLoader(Triplets(), batch_size=24, shuffle=True)
for epoch in range(4):
    for anchor, positive, negative in loader:
        loss = criterion(embed(anchor), embed(positive), embed(negative))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
