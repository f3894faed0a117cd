"""Simulate jobs of several ranks: the trace that each rank would write, and the true values.

Each step of each rank loads a batch, launches a forward and a backward pass of kernels, and reduces
the gradients in buckets while the backward pass still runs. An all-reduce begins on a rank when its
bucket is ready there, moves data once the last rank has arrived, and ends on all ranks together.
The step ends when the device is done. Every rank's trace uses its own clock.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

Cause: TypeAlias = Literal["data", "compute", "clocks", "gc", "host"]

ORIGIN: Final = 1_760_000_000_000_000_000
"""The start of the jobs, in ns since the Unix epoch."""
_US: Final = 1_000
_MS: Final = 1_000_000

_LOAD: Final = 2 * _MS
_PARTS: Final = 6
"""Kernels per forward pass; a backward pass has as many, each twice as long."""
_KERNEL: Final = 1 * _MS
_LAUNCH: Final = 12 * _US
_BUCKETS: Final = 3
_ELEMENTS: Final = 6_553_600
"""Elements per bucket: 25 MiB in single precision, as in DistributedDataParallel."""
_COMPUTE_STREAM: Final = 7
_COMMUNICATION_STREAM: Final = 20
_MAIN: Final = 100
_BACKWARD: Final = 101


@dataclass(frozen=True, slots=True)
class Delay:
    """A delay of one rank in each step: its length in ns, and its cause.

    The cause `clocks` slows all kernels of the step by the same share, in sum by that time.
    """

    rank: int
    by: int
    cause: Cause


@dataclass(frozen=True, slots=True)
class Machine:
    """The simulated hardware: noise, transfer time and jitter."""

    noise: float = 0.01
    """Standard deviation of each duration, relative to its length."""
    transfer: int = 600 * _US
    """The transfer time of one bucket, in ns."""
    jitter: int = 0
    """Standard deviation of the times at which ranks see the end of one collective, in ns."""


@dataclass(frozen=True, slots=True)
class Job:
    """A simulated job, with its traces and the true clocks and waits."""

    traces: dict[int, bytes]
    """The trace file of each rank."""
    clocks: dict[int, tuple[int, float]]
    """Each rank's clock: its offset in ns at the start, and its drift as a ratio."""
    waits: dict[int, list[int]]
    """How long each rank waited for the last one in each all-reduce, in ns."""
    last: list[int]
    """The rank that came last to each all-reduce."""


@dataclass(slots=True)
class _Rank:
    """One rank's state while it runs; times in ns of the true clock, since the job's start."""

    number: int
    host: int = 0
    device: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)
    correlation: int = 0

    def slice(self, category: str, name: str, start: int, end: int, tid: int, **args: Any) -> None:
        self.events.append(
            {"cat": category, "name": name, "start": start, "end": end, "tid": tid, "args": args}
        )

    def launch(self, name: str, time: int, tid: int) -> int:
        """Launch a kernel on the compute stream now; returns its end in ns."""
        self.correlation += 1
        called = {"correlation": self.correlation, "External id": self.correlation}
        self.slice(
            "cuda_runtime", "cudaLaunchKernel", self.host, self.host + _LAUNCH, tid, **called
        )
        self.host += _LAUNCH
        start = max(self.host, self.device)
        self.device = start + time
        where = {"device": 0, "stream": _COMPUTE_STREAM, **called}
        self.slice("kernel", name, start, self.device, _COMPUTE_STREAM, **where)
        return self.device


def simulate(
    *,
    ranks: int = 8,
    steps: int = 12,
    late: Delay | None = None,
    clocks: bool = True,
    machine: Machine = Machine(),
    seed: int = 0,
) -> Job:
    """Returns a simulated job.

    Args:
        ranks: The number of ranks, in one process group.
        steps: The number of steps that each rank records.
        late: The delay of one rank, if any.
        clocks: Whether clocks are wrong by up to 10 s and drift by up to 10 parts per million.
        machine: The simulated hardware.
        seed: The seed of the random numbers.
    """
    draw = np.random.default_rng(seed)
    set_to = {
        rank: (int(draw.integers(-(10**10), 10**10)), float(draw.uniform(-10e-6, 10e-6)))
        if clocks
        else (0, 0.0)
        for rank in range(ranks)
    }
    running = [_Rank(rank) for rank in range(ranks)]
    waits: dict[int, list[int]] = {rank: [] for rank in range(ranks)}
    last: list[int] = []
    for step in range(steps):
        begun = [rank.host for rank in running]
        buckets = [list(_step(rank, late, machine.noise, draw)) for rank in running]
        busy = 0  # when the communication stream is free, the same on all ranks
        for bucket in range(_BUCKETS):
            arrived = [max(own[bucket].ready, busy) for own in buckets]
            busy = max(arrived) + _vary(machine.transfer, machine.noise, draw)
            last.append(int(np.argmax(arrived)))
            for rank, own, start in zip(running, buckets, arrived, strict=True):
                waits[rank.number].append(max(arrived) - start)
                seen = busy + round(abs(machine.jitter * draw.standard_normal()))
                sequence = step * _BUCKETS + bucket
                _reduce(rank, own[bucket].issued, sequence, (start, seen), ranks)
        for rank, start in zip(running, begun, strict=True):
            _finish(rank, step, start, busy)
    traces = {rank.number: _written(rank, ranks, *set_to[rank.number]) for rank in running}
    return Job(traces, set_to, waits, last)


