"""Identifies kernels that exchange data between devices, and the collective that each performs.

The names are those of NCCL, RCCL, HCCL, oneCCL, MSCCL, MSCCL++ and NVSHMEM; of PyTorch's symmetric
memory (torch/csrc/distributed/c10d/symm_mem); of the all-reduces of vLLM, SGLang, TensorRT-LLM,
FlashInfer and AITER; of the user buffers of Transformer Engine; and of the exchanges between
experts of DeepEP, MORI and TensorRT-LLM.
"""

import re
from typing import Final

from selftime.names.collectives import collective_of

EXCHANGE: Final = "exchange"
"""The kind of a one-sided exchange: a rank may be done before the others have begun."""

_LIBRARY: Final = (
    r"^(?:void )?(?:nccl|rccl|hccl|hcom_|xccl|ccl_|oneccl|mscclpp|nvshmem|rocshmem)"
    r"|nccl(?:Sym\w*?)?(?:Dev)?Kernel|mscclKernel|c10d::symmetric_memory::|c10d::nvshmem"
)
"""Matches the kernels of a library, or a part of one, that does nothing but exchange data."""
_NAMED_COLLECTIVE: Final = (
    r"(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all)(?:_\w*)?_?kernel"
    r"|all_?reduce_(?:fusion|prototype)"
)
"""Matches kernels of any origin that are named by their collective."""
_BETWEEN_EXPERTS: Final = (
    r"deep_ep::(?!layout)|(?<![a-z])Ep(?:Dispatch|Combine)\w*Kernel|exchangeSplitAndOffset"
    r"|(?<![A-Za-z])allToAllV|moe_?(?:A2A|AllToAll)(?:Dispatch|Combine|Prepare|Kernel)\w*"
)
"""Matches kernels that send tokens to experts on other devices, or their results back."""
_KINDS_OF_NAMES: Final = (
    (EXCHANGE, _BETWEEN_EXPERTS),
    ("allreduce", r"cross_device_reduce|quickreduce::"),
    ("reducescatter", r"userbuffers_\w*_sum_\w*_rs(?![a-z])|reduce_scatter_cross_device"),
    ("allgather", r"userbuffers_\w*_ag(?![a-z])"),
    ("allreduce", r"userbuffers_\w*_sum_"),
    ("send", r"userbuffers_pushsend\w*|(?<![a-z])put_signal_kernel"),
    ("recv", r"userbuffers_(?:pushrecv|pullrecv)\w*|(?<![a-z])wait_signal_kernel"),
)
"""Each kind of exchange, with the names of kernels that do not tell it by a word of their own."""
_KIND_OF_NAME: Final = tuple(
    (kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _KINDS_OF_NAMES
)
_KERNEL: Final = re.compile(
    "|".join((_LIBRARY, _NAMED_COLLECTIVE, *(pattern for _, pattern in _KINDS_OF_NAMES))),
    re.IGNORECASE,
)
_WITHIN_DEVICE: Final = re.compile(r"(?:warp|block|thread|quad)_?(?:all_?reduce)", re.IGNORECASE)
"""Matches reductions within a warp or a block, which no other device takes part in."""


def is_collective_kernel(kernel_name: str) -> bool:
    """Returns whether a kernel's name is that of an exchange between devices.

    >>> is_collective_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)")
    True
    >>> is_collective_kernel("void deep_ep::layout::get_dispatch_layout<256, 32, 8>()")
    False
    """
    found = _KERNEL.search(kernel_name)
    return found is not None and _WITHIN_DEVICE.search(kernel_name) is None


def collective_of_kernel(kernel_name: str) -> str | None:
    """Returns the kind of collective that a kernel performs; None if its name does not tell.

    >>> collective_of_kernel("void vllm::cross_device_reduce_2stage<__nv_bfloat16, 4>()")
    'allreduce'
    >>> collective_of_kernel("void deep_ep::intranode::dispatch<8, 768, 8192>()")
    'exchange'
    >>> collective_of_kernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)")
    'sendrecv'
    """
    return next(
        (kind for kind, pattern in _KIND_OF_NAME if pattern.search(kernel_name)),
        collective_of(kernel_name),
    )
