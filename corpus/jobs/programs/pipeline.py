"""Trains a pipeline on the CPU, one stage a rank, with the cause of `CAUSE` planted in it.

    CAUSE=last_stage SCHEDULE=1F1B torchrun --nproc-per-node 2 pipeline.py

The last rank prints the mean step in ms. The line of a planted cause ends with `# planted`.
"""

import os
import statistics
import time

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import get_schedule_class

CAUSE = os.environ.get("CAUSE", "none")
SCHEDULE = os.environ.get("SCHEDULE", "1F1B")
STEPS, WIDTH, BATCH, MICRO_BATCHES = 45, 256, 512, 8


class Stage(nn.Module):
    def __init__(self, index: int, count: int) -> None:
        super().__init__()
        self.index = index
        layers = 3
        if CAUSE == "last_stage" and index == count - 1:
            layers = 6
        if CAUSE == "first_stage" and index == 0:
            layers = 6
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        if CAUSE == "sleep" and self.index == 0:
            time.sleep(0.004)  # planted
        for layer in self.layers:
            x = torch.relu(layer(x))  # planted
        return x


def main() -> None:
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rank, size = dist.get_rank(), dist.get_world_size()
    kind = get_schedule_class(SCHEDULE)
    per_rank = 2 if "Interleaved" in SCHEDULE else 1
    stages = [
        PipelineStage(Stage(at, size * per_rank), at, size * per_rank, torch.device("cpu"))
        for at in range(rank, size * per_rank, size)
    ]
    schedule = kind(
        stages[0] if per_rank == 1 else stages, MICRO_BATCHES, loss_fn=nn.functional.mse_loss
    )
    parameters = [one for stage in stages for one in stage.submod.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=1e-4)
    x, y = torch.randn(BATCH, WIDTH), torch.randn(BATCH, WIDTH)
    times = []
    begin = time.perf_counter()
    for step in range(STEPS):
        if rank == 0:
            schedule.step(x)
        elif rank == size - 1:
            schedule.step(target=y, losses=[])
        else:
            schedule.step()
        optimizer.step()
        optimizer.zero_grad()
        if step >= STEPS // 3:
            times.append(time.perf_counter() - begin)
        begin = time.perf_counter()
    if rank == size - 1:
        print(f"mean step {1e3 * statistics.mean(times):.3f} ms")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
