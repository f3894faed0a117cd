import torch
import torch.nn.functional as F

grid = 512
u = torch.zeros(1, 1, grid, grid)
u[..., 200:300, 200:300] = 100.0
laplace = torch.tensor([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]]).view(1, 1, 3, 3)
alpha, dt = 0.2, 1.0

t = 0.0
for n in range(300):
    padded = F.pad(u, (1, 1, 1, 1), mode="replicate")
    u = u + alpha * dt * F.conv2d(padded, laplace)
    t += dt
    if n % 100 == 0:
        print(f"t={t:.0f} max={u.max():.2f} mean={u.mean():.4f}")
torch.save(u, "heat.pt")
