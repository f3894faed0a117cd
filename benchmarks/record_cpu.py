"""Record a small training program on the CPU with torch's own profiler, stacks and all.

    python benchmarks/record_cpu.py TRACE.json

A transformer's steps with a DataLoader, about 10 MB: what `benchmarks/traces.py` makes large traces
of one kind from. By torch's profiler, so that no reader is at an advantage.
"""

import sys
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STEPS = 4


def main() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    net = nn.Sequential(
        nn.TransformerEncoder(layer, 3, enable_nested_tensor=False), nn.Linear(64, 8)
    )
    optimizer = torch.optim.AdamW(net.parameters())
    data = TensorDataset(torch.randn(8 * (STEPS + 3), 16, 64), torch.randn(8 * (STEPS + 3), 16, 8))
    plan = torch.profiler.schedule(wait=1, warmup=1, active=STEPS, repeat=1)
    with torch.profiler.profile(
        schedule=plan,
        on_trace_ready=lambda prof: prof.export_chrome_trace(sys.argv[1]),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
    ) as prof:
        for inputs, wanted in DataLoader(data, batch_size=8):
            optimizer.zero_grad()
            loss: Any = nn.functional.mse_loss(net(inputs), wanted)
            loss.backward()
            optimizer.step()
            prof.step()


if __name__ == "__main__":
    main()
