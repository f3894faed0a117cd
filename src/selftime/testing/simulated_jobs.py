"""Simulates training jobs of several ranks: trace files, and the true clock errors and waits.

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

DelayCause: TypeAlias = Literal["data", "compute", "clocks", "gc", "host"]
"""Why a simulated rank is late: data loading, more computation, a low device clock rate, garbage
collection, or other host work."""

SIMULATED_JOB_START_NS: Final = 1_760_000_000_000_000_000
"""Time at which every simulated job starts, in ns since the Unix epoch."""
_NS_PER_US: Final = 1_000
_NS_PER_MS: Final = 1_000_000

_BATCH_LOADING_TIME_NS: Final = 2 * _NS_PER_MS
"""Time that a simulated rank takes to load a batch, in ns."""
_KERNELS_PER_FORWARD_PASS: Final = 6
"""Number of kernels in a forward pass; a backward pass has as many, each twice as long."""
_FORWARD_KERNEL_DURATION_NS: Final = 1 * _NS_PER_MS
"""Duration of a forward kernel, in ns."""
_KERNEL_LAUNCH_CALL_DURATION_NS: Final = 12 * _NS_PER_US
"""Duration of a call that launches a kernel, in ns."""
_GRADIENT_BUCKETS_PER_STEP: Final = 3
"""Number of gradient buckets that each step reduces."""
_ELEMENTS_PER_GRADIENT_BUCKET: Final = 6_553_600
"""Number of elements in a gradient bucket: 25 MiB of float32, as in DistributedDataParallel."""
_COMPUTE_STREAM_NUMBER: Final = 7
_COMMUNICATION_STREAM_NUMBER: Final = 20
_MAIN_THREAD_ID: Final = 100
_BACKWARD_THREAD_ID: Final = 101


@dataclass(frozen=True, slots=True)
class RankDelay:
    """A delay of one rank of a simulated job in every step: which rank, why, and by how many ns.

    The cause `clocks` slows all kernels of the step by the same share, in sum by that time.
    """

    rank: int
    delay_ns: int
    cause: DelayCause


@dataclass(frozen=True, slots=True)
class SimulatedMachine:
    """Timing of a simulated machine: variation of durations, and the speed of collectives."""

    noise: float = 0.01
    """Standard deviation of each random duration, as a share of the duration."""
    transfer: int = 600 * _NS_PER_US
    """Time to transfer one gradient bucket, in ns."""
    jitter: int = 0
    """Standard deviation in ns, between ranks, of the recorded end of the same collective."""


@dataclass(frozen=True, slots=True)
class SimulatedJob:
    """A simulated job: each rank's trace file, true clock error, and true waits in all-reduces."""

    traces: dict[int, bytes]
    """Content of each rank's JSON trace file, by rank."""
    clocks: dict[int, tuple[int, float]]
    """Clock error by rank: (offset in ns at the start, drift as a ratio of elapsed time)."""
    waits: dict[int, list[int]]
    """Time in ns, by rank, that the rank waited in each all-reduce for the rank that came last."""
    last: list[int]
    """Rank that arrived last, one value per all-reduce in order of time."""


@dataclass(slots=True)
class _SimulatedRank:
    """State of one rank in the simulation; times are true times in ns since the job's start."""

    number: int
    host: int = 0
    device: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)
    correlation: int = 0

    def add_slice(
        self, category: str, name: str, start: int, end: int, tid: int, **args: Any
    ) -> None:
        self.events.append(
            {"cat": category, "name": name, "start": start, "end": end, "tid": tid, "args": args}
        )

    def launch(self, name: str, time: int, tid: int) -> int:
        """Launches a kernel that takes `time` ns on the compute stream; returns its end in ns."""
        self.correlation += 1
        called = {"correlation": self.correlation, "External id": self.correlation}
        self.add_slice(
            "cuda_runtime",
            "cudaLaunchKernel",
            self.host,
            self.host + _KERNEL_LAUNCH_CALL_DURATION_NS,
            tid,
            **called,
        )
        self.host += _KERNEL_LAUNCH_CALL_DURATION_NS
        start = max(self.host, self.device)
        self.device = start + time
        where = {"device": 0, "stream": _COMPUTE_STREAM_NUMBER, **called}
        self.add_slice("kernel", name, start, self.device, _COMPUTE_STREAM_NUMBER, **where)
        return self.device


