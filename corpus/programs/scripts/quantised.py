"""Compare a model with its dynamically quantised twin."""

import time
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")
torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 64)
)
model.eval()
small = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
batches = [torch.randn(64, 512) for _ in range(150)]


def run(network):
    start = time.perf_counter()
    with torch.no_grad():
        outputs = [network(batch) for batch in batches]
    return torch.cat(outputs), time.perf_counter() - start


exact, slow = run(model)
close, fast = run(small)
print(f"{slow:.2f} s, quantised {fast:.2f} s, error {(exact - close).abs().mean():.4f}")
