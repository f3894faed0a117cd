"""Train a small GPT to write like the files of Python's standard library.

A program with little to repair: fused attention, data in memory, numbers read now and then. What
an adviser says of it should be short.
"""

import argparse
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

CONTEXT = 64


class Block(nn.Module):
    """Attention to what came before, then a layer for each position."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inputs, self.outputs = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.layers = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.inputs(self.norm1(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.outputs(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.layers(self.norm2(x))


class GPT(nn.Module):
    """Predicts the next byte."""

    def __init__(self, width=128, heads=4, depth=4):
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, width), nn.Embedding(CONTEXT, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 256, bias=False)

    def forward(self, text):
        x = self.bytes(text) + self.places(torch.arange(text.shape[1], device=text.device))
        return self.head(self.norm(self.blocks(x)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    source = bytearray(Path(argparse.__file__).read_bytes())
    text = torch.frombuffer(source, dtype=torch.uint8).long().to(device)
    windows = text.unfold(0, CONTEXT + 1, 1)
    model = GPT().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    begin = time.perf_counter()
    for step in range(options.steps):
        batch = windows[torch.randint(len(windows), (options.batch,), device=device)]
        scores = model(batch[:, :-1])
        loss = functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.3f}")
    print(f"{(time.perf_counter() - begin) / options.steps * 1e3:.1f} ms a step")


if __name__ == "__main__":
    main()
