"""What the names of calls of a device's runtime and driver mean."""

import re
from typing import Final

__all__ = ["is_capture_begin", "is_capture_end", "is_launch"]

_LAUNCH: Final = re.compile(
    r"(?:cuda|hip)(?:Ext)?(?:Module)?Launch(?:Cooperative)?Kernel|cuLaunchKernel|cu(?:da)?GraphLaunch"
    r"|hip(?:Ext)?ModuleLaunchKernel|hipGraphLaunch|(?:cuda|hip)Memcpy(?:\dD)?Async|urEnqueueKernelLaunch"
)
_CAPTURE_BEGIN: Final = re.compile(r"(?:cuda|hip|cu)(?:Thread)?StreamBeginCapture")
_CAPTURE_END: Final = re.compile(r"(?:cuda|hip|cu)StreamEndCapture")


def is_launch(name: str) -> bool:
    """Whether a runtime or driver call puts work on a device; fills may be empty and do not count.

    >>> is_launch("cudaLaunchKernel"), is_launch("cuLaunchKernelEx"), is_launch("cudaMemsetAsync")
    (True, True, False)
    """
    return _LAUNCH.match(name) is not None


def is_capture_begin(name: str) -> bool:
    """Whether a runtime call begins to capture a graph: launches then run nothing."""
    return _CAPTURE_BEGIN.match(name) is not None


def is_capture_end(name: str) -> bool:
    """Whether a runtime call ends the capture of a graph."""
    return _CAPTURE_END.match(name) is not None
