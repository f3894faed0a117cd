"""Trains with `fully_shard` on the CPU, with the cause of `CAUSE` planted in it.

    CAUSE=sleep torchrun --nproc-per-node 2 sharded.py

Rank 0 prints the mean step in ms. The line of a planted cause ends with `# planted`.
"""

import os
import statistics
import time

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

CAUSE = os.environ.get("CAUSE", "none")
LATE_RANK = int(os.environ.get("LATE_RANK", "1"))
STEPS, WIDTH, BATCH = 60, 384, 64


class Layer(nn.Module):
    def __init__(self, *, is_late: bool) -> None:
        super().__init__()
        self.is_late = is_late
        self.table = torch.randn(600, 600)
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        if CAUSE == "compute" and self.is_late:
            self.table = torch.tanh(self.table @ self.table / 600)  # planted
        return torch.relu(self.linear(x))


def main() -> None:
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rank = dist.get_rank()
    is_late = rank == LATE_RANK
    net = nn.Sequential(*(Layer(is_late=is_late) for _ in range(4)), nn.Linear(WIDTH, 1))
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in net:
        fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    times = []
    begin = time.perf_counter()
    for step in range(STEPS):
        x = torch.randn(BATCH, WIDTH)
        if CAUSE == "sleep" and is_late:
            time.sleep(0.02)  # planted
        if CAUSE == "length" and is_late:
            x = x.repeat(64, 1)  # planted
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step >= STEPS // 3:
            times.append(time.perf_counter() - begin)
        begin = time.perf_counter()
    if rank == 0:
        print(f"mean step {1e3 * statistics.mean(times):.3f} ms")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
