"""Identify collectives by name, and count their bytes for bandwidths."""

import re
from typing import Final

_ENDS_TOGETHER: Final = frozenset({"allreduce", "allgather", "reducescatter", "alltoall"})
_PER_RING: Final = {"allgather": 1, "reducescatter": 1, "alltoall": 1, "allreduce": 2}
_WORDS: Final = (
    ("allreduce", r"all_?reduce"),
    ("allgather", r"all_?gather"),
    ("reducescatter", r"reduce_?scatter"),
    ("alltoall", r"all_?to_?all"),
    ("sendrecv", r"send_?recv"),
    ("broadcast", r"broadcast"),
    ("barrier", r"barrier"),
    ("scatter", r"scatter"),
    ("gather", r"gather"),
    ("reduce", r"reduce"),
    ("recv", r"recv|receive"),
    ("send", r"send"),
)
"""Longer words first, so that an all-reduce does not match as a reduce."""
_AXES: Final = {
    "TP": frozenset({"tp", "tensor"}),
    "CP": frozenset({"cp", "sp", "context", "sequence"}),
    "PP": frozenset({"pp", "pipe", "pipeline"}),
    "EP": frozenset({"ep", "expert", "experts"}),
    "DP": frozenset({"dp", "ddp", "data", "fsdp", "hsdp", "shard", "replicate"}),
}
"""Words in the names of process groups, by parallel axis (tensor, data, ...)."""
_COLLECTIVE: Final = re.compile(
    "|".join(f"(?P<{name}>{pattern})" for name, pattern in _WORDS), re.IGNORECASE
)


def collective_of(name: str) -> str | None:
    """Returns the collective that a kernel, annotation or record names; else None.

    >>> collective_of("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)")
    'allreduce'
    >>> collective_of("gloo:all_reduce"), collective_of("_reduce_scatter_base")
    ('allreduce', 'reducescatter')
    >>> collective_of("ncclKernel_SendRecv"), collective_of("void gemm<float>")
    ('sendrecv', None)
    """
    match = _COLLECTIVE.search(name)
    return None if match is None else match.lastgroup


def ends_together(collective: str) -> bool:
    """Whether no rank can finish before all ranks have begun, so that all end together.

    A broadcast's sender may be done before its last receiver.

    >>> ends_together("allreduce"), ends_together("broadcast")
    (True, False)
    """
    return collective in _ENDS_TOGETHER


def bandwidth_bytes(collective: str, bytes_in: int | None, bytes_out: int | None) -> int | None:
    """Returns the bytes that a collective's bandwidth is based on, as in NCCL's tests.

    For gathers that is the output, which holds all data; for scatters and reductions the input.

    >>> bandwidth_bytes("allgather", 10, 80), bandwidth_bytes("reducescatter", 80, 10)
    (80, 80)
    """
    if collective in {"allgather", "gather"}:
        return bytes_out if bytes_out is not None else bytes_in
    return bytes_in if bytes_in is not None else bytes_out


def bus_factor(collective: str, ranks: int) -> float:
    """Returns the ratio of bus bandwidth to algorithm bandwidth: link crossings per byte.

    It is 2 (n - 1) / n for an all-reduce, (n - 1) / n for all-gather, reduce-scatter and
    all-to-all, else 1 (NCCL tests, doc/PERFORMANCE.md).

    >>> bus_factor("allreduce", 8), bus_factor("allgather", 4), bus_factor("broadcast", 4)
    (1.75, 0.75, 1.0)
    """
    times = _PER_RING.get(collective)
    return 1.0 if times is None or ranks < 1 else times * (ranks - 1) / ranks


def axes_of_group(description: str) -> str | None:
    """Returns the parallel axes of a process group, from its description; None if unknown.

    TP is tensor, CP context or sequence, PP pipeline, EP expert and DP data parallel.

    >>> axes_of_group("mesh_dp_shard"), axes_of_group("TENSOR_AND_DATA_PARALLEL_GROUP")
    ('DP', 'TP+DP')
    >>> axes_of_group("default_pg"), axes_of_group("undefined")
    ('all', None)
    """
    words = set(re.split(r"[^a-z]+", description.lower()))
    found = [axis for axis, meant in _AXES.items() if words & meant]
    if found:
        return "+".join(found)
    return "all" if {"default", "world"} & words else None
