"""Trains a mixture of experts on the CPU, one expert a rank, with tokens routed by all-to-all.

    CAUSE=experts torchrun --nproc-per-node 2 experts.py

With `experts` most tokens go to the first expert; without, each expert gets as many. Rank 0 prints
the mean step in ms.
"""

import os
import statistics
import time

import torch
import torch.distributed as dist
from torch import Tensor, nn

CAUSE = os.environ.get("CAUSE", "none")
STEPS, WIDTH, TOKENS = 60, 256, 512


class Route(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tokens: Tensor, sends: list[int], receives: list[int]) -> Tensor:
        ctx.sends, ctx.receives = sends, receives
        found = tokens.new_empty(sum(receives), tokens.shape[1])
        dist.all_to_all_single(found, tokens.contiguous(), receives, sends)
        return found

    @staticmethod
    def backward(ctx, gradient: Tensor):
        found = gradient.new_empty(sum(ctx.sends), gradient.shape[1])
        dist.all_to_all_single(found, gradient.contiguous(), ctx.sends, ctx.receives)
        return found, None, None


def main() -> None:
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rank, size = dist.get_rank(), dist.get_world_size()
    expert = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH))
    optimizer = torch.optim.SGD(expert.parameters(), lr=1e-4)
    shares = [TOKENS // size] * size
    if CAUSE == "experts":
        rest = TOKENS // (2 * size)
        shares = [TOKENS - (size - 1) * rest] + [rest] * (size - 1)
    times = []
    begin = time.perf_counter()
    for step in range(STEPS):
        tokens = torch.randn(TOKENS, WIDTH, requires_grad=True)
        mine = Route.apply(tokens, shares, [shares[rank]] * size)
        done = Route.apply(expert(mine), [shares[rank]] * size, shares)
        done.square().mean().backward()
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