def _vary(time: int, noise: float, draw: np.random.Generator) -> int:
    return max(1, round(time * (1 + noise * draw.standard_normal())))


class _Bucket(NamedTuple):
    """Gradients that are exchanged together."""

    ready: int
    """When they are ready on the device, in ns."""
    issued: int
    """When the host launches their exchange."""


def _step(
    rank: _Rank, late: Delay | None, noise: float, draw: np.random.Generator
) -> Iterator[_Bucket]:
    """Run a step up to its exchange; the buckets of its gradients."""
    cause = late.cause if late is not None and late.rank == rank.number else None
    by = 0 if late is None else late.by
    start = rank.host
    rank.host += _vary(_LOAD, noise, draw) + (by if cause == "data" else 0)
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    rank.slice("user_annotation", loader, start, rank.host, _MAIN)
    if cause in {"gc", "host"}:
        start = rank.host
        rank.host += by
        if cause == "gc":
            rank.slice("python_function", "Python GC", start, rank.host, _MAIN)
    start = rank.host
    slower = 1 + by / (3 * _PARTS * _KERNEL) if cause == "clocks" else 1.0
    for part in range(_PARTS):
        longer = by if cause == "compute" and part == 0 else 0
        time = round(_vary(_KERNEL, noise, draw) * slower) + longer
        rank.launch(f"void forward_{part}<float>()", time, _MAIN)
    rank.slice("cpu_op", "aten::forward", start, rank.host, _MAIN)
    start = rank.host
    for part in range(_PARTS):
        time = round(_vary(2 * _KERNEL, noise, draw) * slower)
        done = rank.launch(f"void backward_{part}<float>()", time, _BACKWARD)
        if (part + 1) % (_PARTS // _BUCKETS) == 0:
            yield _Bucket(done, rank.host)
            rank.host += _LAUNCH // 2
    rank.slice("cpu_op", "autograd::engine::evaluate_function: B", start, rank.host, _BACKWARD)


def _reduce(rank: _Rank, issued: int, sequence: int, span: tuple[int, int], ranks: int) -> None:
    start, end = span
    rank.correlation += 1
    called = {"correlation": rank.correlation, "External id": rank.correlation}
    collective_args = {
        "Collective name": "allreduce",
        "dtype": "Float",
        "In msg nelems": _ELEMENTS,
        "Out msg nelems": _ELEMENTS,
        "Group size": ranks,
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Process Group Ranks": str(list(range(ranks))),
        "Seq": sequence,
    }
    rank.slice("cuda_runtime", "cudaLaunchKernelExC", issued, issued + _LAUNCH // 2, 102, **called)
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    where = {"device": 0, "stream": _COMMUNICATION_STREAM, **called, **collective_args}
    rank.slice("kernel", name, start, end, _COMMUNICATION_STREAM, **where)


def _finish(rank: _Rank, step: int, start: int, reduced: int) -> None:
    """Run the optimizer, which needs the gradients; then the host waits for the device."""
    rank.device = max(rank.device, reduced)
    begun = rank.host
    done = rank.launch("void multi_tensor_apply_kernel<Adam>()", _KERNEL // 2, _MAIN)
    rank.slice("user_annotation", "Optimizer.step#Adam.step", begun, rank.host, _MAIN)
    rank.correlation += 1
    called = {"correlation": rank.correlation}
    rank.slice("cuda_runtime", "cudaDeviceSynchronize", rank.host, done, _MAIN, **called)
    rank.host = done + 20 * _US
    rank.slice("user_annotation", f"ProfilerStep#{step}", start, rank.host, _MAIN)


def _written(rank: _Rank, ranks: int, ahead: int, drift: float) -> bytes:
    """Returns the rank's trace file, on its own clock, as Kineto writes it."""

    def read(time: int) -> int:
        return ahead + time + round(time * drift)

    base = ORIGIN - 10**11
    events: list[dict[str, Any]] = []
    for event in rank.events:
        start = read(event["start"]) + ORIGIN - base
        pid = 0 if event["cat"] == "kernel" else 1000 + rank.number
        events.append(
            {
                "ph": "X",
                "cat": event["cat"],
                "name": event["name"],
                "pid": pid,
                "tid": event["tid"],
                "ts": start / _US,
                "dur": (read(event["end"]) + ORIGIN - base - start) / _US,
                "args": event["args"],
            }
        )
    body = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}],
        "distributedInfo": {"backend": "nccl", "rank": rank.number, "world_size": ranks},
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": base,
        "traceEvents": events,
    }
    return json.dumps(body).encode()
