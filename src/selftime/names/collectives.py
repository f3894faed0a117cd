"""Which collective a name means, what its bytes are, and what makes of them a bandwidth."""

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
"""The longer word first: an all-reduce is no reduce."""
_AXES: Final = {
    "TP": frozenset({"tp", "tensor"}),
    "CP": frozenset({"cp", "sp", "context", "sequence"}),
    "PP": frozenset({"pp", "pipe", "pipeline"}),
    "EP": frozenset({"ep", "expert", "experts"}),
    "DP": frozenset({"dp", "ddp", "data", "fsdp", "hsdp", "shard", "replicate"}),
}
"""The words by which programs call the axes along which they divide work among ranks."""
_COLLECTIVE: Final = re.compile(
    "|".join(f"(?P<{name}>{pattern})" for name, pattern in _WORDS), re.IGNORECASE
)


def collective_of(name: str) -> str | None:
    """The collective that a kernel, an annotation or a record's own word names; None if none.

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
    """Whether every rank has to hear of every other before it is done, so that all end at once.

    A broadcast's sender may be done before its last receiver.

    >>> ends_together("allreduce"), ends_together("broadcast")
    (True, False)
    """
    return collective in _ENDS_TOGETHER


def whole_size(collective: str, bytes_in: int | None, bytes_out: int | None) -> int | None:
    """The bytes that a collective's bandwidth is counted by, as NCCL's own tests count them.

    Of what is gathered the output, which is all of it; of what is scattered or reduced the input.

    >>> whole_size("allgather", 10, 80), whole_size("reducescatter", 80, 10)
    (80, 80)
    """
    if collective in {"allgather", "gather"}:
        return bytes_out if bytes_out is not None else bytes_in
    return bytes_in if bytes_in is not None else bytes_out


def bus_share(collective: str, ranks: int) -> float:
    """Bus bandwidth over algorithm bandwidth: how often each byte crosses a link of a ring.

    2 (n - 1) / n of an all-reduce, (n - 1) / n of what gathers, scatters or exchanges, else 1
    (NCCL tests, doc/PERFORMANCE.md).

    >>> bus_share("allreduce", 8), bus_share("allgather", 4), bus_share("broadcast", 4)
    (1.75, 0.75, 1.0)
    """
    times = _PER_RING.get(collective)
    return 1.0 if times is None or ranks < 1 else times * (ranks - 1) / ranks


def axes_of_group(description: str) -> str | None:
    """Along which axes of a job a process group lies, by what the program calls it; None if untold.

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
