"""Classify operators and annotations that communicate between ranks."""

import re
from typing import Final

_EXCHANGE: Final = re.compile(r"c10d::_?(?!barrier|monitored_barrier|recv|send)[a-z]")
_REDUCER: Final = re.compile(r"torch(?:::|\.)distributed(?:::|\.)(?:ddp\.)?reducer::")
_SYNCHRONISED_NORM: Final = re.compile(r"aten::batch_norm_gather_stats_with_counts$")
_UNUSED: Final = re.compile(r"(?:^|/)torch/nn/parallel/distributed\.py\(\d+\): _find_tensors$")
_PREPARE: Final = re.compile(r"<built-in method prepare_for_backward of ")
_BYTES: Final = {
    **dict.fromkeys(("Double", "double", "Long", "long int", "long"), 8),
    **dict.fromkeys(("Float", "float", "Int", "int"), 4),
    **dict.fromkeys(("Half", "c10::Half", "BFloat16", "c10::BFloat16", "Short", "short int"), 2),
    **dict.fromkeys(("Byte", "unsigned char", "Char", "signed char", "Bool", "bool"), 1),
    **dict.fromkeys(("Float8_e4m3fn", "Float8_e5m2"), 1),
}


def is_communication(name: str) -> bool:
    """Whether an operator sends data through a process group: a collective, not a barrier.

    >>> is_communication("c10d::allreduce_"), is_communication("c10d::barrier")
    (True, False)
    """
    return _EXCHANGE.match(name) is not None


def is_replica_forward(name: str) -> bool:
    """Whether an annotation is the forward pass of a DistributedDataParallel module.

    >>> is_replica_forward("DistributedDataParallel.forward")
    True
    """
    return name == "DistributedDataParallel.forward"


def is_reducer_operator(name: str) -> bool:
    """Whether an operator copies gradients into or out of communication buckets.

    >>> is_reducer_operator("torch::distributed::reducer::mul_out")
    True
    >>> is_reducer_operator("torch.distributed.ddp.reducer::copy_bucket_to_grad")
    True
    """
    return _REDUCER.match(name) is not None


def is_synchronised_norm(name: str) -> bool:
    """Whether an operator combines batch-norm statistics from all ranks.

    >>> is_synchronised_norm("aten::batch_norm_gather_stats_with_counts")
    True
    """
    return _SYNCHRONISED_NORM.match(name) is not None


def finds_unused_parameters(frame: str) -> bool:
    """Whether a Python frame searches for parameters unused in the forward pass.

    >>> finds_unused_parameters("torch/nn/parallel/distributed.py(242): _find_tensors")
    True
    """
    return _UNUSED.search(frame) is not None


def prepares_reducer(frame: str) -> bool:
    """Whether a Python frame prepares the gradient reducer for a backward pass.

    >>> prepares_reducer("<built-in method prepare_for_backward of Reducer object at 0x7f>")
    True
    """
    return _PREPARE.match(frame) is not None


def is_barrier(name: str) -> bool:
    """Whether an operator makes ranks wait for each other without exchanging data.

    >>> is_barrier("c10d::barrier"), is_barrier("c10d::allreduce_")
    (True, False)
    """
    return name in {"c10d::barrier", "c10d::monitored_barrier_"}


def element_bytes(dtype: str) -> int | None:
    """Returns the bytes per element of a collective's or input's dtype; None if unknown.

    >>> element_bytes("BFloat16"), element_bytes("float"), element_bytes("Mystery")
    (2, 4, None)
    """
    return _BYTES.get(dtype)
