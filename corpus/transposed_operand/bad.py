import torch
from torch import nn


class Graph(nn.Module):
    def __init__(self, nodes, width, layers):
        super().__init__()
        self.weights = nn.Parameter(torch.randn(nodes, nodes) / nodes)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x, mask):
        edges = torch.mul(self.weights, mask)  # planted: J3
        x = edges @ x
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def build(knobs):
    nodes, width = 16 * knobs["nodes"], 8
    model = Graph(nodes, width, knobs["layers"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    x = torch.randn(nodes, width)
    mask = (torch.rand(nodes, nodes) > 0.5).float().t()

    def step():
        optimizer.zero_grad()
        model(x, mask).square().mean().backward()
        optimizer.step()

    return step
