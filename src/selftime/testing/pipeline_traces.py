"""Writes the traces that the ranks of a pipeline leave, from the times of their operations.

Each operation is one kernel, on a stream of its kind. The host launches all kernels of a step at
its begin, in order of start, as a program does whose device has much to do, and waits for the
device at the step's end.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

OperationKind: TypeAlias = Literal["compute", "send", "recv", "collective"]

START_NS: Final = 1_760_000_000_000_000_000
"""When the first step of a written job begins, in ns since 1970."""
_CALL_US: Final = 4.0
"""Duration of a call of the host, in us."""
_COMPUTE_STREAM: Final = 7
_FIRST_COMMUNICATION_STREAM: Final = 20
_THREAD: Final = 100
_ELEMENTS: Final = 6_553_600
"""Number of elements of each message and collective."""


@dataclass(frozen=True, slots=True)
class PipelineOperation:
    """What a rank of a pipeline does in a step; times in us from the begin of the job."""

    kind: OperationKind
    name: str
    """Name of the computation, or PyTorch's name of the collective."""
    start: float
    end: float
    group: tuple[int, ...] = ()
    """The ranks that take part in communication."""
    axis: str = ""
    """What the group is for, such as `pp`."""
    other: int = -1
    """The rank that a message goes to or comes from."""
    lane: str = ""
    """Communication of one lane runs on one stream."""


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """One step of a rank: when it begins in us, and its operations in order of start."""

    begin: float
    operations: tuple[PipelineOperation, ...]
    host_delay: float = 0.0
    """Time in us that the host sleeps before it launches anything."""


def trace_of_pipeline_rank(rank: int, size: int, steps: Iterable[PipelineStep]) -> dict[str, Any]:
    """Returns the trace of a rank of a job of `size` ranks, as Kineto writes it."""
    writer = _RankWriter(rank)
    for number, step in enumerate(steps):
        writer.add_step(number, step)
    return {
        "schemaVersion": 1,
        "baseTimeNanoseconds": START_NS,
        "distributedInfo": {"rank": rank, "world_size": size, "backend": "nccl"},
        "traceEvents": writer.events,
    }


class _RankWriter:
    """The thread of a rank that launches kernels; times in us from the begin of the job."""

    def __init__(self, rank: int) -> None:
        self.events: list[dict[str, Any]] = []
        self._rank = rank
        self._now = 0.0
        self._correlation = 0
        self._sequence: dict[str, int] = {}
        self._lanes: dict[str, int] = {}

    def add_step(self, number: int, step: PipelineStep) -> None:
        """Adds the calls, kernels and annotation of one step."""
        self._now = step.begin + step.host_delay
        last, awaited = step.begin, None
        for operation in step.operations:
            last = max(last, operation.end)
            if operation.kind == "compute":
                if awaited is not None:
                    self._call("cudaStreamWaitEvent")
                start = operation.start if awaited is None else max(operation.start, awaited)
                name = f"void {operation.name.replace('-', '_')}<bf16>()"
                self._launch(name, start, operation.end, _COMPUTE_STREAM, {})
                awaited = None
                continue
            self._call("cudaEventRecord")
            self._call("cudaStreamWaitEvent")
            self._launch_communication(operation)
            self._call("cudaEventRecord")
            if operation.kind != "send":
                awaited = operation.end
        self._synchronise(last)
        self._add("user_annotation", f"ProfilerStep#{number}", step.begin, self._now, _THREAD)

    def _launch_communication(self, operation: PipelineOperation) -> None:
        told: dict[str, Any] = {
            "Collective name": operation.name,
            "dtype": "BFloat16",
            "In msg nelems": _ELEMENTS,
            "Out msg nelems": _ELEMENTS,
            "Group size": len(operation.group),
            "Process Group Name": f"{operation.axis}_{operation.group[0]}",
            "Process Group Description": f"{operation.axis}_group",
            "Process Group Ranks": str(list(operation.group)),
        }
        if operation.kind == "collective":
            told["Seq"] = self._sequence[operation.axis] = (
                self._sequence.get(operation.axis, -1) + 1
            )
            kernel = f"ncclDevKernel_{_KERNELS[operation.name]}"
        else:
            told["Dst Rank" if operation.kind == "send" else "Src Rank"] = operation.other
            kernel = "ncclDevKernel_SendRecv"
        lane = self._lanes.setdefault(operation.lane or operation.axis, len(self._lanes))
        stream = _FIRST_COMMUNICATION_STREAM + lane
        self._launch(kernel, operation.start, operation.end, stream, told)

    def _call(self, name: str) -> int:
        self._correlation += 1
        begun, self._now = self._now, self._now + _CALL_US
        told = {"correlation": self._correlation}
        self._add("cuda_runtime", name, begun, self._now, _THREAD, **told)
        return self._correlation

    def _launch(
        self, name: str, start: float, end: float, stream: int, args: dict[str, Any]
    ) -> None:
        number = self._call("cudaLaunchKernel")
        told = {"device": 0, "stream": stream, "correlation": number, **args}
        self._add("kernel", name, max(start, self._now), max(end, self._now), stream, **told)

    def _synchronise(self, end: float) -> None:
        self._correlation += 1
        begun, self._now = self._now, max(self._now, end) + _CALL_US
        told = {"correlation": self._correlation}
        self._add("cuda_runtime", "cudaDeviceSynchronize", begun, self._now, _THREAD, **told)

    def _add(
        self, category: str, name: str, start: float, end: float, tid: int, **args: Any
    ) -> None:
        pid = 0 if category == "kernel" else 1000 + self._rank
        times = {"ts": round(start, 3), "dur": round(end - start, 3)}
        about = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid}
        self.events.append({**about, **times, "args": args})


_KERNELS: Final = {
    "_reduce_scatter_base": "ReduceScatter_Sum_bf16_RING_LL",
    "_allgather_base": "AllGather_RING_LL",
    "allreduce": "AllReduce_Sum_f32_RING_LL",
}
"""The kernel of NCCL for each collective of PyTorch that a pipeline uses."""
