import torch
from torch import nn


class Separable(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.near = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
        self.wide = nn.Conv2d(channels, channels, 5, padding=2, groups=channels, bias=False)
        self.mix = nn.Conv2d(channels, channels, filters, padding=filters // 2, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        spread = self.near(x)
        spread = self.wide(spread)
        mixed = self.mix(spread)
        return x + torch.relu(self.norm(mixed))


def build(knobs):
    channels, device = 8 * knobs["channels"], knobs["device"]
    body = nn.Sequential(*(Separable(channels, knobs["filters"]) for _ in range(knobs["blocks"])))
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))
    model = nn.Sequential(body, head).to(device)
    model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
    images = torch.randn(knobs["batch"], channels, knobs["size"], knobs["size"], device=device)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(10, (knobs["batch"],), device=device)

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16, enabled=device == "cuda"):
            loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()

    return step
