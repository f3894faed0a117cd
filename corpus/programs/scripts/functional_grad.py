"""Per-sample gradients by torch.func, and an update by hand."""

import torch
from torch.func import functional_call, grad, vmap

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(20, 96), torch.nn.Tanh(), torch.nn.Linear(96, 1))
params = {name: value.detach() for name, value in net.named_parameters()}


def loss_of_one(params, x, y):
    return (functional_call(net, params, (x,)) - y).pow(2).squeeze()


per_sample = vmap(grad(loss_of_one), in_dims=(None, 0, 0))
x = torch.randn(4096, 20)
y = x[:, :1] * x[:, 1:2]

for step in range(200):
    rows = torch.randint(0, len(x), (128,))
    grads = per_sample(params, x[rows], y[rows])
    clipped = {}
    norms = torch.sqrt(sum(g.flatten(1).pow(2).sum(1) for g in grads.values()))
    scale = (1.0 / norms).clamp(max=1.0)
    for name, g in grads.items():
        noisy = (g * scale.view(-1, *[1] * (g.dim() - 1))).mean(0)
        clipped[name] = noisy + 0.001 * torch.randn_like(noisy)
    params = {name: value - 0.1 * clipped[name] for name, value in params.items()}
    if step % 50 == 0:
        print(step, norms.mean().item())
