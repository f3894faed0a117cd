import os

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, vocabulary, width, layers):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.head = nn.Linear(width, 17)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = x + torch.relu(block(x))
        return self.head(x)


def build(knobs):
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    model = Tagger(5_000, knobs["width"], knobs["layers"]).eval()
    tokens = torch.randint(5_000, (knobs["batch"], 64))

    @torch.inference_mode()
    def step():
        return model(tokens).argmax(-1)

    return step
