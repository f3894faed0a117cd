import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
LATENT = 32


def real_samples(count):
    angle = torch.rand(count) * 6.2832
    circle = torch.stack([angle.cos(), angle.sin()], 1)
    return circle + 0.05 * torch.randn(count, 2)


generator = nn.Sequential(
    nn.Linear(LATENT, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 2)
)
critic = nn.Sequential(
    nn.Linear(2, 256), nn.LeakyReLU(0.2), nn.Linear(256, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1)
)
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()

loader = DataLoader(real_samples(8192), batch_size=128, shuffle=True, drop_last=True)
for epoch in range(3):
    for real in loader:
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        fake = generator(torch.randn(len(real), LATENT))
        loss_d = bce(critic(real), ones) + bce(critic(fake.detach()), zeros)
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()

        loss_g = bce(critic(fake), ones)
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
    print(f"epoch {epoch}: d {loss_d.item():.3f} g {loss_g.item():.3f}")
