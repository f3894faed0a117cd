import torch


@torch.compile(backend="eager")
def wave_step(u, before, c):
    lap = u.roll(1, 0) + u.roll(-1, 0) + u.roll(1, 1) + u.roll(-1, 1) - 4 * u
    return 2 * u - before + c * lap


size = 300
y, x = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
u = torch.exp(-((x - 150.0) ** 2 + (y - 120.0) ** 2) / 50)
before = u.clone()
heights = []
for step in range(3000):
    u, before = wave_step(u, before, 0.2), u
    if step % 10 == 0:
        heights.append(u[100, 100].item())
print(max(heights))
