"""A training that looks at itself with torch.profiler."""

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 16, 5), nn.ReLU(), nn.Conv2d(16, 16, 5), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10)
)
model(torch.randn(1, 1, 28, 28))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
images, labels = torch.randn(640, 1, 28, 28), torch.randint(0, 10, (640,))

with profile(
    activities=[ProfilerActivity.CPU], schedule=schedule(wait=20, warmup=2, active=4, repeat=1)
) as prof:
    for step in range(120):
        rows = torch.randint(0, 640, (32,))
        loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        prof.step()
print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=5))
