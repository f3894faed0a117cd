"""The simulated jobs whose imbalance is known, and what they would take without it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

import numpy as np

from selftime.testing.simulated_pipelines import PipelineJob

Cause: TypeAlias = Literal["slow_rank", "stage_imbalance", "micro_batch_imbalance"]
"""A rule of the advice on jobs."""
SEEDS: Final = (1, 2, 3, 4)
HELD_OUT_SEEDS: Final = (301, 302, 303)
"""Seeds of the jobs that no rule was looked at with."""
KINDS: Final = (
    "healthy",
    "slow device",
    "slow host",
    "last stage",
    "first stage",
    "lengths",
    "slow device and last stage",
    "slow host and lengths",
    "last stage and lengths",
)


@dataclass(frozen=True, slots=True)
class Case:
    """A job, the causes that were planted in it, and for each the job without it."""

    name: str
    job: PipelineJob
    causes: tuple[Cause, ...]
    slow_rank: int | None
    without: dict[Cause, PipelineJob]


def cases(seeds: tuple[int, ...]) -> Iterator[Case]:
    """Yields a job of each kind for each seed, which draws its size and the size of its causes."""
    for seed in seeds:
        for kind in KINDS:
            yield case(kind, seed)


def case(kind: str, seed: int) -> Case:
    """Returns the job of a kind for a seed."""
    rng = np.random.default_rng((seed, KINDS.index(kind)))
    stages = int(rng.integers(2, 6))
    healthy = PipelineJob(
        data_parallel=int(rng.integers(2, 5)),
        stages=stages,
        micro_batches=stages + int(rng.integers(2, 8)),
        steps=5,
        noise=float(rng.uniform(0.002, 0.02)),
        seed=seed,
    )
    job, causes, without = healthy, [], {}
    slow_rank = int(rng.integers(healthy.size))
    if "slow" in kind:
        causes.append("slow_rank")
        if "device" in kind:
            ratio = float(rng.uniform(1.3, 2.2))
            job = replace(job, slow_ranks=((slow_rank, ratio),))
        else:
            job = replace(job, late_hosts=((slow_rank, float(rng.uniform(8_000, 25_000))),))
    if "stage" in kind:
        causes.append("stage_imbalance")
        heavy = stages - 1 if "last" in kind else 0
        load = [1.0] * stages
        load[heavy] = float(rng.uniform(1.35, 2.0))
        job = replace(job, load_of_stage=tuple(load))
    if "lengths" in kind:
        causes.append("micro_batch_imbalance")
        job = replace(job, length_spread=float(rng.uniform(0.2, 0.6)))
    if "slow_rank" in causes:
        without["slow_rank"] = replace(job, slow_ranks=(), late_hosts=())
    if "stage_imbalance" in causes:
        equal = (sum(job.load_of_stage) / stages,) * stages
        without["stage_imbalance"] = replace(job, load_of_stage=equal)
    if "micro_batch_imbalance" in causes:
        without["micro_batch_imbalance"] = replace(job, has_mean_lengths=True)
    named = slow_rank if "slow" in kind else None
    return Case(f"{kind}, seed {seed}", job, tuple(causes), named, without)