def simulate_job(
    *,
    ranks: int = 8,
    steps: int = 12,
    late: RankDelay | None = None,
    clocks: bool = True,
    machine: SimulatedMachine = SimulatedMachine(),
    seed: int = 0,
) -> SimulatedJob:
    """Simulates a job of several ranks; returns its trace files, true clocks and true waits.

    Args:
        ranks: The number of ranks, in one process group.
        steps: The number of steps that each rank records.
        late: The delay of one rank, if any.
        clocks: Whether clocks are wrong by up to 10 s and drift by up to 10 parts per million.
        machine: The simulated hardware.
        seed: The seed of the random numbers.
    """
    rng = np.random.default_rng(seed)
    set_to = {
        rank: _random_clock_offset_and_drift(rng) if clocks else (0, 0.0) for rank in range(ranks)
    }
    running = [_SimulatedRank(rank) for rank in range(ranks)]
    waits: dict[int, list[int]] = {rank: [] for rank in range(ranks)}
    last: list[int] = []
    for step in range(steps):
        begun = [rank.host for rank in running]
        buckets = [
            list(_run_step_until_gradient_all_reduce(rank, late, machine.noise, rng))
            for rank in running
        ]
        busy = 0  # when the communication stream is free, the same on all ranks
        for bucket in range(_GRADIENT_BUCKETS_PER_STEP):
            arrived = [max(own[bucket].ready, busy) for own in buckets]
            busy = max(arrived) + _add_noise_to_duration(machine.transfer, machine.noise, rng)
            last.append(int(np.argmax(arrived)))
            for rank, own, start in zip(running, buckets, arrived, strict=True):
                waits[rank.number].append(max(arrived) - start)
                seen = busy + round(abs(machine.jitter * rng.standard_normal()))
                sequence = step * _GRADIENT_BUCKETS_PER_STEP + bucket
                _add_all_reduce_slices(rank, own[bucket].issued, sequence, (start, seen), ranks)
        for rank, start in zip(running, begun, strict=True):
            _finish_step_with_optimizer(rank, step, start, busy)
    traces = {
        rank.number: _trace_file_of_rank(rank, ranks, *set_to[rank.number]) for rank in running
    }
    return SimulatedJob(traces, set_to, waits, last)


def _random_clock_offset_and_drift(rng: np.random.Generator) -> tuple[int, float]:
    """Returns a random clock error: an offset in ns, at most 10 s, and a drift of at most 1e-5."""
    return int(rng.integers(-(10**10), 10**10)), float(rng.uniform(-10e-6, 10e-6))


def _add_noise_to_duration(duration: int, noise: float, rng: np.random.Generator) -> int:
    return max(1, round(duration * (1 + noise * rng.standard_normal())))


class _GradientBucketTimes(NamedTuple):
    """When a gradient bucket is ready on the device, and when its all-reduce is launched, in ns."""

    ready: int
    """When the gradients are ready on the device, in ns."""
    issued: int
    """When the host launches the all-reduce of the gradients, in ns."""


