"""A small diffusion model of points in the plane: training, then sampling."""

import torch
from torch import nn

T = 100
betas = torch.linspace(1e-4, 0.05, T)
alphas = (1 - betas).cumprod(0)


class Denoiser(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.time = nn.Embedding(T, width)
        self.enter = nn.Linear(2, width)
        self.body = nn.Sequential(
            nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2)
        )

    def forward(self, x, t):
        return self.body(self.enter(x) + self.time(t))


def moons(count):
    angle = torch.rand(count) * 3.1416
    upper = torch.rand(count) < 0.5
    x = torch.where(upper, angle.cos(), 1 - angle.cos())
    y = torch.where(upper, angle.sin(), 0.5 - angle.sin())
    return torch.stack([x, y], 1) + 0.05 * torch.randn(count, 2)


@torch.no_grad()
def sample(model, count):
    x = torch.randn(count, 2)
    for t in reversed(range(T)):
        noise = model(x, torch.full((count,), t))
        x = (x - betas[t] / (1 - alphas[t]).sqrt() * noise) / (1 - betas[t]).sqrt()
        if t:
            x += betas[t].sqrt() * torch.randn_like(x)
    return x


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Denoiser()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(250):
        x0 = moons(512)
        t = torch.randint(0, T, (512,))
        noise = torch.randn_like(x0)
        a = alphas[t][:, None]
        loss = (model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t) - noise).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())
    print(sample(model, 2000).mean(0))
