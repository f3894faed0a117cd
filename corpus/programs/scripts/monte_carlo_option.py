import math

import torch


def price(paths, days, spot=100.0, strike=105.0, rate=0.02, vol=0.3):
    dt = 1 / 252
    value = torch.full((paths,), spot, dtype=torch.float64)
    running = torch.zeros_like(value)
    for _ in range(days):
        noise = torch.randn(paths, dtype=torch.float64)
        value *= torch.exp((rate - vol**2 / 2) * dt + vol * math.sqrt(dt) * noise)
        running += value
    payoff = (running / days - strike).clamp(min=0)
    discounted = math.exp(-rate * days * dt) * payoff
    return discounted.mean().item(), discounted.std().item() / math.sqrt(paths)


torch.manual_seed(7)
mean, error = price(paths=100_000, days=504)
print(f"Asian call {mean:.3f} +- {1.96 * error:.3f}")
