"""Classifies operators and annotations that communicate between ranks, by name."""

import re
from typing import Final

_COMMUNICATION_OPERATOR: Final = re.compile(r"c10d::_?(?!barrier|monitored_barrier|recv|send)[a-z]")
_REDUCER_OPERATOR: Final = re.compile(r"torch(?:::|\.)distributed(?:::|\.)(?:ddp\.)?reducer::")
_SYNCHRONISED_NORM_OPERATOR: Final = re.compile(r"aten::batch_norm_gather_stats_with_counts$")
_UNUSED_PARAMETER_SEARCH_FRAME: Final = re.compile(
    r"(?:^|/)torch/nn/parallel/distributed\.py\(\d+\): _find_tensors$"
)
_REDUCER_PREPARATION_FRAME: Final = re.compile(r"<built-in method prepare_for_backward of ")
_BYTES_PER_ELEMENT_BY_DTYPE: Final = {
    **dict.fromkeys(("Double", "double", "Long", "long int", "long"), 8),
    **dict.fromkeys(("Float", "float", "Int", "int"), 4),
    **dict.fromkeys(("Half", "c10::Half", "BFloat16", "c10::BFloat16", "Short", "short int"), 2),
    **dict.fromkeys(("Byte", "unsigned char", "Char", "signed char", "Bool", "bool"), 1),
    **dict.fromkeys(("Float8_e4m3fn", "Float8_e5m2"), 1),
}
"""Maps a dtype, as collectives and operator inputs name it, to its bytes per element."""


def is_communication_operator(operator: str) -> bool:
    """Returns whether an operator is a process group's collective, other than a barrier.

    >>> is_communication_operator("c10d::allreduce_"), is_communication_operator("c10d::barrier")
    (True, False)
    """
    return _COMMUNICATION_OPERATOR.match(operator) is not None


def is_ddp_forward(annotation: str) -> bool:
    """Returns whether an annotation is the forward pass of a DistributedDataParallel module.

    >>> is_ddp_forward("DistributedDataParallel.forward")
    True
    """
    return annotation == "DistributedDataParallel.forward"


def is_reducer_operator(operator: str) -> bool:
    """Returns whether an operator copies gradients into or out of DDP's communication buckets.

    >>> is_reducer_operator("torch::distributed::reducer::mul_out")
    True
    >>> is_reducer_operator("torch.distributed.ddp.reducer::copy_bucket_to_grad")
    True
    """
    return _REDUCER_OPERATOR.match(operator) is not None


def is_synchronised_norm(operator: str) -> bool:
    """Returns whether an operator combines batch-norm statistics from all ranks.

    >>> is_synchronised_norm("aten::batch_norm_gather_stats_with_counts")
    True
    """
    return _SYNCHRONISED_NORM_OPERATOR.match(operator) is not None


def finds_unused_parameters(frame_name: str) -> bool:
    """Returns whether a Python frame searches for parameters unused in the forward pass.

    >>> finds_unused_parameters("torch/nn/parallel/distributed.py(242): _find_tensors")
    True
    """
    return _UNUSED_PARAMETER_SEARCH_FRAME.search(frame_name) is not None


def prepares_reducer(frame_name: str) -> bool:
    """Returns whether a Python frame prepares the gradient reducer for a backward pass.

    >>> prepares_reducer("<built-in method prepare_for_backward of Reducer object at 0x7f>")
    True
    """
    return _REDUCER_PREPARATION_FRAME.match(frame_name) is not None


def is_barrier(operator: str) -> bool:
    """Returns whether an operator makes ranks wait for each other without sending data.

    >>> is_barrier("c10d::barrier"), is_barrier("c10d::allreduce_")
    (True, False)
    """
    return operator in {"c10d::barrier", "c10d::monitored_barrier_"}


def element_bytes(dtype: str) -> int | None:
    """Returns a dtype's bytes per element, by its C++ or PyTorch name; None if unknown.

    >>> element_bytes("BFloat16"), element_bytes("float"), element_bytes("Mystery")
    (2, 4, None)
    """
    return _BYTES_PER_ELEMENT_BY_DTYPE.get(dtype)
