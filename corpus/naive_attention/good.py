import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))


def build(knobs):
    width, device = 64 * knobs["heads"], knobs["device"]
    blocks = (Block(width, knobs["heads"]) for _ in range(knobs["layers"]))
    model = nn.Sequential(*blocks, nn.Linear(width, 32)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    x = torch.randn(knobs["batch"], knobs["length"], width, device=device)
    target = torch.randint(32, (knobs["batch"] * knobs["length"],), device=device)

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x).flatten(0, 1), target).backward()
        optimizer.step()

    return step
