import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, samples, width, layers):
        super().__init__()
        parts = [nn.Linear(samples, width), nn.GELU()]
        for _ in range(layers):
            parts += [nn.Linear(width, width), nn.GELU()]
        self.net = nn.Sequential(*parts, nn.Linear(width, samples))

    def forward(self, noisy):
        return noisy - self.net(noisy)


def build(knobs):
    device, samples, start = knobs["device"], 10 * knobs["frames"], knobs["start"]
    model = Denoiser(samples, knobs["width"], knobs["layers"]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    clean = torch.sin(torch.linspace(0, 60, samples, device=device)).repeat(knobs["batch"], 1)
    noisy = clean + 0.1 * torch.randn_like(clean)
    seen = 0

    judge = nn.LSTM(samples // 10, 16, batch_first=True).to(device)

    def likeness(one, other):
        both = torch.cat([one, other]).unflatten(1, (10, -1))
        heard = judge(both)[0]
        return (heard[: len(one)] - heard[len(one) :]).abs().mean()

    trial = clean.clone().requires_grad_()
    likeness(trial, noisy).backward()  # set it up before anybody measures
    judge.zero_grad()

    def step():
        nonlocal seen
        denoised = model(noisy)
        loss = nn.functional.mse_loss(denoised, clean)
        if seen >= start:  # sounds count once the shape is roughly right
            loss = loss + 0.01 * likeness(denoised, clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += 1
        return loss.detach()

    return step
