import torch

torch.manual_seed(3)
n = 200
A = torch.randn(n, n) / n**0.5
target = torch.matrix_exp(0.5 * A)
factor = torch.zeros(n, n, requires_grad=True)
optimizer = torch.optim.RMSprop([factor], lr=1e-3)

step = 0
loss = torch.tensor(float("inf"))
while step < 300:
    product = torch.eye(n) + factor + factor @ factor / 2 + factor @ factor @ factor / 6
    loss = (product - target).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    if not step % 100:
        print(f"{step:5d} {loss.item():.4f}")

print("distance", (factor.detach() - 0.5 * A).norm().item())
