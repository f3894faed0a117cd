import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x):
        return torch.relu(x + self.body(x))


class Classifier(nn.Module):
    def __init__(self, channels, blocks):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.blocks = nn.Sequential(*(Residual(channels) for _ in range(blocks)))
        self.head = nn.Linear(channels, 10)

    def forward(self, images):
        x = self.stem(images)
        return self.head(self.blocks(x).mean((2, 3)))


def build(knobs):
    device, size = knobs["device"], knobs["size"]
    images = torch.randn(8 * knobs["batch"], 3, size, size)
    labels = torch.randint(10, (8 * knobs["batch"],))
    loader = DataLoader(TensorDataset(images, labels), batch_size=knobs["batch"])
    batches = [(x.to(device), y.to(device)) for x, y in loader]
    model = Classifier(knobs["channels"], knobs["blocks"]).to(device).eval()
    right = torch.zeros((), device=device)
    at = 0

    def step():
        nonlocal at
        x, y = batches[at % len(batches)]
        at += 1
        with torch.inference_mode():
            logits = model(x)
        right.add_((logits.argmax(1) == y).sum())
        return logits.detach()

    return step
