import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width, heads, layers):
        super().__init__()
        self.width, self.heads = width, heads
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def bias(self, length, device):
        """Attention falls off with distance, each head at its own rate."""
        at = torch.arange(length, dtype=torch.float32)
        distance = (at[None, :] - at[:, None]).abs()
        rate = 2.0 ** -torch.arange(1, self.heads + 1)
        return (-rate[:, None, None] * distance).to(device)  # planted: C4

    def forward(self, x):
        rows, length, _ = x.shape
        for qkv, out in zip(self.qkv, self.out, strict=True):
            q, k, v = (
                part.view(rows, length, self.heads, -1).transpose(1, 2)
                for part in qkv(x).chunk(3, dim=-1)
            )
            bias = self.bias(length, x.device)
            seen = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
            x = x + out(seen.transpose(1, 2).reshape(rows, length, self.width))
        return x


def build(knobs):
    device = knobs["device"]
    model = Encoder(64 * knobs["heads"], knobs["heads"], knobs["layers"]).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    x = torch.randn(knobs["batch"], knobs["length"], 64 * knobs["heads"], device=device)

    def step():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
