"""Identifies collectives by name, and gives the bytes and factors used for their bandwidths."""

import re
from typing import Final

_SYNCHRONIZING_COLLECTIVES: Final = frozenset(
    {"allreduce", "allgather", "reducescatter", "alltoall"}
)
"""Collectives in which every rank needs data from all other ranks, so that all ranks end together.
"""
_COLLECTIVES_OF_UNEQUAL_SIZE: Final = frozenset({"alltoall", "exchange", "gather", "scatter"})
"""Collectives in which ranks may send and receive different numbers of elements."""
_RING_PASSES_BY_COLLECTIVE: Final = {
    "allgather": 1,
    "reducescatter": 1,
    "alltoall": 1,
    "allreduce": 2,
}
"""Maps a collective to how often its data passes around the ring of ranks."""
_COLLECTIVE_PATTERNS: Final = (
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
"""Each kind of collective, with the pattern of its names; longer names come first."""
_WORDS_OF_PARALLEL_AXIS: Final = {
    "TP": frozenset({"tp", "tensor"}),
    "CP": frozenset({"cp", "sp", "context", "sequence"}),
    "PP": frozenset({"pp", "pipe", "pipeline"}),
    "EP": frozenset({"ep", "expert", "experts"}),
    "DP": frozenset({"dp", "ddp", "data", "fsdp", "hsdp", "shard", "replicate"}),
}
"""Maps a parallel axis (tensor, data, ...) to words in the names of its process groups."""
_COLLECTIVE_NAME: Final = re.compile(
    "|".join(f"(?P<{name}>{pattern})" for name, pattern in _COLLECTIVE_PATTERNS), re.IGNORECASE
)


def collective_of(event_name: str) -> str | None:
    """Returns the kind of collective that an event's name contains; None if it contains none.

    >>> collective_of("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)")
    'allreduce'
    >>> collective_of("gloo:all_reduce"), collective_of("_reduce_scatter_base")
    ('allreduce', 'reducescatter')
    >>> collective_of("ncclKernel_SendRecv"), collective_of("void gemm<float>")
    ('sendrecv', None)
    """
    match = _COLLECTIVE_NAME.search(event_name)
    return None if match is None else match.lastgroup


def all_ranks_end_together(collective: str) -> bool:
    """Returns whether no rank can finish a collective before every rank has begun it.

    A broadcast's sender may be done before its last receiver.

    >>> all_ranks_end_together("allreduce"), all_ranks_end_together("broadcast")
    (True, False)
    """
    return collective in _SYNCHRONIZING_COLLECTIVES


def have_ranks_equal_sizes(collective: str) -> bool:
    """Returns whether a collective has the same size on each of its ranks.

    Tokens for experts, for example, are shared out unequally by an all-to-all.

    >>> have_ranks_equal_sizes("allreduce"), have_ranks_equal_sizes("alltoall")
    (True, False)
    """
    return collective not in _COLLECTIVES_OF_UNEQUAL_SIZE


def bandwidth_bytes(collective: str, bytes_in: int | None, bytes_out: int | None) -> int | None:
    """Returns the bytes for a collective's bandwidth, as nccl-tests counts them; None if unknown.

    For gathers that is the output, which holds all data; for scatters and reductions the input.

    >>> bandwidth_bytes("allgather", 10, 80), bandwidth_bytes("reducescatter", 80, 10)
    (80, 80)
    """
    if collective in {"allgather", "gather"}:
        return bytes_out if bytes_out is not None else bytes_in
    return bytes_in if bytes_in is not None else bytes_out


def bus_bandwidth_factor(collective: str, ranks: int) -> float:
    """Returns the ratio of a collective's bus bandwidth to its algorithm bandwidth.

    It counts link crossings per byte: 2 (n - 1) / n for an all-reduce, (n - 1) / n for all-gather,
    reduce-scatter and all-to-all, else 1 (NCCL tests, doc/PERFORMANCE.md).

    >>> [bus_bandwidth_factor(name, 4) for name in ("allreduce", "allgather", "broadcast")]
    [1.5, 0.75, 1.0]
    """
    times = _RING_PASSES_BY_COLLECTIVE.get(collective)
    return 1.0 if times is None or ranks < 1 else times * (ranks - 1) / ranks


def parallel_axes_of_group(description: str) -> str | None:
    """Returns a process group's parallel axes, such as `TP+DP`, from its description, or None.

    TP is tensor, CP context or sequence, PP pipeline, EP expert and DP data parallel.

    >>> names = ("mesh_dp_shard", "TENSOR_AND_DATA_PARALLEL_GROUP")
    >>> [parallel_axes_of_group(name) for name in names]
    ['DP', 'TP+DP']
    >>> parallel_axes_of_group("default_pg"), parallel_axes_of_group("undefined")
    ('all', None)
    """
    words = set(re.split(r"[^a-z]+", description.lower()))
    found = [axis for axis, meant in _WORDS_OF_PARALLEL_AXIS.items() if words & meant]
    if found:
        return "+".join(found)
    return "all" if {"default", "world"} & words else None
