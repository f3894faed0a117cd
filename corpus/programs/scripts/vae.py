import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader


class VAE(nn.Module):
    def __init__(self, hidden=256, latent=8):
        super().__init__()
        self.encode = nn.Sequential(
            nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, 2 * latent)
        )
        self.decode = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, 784))

    def forward(self, x):
        mean, log_variance = self.encode(x).chunk(2, dim=1)
        z = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        return self.decode(z), mean, log_variance


def elbo_loss(x, logits, mean, log_variance):
    reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum()
    return (reconstruction + divergence) / len(x)


def test(model, loader):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x in loader:
            total += elbo_loss(x, *model(x)).item()
    return total / len(loader)


torch.manual_seed(0)
strokes = (torch.rand(12, 784) < 0.1).float()
images = (strokes[torch.randint(0, 12, (6400, 3))].sum(1) > 0).float()
train_loader = DataLoader(images[:5120], batch_size=64, shuffle=True)
test_loader = DataLoader(images[5120:], batch_size=64)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(1, 4):
    model.train()
    for x in train_loader:
        optimizer.zero_grad()
        loss = elbo_loss(x, *model(x))
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: test {test(model, test_loader):.2f}")
with torch.no_grad():
    sample = model.decode(torch.randn(64, 8)).sigmoid()
torch.save(sample, "sample.pt")
