"""Meta-learning of sinusoids: inner steps by autograd.grad, an outer step by Adam."""

import torch
import torch.nn.functional as F


def forward(x, weights):
    for number in range(0, len(weights) - 2, 2):
        x = torch.relu(F.linear(x, weights[number], weights[number + 1]))
    return F.linear(x, weights[-2], weights[-1])


def task():
    amplitude, phase = torch.empty(1).uniform_(0.5, 5), torch.empty(1).uniform_(0, 3.14)
    return lambda x: amplitude * torch.sin(x + phase)


def adapt(weights, x, y, steps=2, lr=0.01):
    for _ in range(steps):
        loss = F.mse_loss(forward(x, weights), y)
        gradients = torch.autograd.grad(loss, weights, create_graph=True)
        weights = [w - lr * g for w, g in zip(weights, gradients)]
    return weights


torch.manual_seed(0)
sizes = [1, 64, 64, 1]
weights = []
for inputs, outputs in zip(sizes[:-1], sizes[1:]):
    weights.append((torch.randn(outputs, inputs) / inputs**0.5).requires_grad_())
    weights.append(torch.zeros(outputs, requires_grad=True))
meta = torch.optim.Adam(weights, lr=1e-3)
for round_number in range(80):
    total = 0.0
    for _ in range(4):
        function = task()
        x = torch.empty(20, 1).uniform_(-5, 5)
        query = torch.empty(20, 1).uniform_(-5, 5)
        adapted = adapt(weights, x, function(x))
        total = total + F.mse_loss(forward(query, adapted), function(query))
    meta.zero_grad()
    total.backward()
    meta.step()
    if round_number % 20 == 0:
        print(round_number, total.item() / 4)
