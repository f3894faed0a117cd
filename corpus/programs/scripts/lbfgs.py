import torch

torch.manual_seed(0)
size = 160
image = torch.zeros(size, size)
image[40:120, 50:110] = 1
kernel = torch.ones(1, 1, 5, 5) / 25
blurred = torch.nn.functional.conv2d(image[None, None], kernel, padding=2)
blurred += 0.01 * torch.randn_like(blurred)

estimate = blurred.clone().requires_grad_()
optimizer = torch.optim.LBFGS([estimate], lr=0.5, max_iter=8)


def closure():
    optimizer.zero_grad()
    residual = torch.nn.functional.conv2d(estimate, kernel, padding=2) - blurred
    rough = estimate.diff(dim=2).abs().sum() + estimate.diff(dim=3).abs().sum()
    loss = residual.pow(2).sum() + 1e-3 * rough
    loss.backward()
    return loss


for iteration in range(40):
    loss = optimizer.step(closure)
    if iteration % 10 == 0:
        print(iteration, loss.item())
print("error", (estimate.detach()[0, 0] - image).abs().mean().item())
