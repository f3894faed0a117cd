"""Sequences of every length through an encoder that is compiled for one length at a time."""

import torch
from torch import nn
from torch._dynamo import config


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(200, width)
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, width)

    def forward(self, tokens):
        x = self.embed(tokens)
        x = self.norm(x + torch.tanh(self.mix(x)))
        return x.mean(dim=1)


def build(knobs):
    # Past this many versions PyTorch would give up and run the function uncompiled.
    config.recompile_limit = 1000
    config.accumulated_recompile_limit = 1000
    encoder = Encoder(knobs["width"])
    compiled = torch.compile(encoder, backend="aot_eager", dynamic=False)
    head = nn.Linear(knobs["width"], 2)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], foreach=True)
    longest = knobs["shortest"] + 120 * knobs["stride"]
    lengths = range(knobs["shortest"], longest, knobs["stride"])
    batches = [torch.randint(0, 200, (knobs["batch"], n)) for n in lengths]
    order = torch.randperm(len(batches)).tolist()

    def step():
        tokens = batches[order[0]]
        order.append(order.pop(0))
        encoded = compiled(tokens)  # planted: H1
        loss = head(encoded).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