def _run_step_until_gradient_all_reduce(
    rank: _SimulatedRank, late: RankDelay | None, noise: float, rng: np.random.Generator
) -> Iterator[_GradientBucketTimes]:
    """Simulates a rank's step up to its all-reduces; yields each gradient bucket's times in ns."""
    cause = late.cause if late is not None and late.rank == rank.number else None
    delay_ns = 0 if late is None else late.delay_ns
    start = rank.host
    rank.host += _add_noise_to_duration(_BATCH_LOADING_TIME_NS, noise, rng) + (
        delay_ns if cause == "data" else 0
    )
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    rank.add_slice("user_annotation", loader, start, rank.host, _MAIN_THREAD_ID)
    if cause in {"gc", "host"}:
        start = rank.host
        rank.host += delay_ns
        if cause == "gc":
            rank.add_slice("python_function", "Python GC", start, rank.host, _MAIN_THREAD_ID)
    start = rank.host
    slower = (
        1 + delay_ns / (3 * _KERNELS_PER_FORWARD_PASS * _FORWARD_KERNEL_DURATION_NS)
        if cause == "clocks"
        else 1.0
    )
    for part in range(_KERNELS_PER_FORWARD_PASS):
        longer = delay_ns if cause == "compute" and part == 0 else 0
        time = (
            round(_add_noise_to_duration(_FORWARD_KERNEL_DURATION_NS, noise, rng) * slower) + longer
        )
        rank.launch(f"void forward_{part}<float>()", time, _MAIN_THREAD_ID)
    rank.add_slice("cpu_op", "aten::forward", start, rank.host, _MAIN_THREAD_ID)
    start = rank.host
    for part in range(_KERNELS_PER_FORWARD_PASS):
        time = round(_add_noise_to_duration(2 * _FORWARD_KERNEL_DURATION_NS, noise, rng) * slower)
        done = rank.launch(f"void backward_{part}<float>()", time, _BACKWARD_THREAD_ID)
        if (part + 1) % (_KERNELS_PER_FORWARD_PASS // _GRADIENT_BUCKETS_PER_STEP) == 0:
            yield _GradientBucketTimes(done, rank.host)
            rank.host += _KERNEL_LAUNCH_CALL_DURATION_NS // 2
    rank.add_slice(
        "cpu_op", "autograd::engine::evaluate_function: B", start, rank.host, _BACKWARD_THREAD_ID
    )


def _add_all_reduce_slices(
    rank: _SimulatedRank, issued: int, sequence: int, span: tuple[int, int], ranks: int
) -> None:
    start, end = span
    rank.correlation += 1
    called = {"correlation": rank.correlation, "External id": rank.correlation}
    collective_args = {
        "Collective name": "allreduce",
        "dtype": "Float",
        "In msg nelems": _ELEMENTS_PER_GRADIENT_BUCKET,
        "Out msg nelems": _ELEMENTS_PER_GRADIENT_BUCKET,
        "Group size": ranks,
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Process Group Ranks": str(list(range(ranks))),
        "Seq": sequence,
    }
    rank.add_slice(
        "cuda_runtime",
        "cudaLaunchKernelExC",
        issued,
        issued + _KERNEL_LAUNCH_CALL_DURATION_NS // 2,
        102,
        **called,
    )
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    where = {"device": 0, "stream": _COMMUNICATION_STREAM_NUMBER, **called, **collective_args}
    rank.add_slice("kernel", name, start, end, _COMMUNICATION_STREAM_NUMBER, **where)


def _finish_step_with_optimizer(
    rank: _SimulatedRank, step: int, start: int, reduction_end: int
) -> None:
    """Simulates the end of a rank's step: the optimizer, then the host waits for the device."""
    rank.device = max(rank.device, reduction_end)
    begun = rank.host
    done = rank.launch(
        "void multi_tensor_apply_kernel<Adam>()", _FORWARD_KERNEL_DURATION_NS // 2, _MAIN_THREAD_ID
    )
    rank.add_slice("user_annotation", "Optimizer.step#Adam.step", begun, rank.host, _MAIN_THREAD_ID)
    rank.correlation += 1
    called = {"correlation": rank.correlation}
    rank.add_slice(
        "cuda_runtime", "cudaDeviceSynchronize", rank.host, done, _MAIN_THREAD_ID, **called
    )
    rank.host = done + 20 * _NS_PER_US
    rank.add_slice("user_annotation", f"ProfilerStep#{step}", start, rank.host, _MAIN_THREAD_ID)


def _trace_file_of_rank(
    rank: _SimulatedRank, rank_count: int, clock_offset: int, drift: float
) -> bytes:
    """Returns the JSON trace file that Kineto would write for a rank, on the rank's own clock."""

    def read_clock(time: int) -> int:
        return clock_offset + time + round(time * drift)

    base = SIMULATED_JOB_START_NS - 10**11
    events: list[dict[str, Any]] = []
    for event in rank.events:
        start = read_clock(event["start"]) + SIMULATED_JOB_START_NS - base
        pid = 0 if event["cat"] == "kernel" else 1000 + rank.number
        events.append(
            {
                "ph": "X",
                "cat": event["cat"],
                "name": event["name"],
                "pid": pid,
                "tid": event["tid"],
                "ts": start / _NS_PER_US,
                "dur": (read_clock(event["end"]) + SIMULATED_JOB_START_NS - base - start)
                / _NS_PER_US,
                "args": event["args"],
            }
        )
    body = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}],
        "distributedInfo": {"backend": "nccl", "rank": rank.number, "world_size": rank_count},
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": base,
        "traceEvents": events,
    }
    return json.dumps(body).encode()
