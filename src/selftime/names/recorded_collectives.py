"""What the names of collectives in the Flight Recorder's dumps mean.

The names are those of torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp and of the other backends,
such as `nccl:all_reduce`, `nccl:send 1->2` and `nccl:recv 2<-1`.
"""

import re
from typing import Final, NamedTuple

_PROFILING_NAME: Final = re.compile(
    r"(?:(\w+):)?([\w.\-]+)(?: (\d{1,9})(->|<-)(\d{1,9}))?", re.ASCII
)
_RANK_AT_END: Final = re.compile(r"(\d{1,9})$", re.ASCII)


class RecordedName(NamedTuple):
    """The parts of a recorded call's name; the ranks of a send or a receive are of its group."""

    backend: str
    operation: str
    source: int | None = None
    destination: int | None = None


def parse_recorded_name(name: str) -> RecordedName:
    """Returns the parts of a recorded call's name; a name of another form is an operation.

    >>> parse_recorded_name("nccl:all_reduce")
    RecordedName(backend='nccl', operation='all_reduce', source=None, destination=None)
    >>> parse_recorded_name("nccl:recv 3<-0")
    RecordedName(backend='nccl', operation='recv', source=0, destination=3)
    """
    found = _PROFILING_NAME.fullmatch(name)
    if found is None:
        return RecordedName("", name)
    backend, operation, left, arrow, right = found.groups()
    if arrow is None:
        return RecordedName(backend or "", operation)
    ends = (int(left), int(right)) if arrow == "->" else (int(right), int(left))
    return RecordedName(backend or "", operation, *ends)


def rank_at_end_of_dump_name(file_name: str) -> int | None:
    """Returns the rank at the end of a dump's file name, as PyTorch writes it; None without one.

    >>> [rank_at_end_of_dump_name(name) for name in ("nccl_trace_rank_12", "dump3.json", "dump")]
    [12, 3, None]
    """
    found = _RANK_AT_END.search(file_name.partition(".")[0])
    return None if found is None else int(found[1])


SEND, RECEIVE = "send", "recv"
_COALESCED: Final = "coalesced"
_ROOT_READS: Final = frozenset({"scatter"})
_ROOT_WRITES: Final = frozenset({"gather"})
_UNEVEN_BOTH_WAYS: Final = frozenset(
    {"all_to_all", "all_to_all_single", "all_to_all_v_single", "alltoall", "alltoall_base"}
)
_UNEVEN_INPUTS: Final = frozenset({"all_gather_v"})
_UNEVEN_OUTPUTS: Final = frozenset({"reduce_scatter_v"})
_GATHERING: Final = frozenset(
    {"all_gather", "_all_gather_base", "all_gather_single", "all_gather_into_tensor_coalesced"}
)
_SCATTERING: Final = frozenset(
    {
        *("reduce_scatter", "_reduce_scatter_base", "reduce_scatter_single"),
        "reduce_scatter_tensor_coalesced",
    }
)
_IN_PLACE: Final = frozenset({"all_reduce", "allreduce_coalesced"})
_SYNCHRONISING_PARTS: Final = ("all_reduce", "allreduce", "barrier", "all_gather", "all_to_all")
"""Parts of names of collectives that end on no rank before every rank has entered them."""


def is_end_of_coalesced_calls(operation: str) -> bool:
    """Returns whether an entry is the end of calls that were made together, and none itself.

    >>> [is_end_of_coalesced_calls(name) for name in ("coalesced", "ALLGATHER_coalesced")]
    [True, True]
    >>> is_end_of_coalesced_calls("allreduce_coalesced")
    False
    """
    kind, _, last = operation.rpartition("_")
    return last == _COALESCED and (not kind or kind.isupper())


def needs_every_rank(operation: str) -> bool:
    """Returns whether a collective ends on no rank before every rank has entered it.

    >>> [needs_every_rank(name) for name in ("all_reduce_barrier", "_all_gather_base", "broadcast")]
    [True, True, False]
    """
    return "reduce_scatter" in operation or any(p in operation for p in _SYNCHRONISING_PARTS)


def has_equal_inputs(operation: str) -> bool:
    """Returns whether the inputs of a collective have the same size on all ranks."""
    return operation not in _ROOT_READS | _UNEVEN_BOTH_WAYS | _UNEVEN_INPUTS


def has_equal_outputs(operation: str) -> bool:
    """Returns whether the outputs of a collective have the same size on all ranks."""
    return operation not in _ROOT_WRITES | _UNEVEN_BOTH_WAYS | _UNEVEN_OUTPUTS


def exchanges_unevenly(operation: str) -> bool:
    """Returns whether a collective's sizes agree in sum over all ranks only."""
    return operation in _UNEVEN_BOTH_WAYS


def output_elements_per_input(operation: str, group_size: int) -> tuple[int, int] | None:
    """Returns the ratio of output to input elements that a collective has; None if any.

    >>> output_elements_per_input("all_gather", 4), output_elements_per_input("reduce_scatter", 4)
    ((4, 1), (1, 4))
    """
    if operation in _GATHERING:
        return group_size, 1
    if operation in _SCATTERING:
        return 1, group_size
    return (1, 1) if operation in _IN_PLACE else None
