"""Simulates jobs of pipelines with data parallelism: traces of all ranks, and the true step time.

Each rank runs one forward, one backward (1F1B) as Megatron does: a message is sent when the work
that makes it is done, a rank waits for the message that it needs next, and a send and a receive
with the same neighbour are one batch. Sender and receiver meet. At the end of a step gradients are
reduced among the ranks of a stage, their norm among the stages, and the optimizer runs.
"""

import json
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from selftime.array_types import Floats
from selftime.testing.pipeline_traces import (
    PipelineOperation,
    PipelineStep,
    trace_of_pipeline_rank,
)

_FORWARD_US: Final = 2_000.0
"""Time of the forward pass of a micro-batch in a stage; a backward pass takes twice as long."""
_TRANSFER_US: Final = 60.0
_REDUCE_US: Final = 900.0
_NORM_US: Final = 40.0
_OPTIMIZER_US: Final = 500.0
_PAUSE_US: Final = 50.0
"""Time between two steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineJob:
    """A job to simulate, and what is wrong with it."""

    data_parallel: int = 2
    stages: int = 4
    micro_batches: int = 8
    steps: int = 5
    noise: float = 0.01
    """Standard deviation of each computation, as a share of its time."""
    load_of_stage: tuple[float, ...] = ()
    """How much each stage has to compute, as a ratio to a usual stage; () for all alike."""
    slow_ranks: tuple[tuple[int, float], ...] = ()
    """Ranks whose device is slower, and by which ratio."""
    late_hosts: tuple[tuple[int, float], ...] = ()
    """Ranks whose host sleeps at the begin of each step, and for how many us."""
    length_spread: float = 0.0
    """Standard deviation of the logarithm of the cost of micro-batches."""
    has_mean_lengths: bool = False
    """Whether each micro-batch costs the mean of what all would cost by `length_spread`."""
    seed: int = 0

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self.data_parallel * self.stages

    def rank_at(self, replica: int, stage: int) -> int:
        """Returns the rank that computes a stage of a replica."""
        return stage * self.data_parallel + replica


class SimulatedPipelineJob(NamedTuple):
    """The traces of a simulated job, and what its steps take."""

    traces: dict[int, bytes]
    step_ms: float
    """Mean time from the end of one step to that of the next, over all ranks."""
    steps_ms: Floats
    """Time from the end of the step before to that of each step but the first, on each rank; shape
    (steps - 1, ranks).
    """


class _Action(NamedTuple):
    """What a rank does next: computations or messages that begin together."""

    parts: tuple[tuple[str, int], ...]
    """Kind and micro-batch of each."""


def simulate_pipeline_job(job: PipelineJob) -> SimulatedPipelineJob:
    """Simulates a job of pipelines."""
    costs = _costs(job)
    begin = np.zeros(job.size)
    steps: dict[int, list[PipelineStep]] = {rank: [] for rank in range(job.size)}
    ends = []
    for step in range(job.steps):
        done = _StepOfJob(job, costs[step], begin)
        done.run()
        for rank in range(job.size):
            own = sorted(done.operations[rank], key=lambda one: one.start)
            steps[rank].append(
                PipelineStep(float(begin[rank]), tuple(own), dict(job.late_hosts).get(rank, 0.0))
            )
        ends.append(done.now.copy())
        begin = done.now + _PAUSE_US
    traces = {
        rank: json.dumps(trace_of_pipeline_rank(rank, job.size, own)).encode()
        for rank, own in steps.items()
    }
    steps_ms = np.diff(np.stack(ends), axis=0) / 1e3
    return SimulatedPipelineJob(traces, float(steps_ms.mean()), steps_ms)


def _costs(job: PipelineJob) -> Floats:
    """Returns the us of each computation, shape (steps, replicas, stages, micro-batches, 2)."""
    shape = (job.steps, job.data_parallel, job.stages, job.micro_batches, 2)
    noise = 1 + job.noise * np.random.default_rng((job.seed, 1)).standard_normal(shape)
    lengths = np.random.default_rng((job.seed, 2)).standard_normal((shape[0], shape[1], shape[3]))
    factor = np.exp(job.length_spread * lengths - job.length_spread**2 / 2)
    if job.has_mean_lengths:
        factor = np.full_like(factor, factor.mean())
    load = np.array(job.load_of_stage or [1.0] * job.stages)
    cost = _FORWARD_US * np.array([1.0, 2.0]) * noise * factor[:, :, None, :, None]
    cost = cost * load[None, None, :, None, None]
    for rank, ratio in job.slow_ranks:
        cost[:, rank % job.data_parallel, rank // job.data_parallel] *= ratio
    return np.asarray(cost)


class _StepOfJob:
    """Runs one step of all ranks; times in us."""

    def __init__(self, job: PipelineJob, costs: Floats, begin: Floats) -> None:
        self.now = begin.copy()
        self.operations: dict[int, list[PipelineOperation]] = {r: [] for r in range(job.size)}
        self._job, self._costs = job, costs
        for rank, delay in job.late_hosts:
            self.now[rank] += delay
        self._left = {
            job.rank_at(replica, stage): _one_forward_one_backward(job, stage)
            for replica in range(job.data_parallel)
            for stage in range(job.stages)
        }
        self._posted: dict[tuple[int, str, int], float] = {}

    def run(self) -> None:
        """Runs the passes of all micro-batches, then the reductions and the optimizer."""
        while any(self._left.values()):
            if not any(self._advance(rank) for rank in self._left):
                raise AssertionError("the schedule of the simulated pipeline does not end")
        job = self._job
        for stage in range(job.stages):
            group = [job.rank_at(replica, stage) for replica in range(job.data_parallel)]
            self._reduce("_reduce_scatter_base", "dp", group, _REDUCE_US)
        for replica in range(job.data_parallel):
            group = [job.rank_at(replica, stage) for stage in range(job.stages)]
            self._reduce("allreduce", "mp", group, _NORM_US)
        for rank in range(job.size):
            self._compute(rank, "optimizer", _OPTIMIZER_US)

    def _advance(self, rank: int) -> bool:
        """Does what a rank can do next; returns whether there was anything."""
        moved = False
        while self._left[rank]:
            action = self._left[rank][0]
            if action.parts[0][0] in "FB":
                [(kind, batch)] = action.parts
                replica, stage = rank % self._job.data_parallel, rank // self._job.data_parallel
                name = "forward-compute" if kind == "F" else "backward-compute"
                self._compute(
                    rank, name, float(self._costs[replica, stage, batch, "FB".index(kind)])
                )
            elif not self._exchange(rank, action):
                return moved
            self._left[rank].pop(0)
            moved = True
        return moved

    def _exchange(self, rank: int, action: _Action) -> bool:
        """Sends and receives a batch of messages if all the others have come too."""
        for kind, batch in action.parts:
            self._posted.setdefault((rank, kind, batch), float(self.now[rank]))
        others = {
            part: (self._other(rank, part[0]), _PARTNER[part[0]], part[1]) for part in action.parts
        }
        if any(key not in self._posted for key in others.values()):
            return False
        pipeline = tuple(
            self._job.rank_at(rank % self._job.data_parallel, stage)
            for stage in range(self._job.stages)
        )
        begun = float(self.now[rank])
        met = max(self._posted[key] for key in others.values())
        end = max(begun, met) + _TRANSFER_US
        for kind, _ in action.parts:
            name: Literal["send", "recv"] = "send" if kind[0] == "s" else "recv"
            self.operations[rank].append(
                PipelineOperation(
                    name,
                    name,
                    begun,
                    end,
                    pipeline,
                    "pp",
                    self._other(rank, kind),
                    kind,
                )
            )
        self.now[rank] = end
        return True

    def _other(self, rank: int, kind: str) -> int:
        """Returns the rank that a message of a kind goes to or comes from."""
        further = {"sf": 1, "rf": -1, "sb": -1, "rb": 1}[kind]
        return rank + further * self._job.data_parallel

    def _compute(self, rank: int, name: str, time: float) -> None:
        begun = float(self.now[rank])
        self.operations[rank].append(PipelineOperation("compute", name, begun, begun + time))
        self.now[rank] = begun + time

    def _reduce(self, name: str, axis: str, group: list[int], time: float) -> None:
        if len(group) < 2:
            return
        end = float(self.now[group].max()) + time
        for rank in group:
            begun = float(self.now[rank])
            self.operations[rank].append(
                PipelineOperation("collective", name, begun, end, tuple(group), axis)
            )
            self.now[rank] = end


_PARTNER: Final = {"sf": "rf", "rf": "sf", "sb": "rb", "rb": "sb"}
"""Maps a send or receive, forward or backward, to that of the other rank."""


def _one_forward_one_backward(job: PipelineJob, stage: int) -> list[_Action]:
    """Returns what a rank of a stage does in a step, in order."""
    first, last, count = stage == 0, stage == job.stages - 1, job.micro_batches
    warmup = min(job.stages - stage - 1, count)
    actions: list[_Action] = []

    def add(*parts: tuple[str, int]) -> None:
        kept = tuple(
            part
            for part in parts
            if not (first and part[0] in {"rf", "sb"}) and not (last and part[0] in {"sf", "rb"})
        )
        if kept:
            actions.append(_Action(kept))

    for batch in range(warmup):
        add(("rf", batch))
        add(("F", batch))
        add(("sf", batch))
    steady = count - warmup
    if steady:
        add(("rf", warmup))
    for batch in range(steady):
        add(("F", warmup + batch))
        add(("sf", warmup + batch), ("rb", batch))
        add(("B", batch))
        if batch < steady - 1:
            add(("sb", batch), ("rf", warmup + batch + 1))
        else:
            add(("sb", batch))
    for batch in range(steady, count):
        add(("rb", batch))
        add(("B", batch))
        add(("sb", batch))
    return actions
