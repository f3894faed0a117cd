import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x):
        out = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        return functional.relu(x + self.bn2(self.conv2(out)), inplace=True)


class SmallResNet(nn.Module):
    def __init__(self, width, blocks, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.body = nn.Sequential(*(Block(width) for _ in range(blocks)))
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        x = self.body(self.stem(images))
        return self.head(x.mean((2, 3)))


def build(knobs):
    device = knobs["device"]
    model = SmallResNet(knobs["width"] * 16, knobs["blocks"]).to(
        device, memory_format=torch.channels_last
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True)
    images = torch.randn(knobs["batch"], 3, 32, 32, device=device)
    images = images.to(memory_format=torch.channels_last)
    labels = torch.randint(10, (knobs["batch"],), device=device)

    def step():
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step
