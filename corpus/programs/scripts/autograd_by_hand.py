import torch

torch.manual_seed(0)
X = torch.randn(3000, 100)
w_true = torch.randn(100)
y = (X @ w_true > 0).float()

w1 = (torch.randn(100, 200) / 10).requires_grad_()
b1 = torch.zeros(200, requires_grad=True)
w2 = (torch.randn(200) / 14).requires_grad_()
params = [w1, b1, w2]
lr, momentum = 0.2, 0.9
speed = [torch.zeros_like(p) for p in params]

for it in range(150):
    hidden = torch.relu(X @ w1 + b1)
    logits = hidden @ w2
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, y)
    gradients = torch.autograd.grad(loss, params)
    with torch.no_grad():
        for p, v, g in zip(params, speed, gradients):
            v.mul_(momentum).add_(g)
            p.sub_(lr * v)
    if it % 50 == 0:
        print(it, loss.item())
