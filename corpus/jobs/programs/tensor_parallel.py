"""Trains with tensor parallelism of DTensor on the CPU, with the cause of `CAUSE` planted in it.

    CAUSE=sleep torchrun --nproc-per-node 2 tensor_parallel.py

Rank 0 prints the mean step in ms. The line of a planted cause ends with `# planted`.
"""

import os
import statistics
import time

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

CAUSE = os.environ.get("CAUSE", "none")
LATE_RANK = int(os.environ.get("LATE_RANK", "1"))
STEPS, WIDTH, BATCH, BLOCKS = 60, 384, 64, 3


class Block(nn.Module):
    def __init__(self, *, is_late: bool) -> None:
        super().__init__()
        self.is_late = is_late
        self.table = torch.randn(600, 600)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        if CAUSE == "compute" and self.is_late:
            self.table = torch.tanh(self.table @ self.table / 600)  # planted
        return x + self.down(torch.relu(self.up(x)))


def main() -> None:
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rank = dist.get_rank()
    is_late = rank == LATE_RANK
    net = nn.Sequential(*(Block(is_late=is_late) for _ in range(BLOCKS)))
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    plan = {f"{at}.up": ColwiseParallel() for at in range(BLOCKS)}
    parallelize_module(net, mesh, plan | {f"{at}.down": RowwiseParallel() for at in range(BLOCKS)})
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    times = []
    begin = time.perf_counter()
    for step in range(STEPS):
        torch.manual_seed(step)
        x = torch.randn(BATCH, WIDTH)
        if CAUSE == "sleep" and is_late:
            time.sleep(0.02)  # planted
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
