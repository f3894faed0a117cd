import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))

    def forward(self, x):
        return x + self.inner(self.norm(x))


def build(knobs):
    width = knobs["width"]
    network = nn.Sequential(*(Residual(width) for _ in range(knobs["blocks"])))
    network.append(nn.Linear(width, 16))
    ddp = DDP(network, bucket_cap_mb=0.01)
    optimizer = torch.optim.AdamW(ddp.parameters(), fused=True)
    images, labels = torch.randn(knobs["batch"], width), torch.randint(16, (knobs["batch"],))

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(ddp(images), labels)  # planted: I2
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
