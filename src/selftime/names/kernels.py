"""What the names of kernels mean."""

import re
from typing import Final

__all__ = ["is_collective_kernel"]

_COLLECTIVE: Final = re.compile(
    r"^(?:void )?(?:nccl|rccl|hccl|oneccl|mscclpp|nvshmem)|nccl(?:Dev)?Kernel|mscclKernel"
    r"|cross_device_reduce|all_?reduce_kernel|deep_ep::",
    re.IGNORECASE,
)


def is_collective_kernel(name: str) -> bool:
    """Whether a kernel's name is that of a collective.

    >>> is_collective_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)")
    True
    """
    return _COLLECTIVE.search(name) is not None
