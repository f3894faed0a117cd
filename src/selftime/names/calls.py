"""Classify runtime and driver calls of a device by name."""

import re
from typing import Final, NamedTuple

_DIRECTION: Final = re.compile(r"(?<![A-Z])([HDA]to[HDA]|PtoP)(?![A-Za-z])")
"""Copy directions as CUPTI and Kineto write them (CUpti_ActivityMemcpyKind)."""
_PARTS: Final = {"Host": "H", "H": "H", "M": "H", "Device": "D", "D": "D", "Peer": "P", "P": "P"}
_WORDS: Final = re.compile(
    r"(Host|Device|Peer)To(Host|Device|Peer)(?![a-z])"
    r"|(?<![A-Za-z0-9])([HMDP])2([HMDP])(?![A-Za-z0-9])"
)
"""Copy directions as HIP (`hipMemcpyKind`), Level Zero (M is host memory) and others write them."""
_ENDS: Final = re.compile(r"\((.+?) -> (.+?)\)")
_HOST_MEMORY: Final = ("pageable", "pinned", "managed")
_GRAPH_LAUNCH: Final = re.compile(r"(?:cuda|cu|hip|musa)GraphLaunch")
_LAUNCH: Final = re.compile(
    r"(?:cuda|cu|hip|musa)(?:Ext)?(?:Module)?(?:Drv)?Launch(?:Cooperative)?Kernel"
    r"|hip(?:Hcc|Ext)?ModuleLaunch(?:Cooperative)?Kernel|hipExtLaunch(?:MultiKernel|Kernel)"
    r"|(?:cuda|cu|hip|musa)Memcpy\w*Async|urEnqueue(?:Cooperative)?KernelLaunch"
    rf"|{_GRAPH_LAUNCH.pattern}"
)
_EARLY_LAUNCH: Final = re.compile(
    rf"{_GRAPH_LAUNCH.pattern}|cudaLaunchKernelEx|cuLaunchKernelEx|hip(?:Drv)?LaunchKernelEx"
    r"|hipExt(?:Module)?LaunchKernel"
)
"""Launches with attributes (cudaLaunchAttributeProgrammaticStreamSerialization,
hipExtAnyOrderLaunch) and graphs, whose branches share a stream."""
_CAPTURE_BEGIN: Final = re.compile(r"(?:cuda|hip|cu)(?:Thread)?StreamBeginCapture")
_CAPTURE_END: Final = re.compile(r"(?:cuda|hip|cu)StreamEndCapture")
_SUFFIX: Final = r"(?:_v\d+)?(?:_spt|_ptsz|_ptds)?"
"""Suffixes of calls: versions, and variants for per-thread default streams."""
_WAITS: Final = {
    "stream": r"(?:cuda|hip|musa|cu)StreamSynchronize|aclrtSynchronizeStream(?:WithTimeout)?"
    r"|(?:ur|pi)QueueFinish|zeCommandQueueSynchronize|zeCommandListHostSynchronize",
    "device": r"(?:cuda|hip|musa)DeviceSynchronize|cudaThreadSynchronize|(?:cu|hip)CtxSynchronize"
    r"|aclrtSynchronizeDevice(?:WithTimeout)?|zeDeviceSynchronize",
    "event": r"(?:cuda|hip|musa|cu)EventSynchronize|aclrtSynchronizeEvent(?:WithTimeout)?"
    r"|(?:urEvent|piEvents)Wait|ze(?:Event|Fence)HostSynchronize",
    "copy": r"(?:cuda|hip|musa)Memcpy(?:[23]D)?(?:WithStream|(?:To|From)(?:Symbol|Array))?"
    r"|(?:cu|hip)Memcpy(?:HtoD|DtoH|HtoA|AtoH|DtoD|[23]D(?:Unaligned)?)?|aclrtMemcpy(?:2d)?",
}
"""Blocking calls by what the host waits for; without asynchronous copies and queries."""
_WAITING: Final = {kind: re.compile(f"(?:{calls}){_SUFFIX}") for kind, calls in _WAITS.items()}
_ALLOCATION: Final = re.compile(
    r"(?:(?:cuda|hip|musa)(?:Ext)?(?:Host)?(?:Malloc|Free)(?:Host|Managed|Pitch|Array|3D|3DArray)?"
    r"|(?:cuda|hip)HostAlloc|(?:cuda|hip)(?:Malloc|Free)(?:FromPool)?Async|hipExtMallocWithFlags"
    r"|(?:cu|hip)Mem(?:Alloc|Free|Create|Map|Unmap|Release|SetAccess|Address(?:Reserve|Free))"
    r"(?:Host|Managed|Pitch|Async)?|cuMemHostAlloc"
    r"|aclrt(?:Malloc|Free)(?:Host|Align32|Physical)?|zeMem(?:Alloc(?:Device|Host|Shared)|Free)"
    r"|urUSM(?:(?:Device|Host|Shared)Alloc|Free))"
    rf"{_SUFFIX}"
)
_COPY: Final = re.compile(r"(?:cuda|cu|hip|musa|aclrt)Memcpy\w*")
_STREAM_WAIT: Final = re.compile(
    r"(?:cuda|hip|musa|cu)StreamWaitEvent|aclrtStreamWaitEvent|urEnqueueEventsWait(?:WithBarrier)?"
)


class Copy(NamedTuple):
    """A copy's direction and host memory, from its name; None where the name does not say."""

    direction: str | None
    """Such as HtoD, DtoH, DtoD, PtoP (between devices), HtoH; A is an array of a device."""
    host_memory: str | None
    """For copies from or to the host: pageable, pinned or managed."""


def copy_of(name: str) -> Copy:
    """Returns a copy's direction and host memory, from its name.

    >>> copy_of("Memcpy HtoD (Pageable -> Device)")
    Copy(direction='HtoD', host_memory='pageable')
    >>> copy_of("Memcpy DtoH (Device -> Host)"), copy_of("CopyDeviceToHost").direction
    (Copy(direction='DtoH', host_memory=None), 'DtoH')
    >>> copy_of("zeCommandListAppendMemoryCopy(M2D)").direction, copy_of("Memcpy").direction
    ('HtoD', None)
    """
    direction = _direction(name)
    ends = _ENDS.search(name)
    if ends is None or direction is None or "H" not in direction:
        return Copy(direction, None)
    on_host = ends[1] if direction.startswith("H") else ends[2]
    memory = on_host.lower()
    return Copy(direction, memory if memory in _HOST_MEMORY else None)


def _direction(name: str) -> str | None:
    found = _DIRECTION.search(name)
    if found:
        return found[1]
    words = _WORDS.search(name)
    if words is None:
        return None
    source, target = (_PARTS[word] for word in words.groups() if word)
    return f"{source}to{target}"


def is_launch(name: str) -> bool:
    """Whether a runtime or driver call launches work on a device; memsets do not count.

    >>> is_launch("cudaLaunchKernel"), is_launch("cuLaunchKernelEx"), is_launch("cudaMemsetAsync")
    (True, True, False)
    >>> is_launch("hipExtModuleLaunchKernel"), is_launch("cudaLaunchHostFunc_v10000")
    (True, False)
    """
    return _LAUNCH.match(name) is not None


def is_graph_launch(name: str) -> bool:
    """Whether a call replays a graph: one launch of many kernels.

    >>> is_graph_launch("cudaGraphLaunch_v10000"), is_graph_launch("cudaLaunchKernel")
    (True, False)
    """
    return _GRAPH_LAUNCH.match(name) is not None


def may_overlap(name: str) -> bool:
    """Whether a launch may start its work before earlier work of its stream has ended.

    Launches with attributes may (programmatic dependent launch), and so may the branches of graphs.

    >>> may_overlap("cudaLaunchKernelExC"), may_overlap("cudaLaunchKernel")
    (True, False)
    """
    return _EARLY_LAUNCH.match(name) is not None


def is_capture_begin(name: str) -> bool:
    """Whether a runtime call begins the capture of a graph; captured launches run nothing."""
    return _CAPTURE_BEGIN.match(name) is not None


def is_capture_end(name: str) -> bool:
    """Whether a runtime call ends the capture of a graph."""
    return _CAPTURE_END.match(name) is not None


def waits_for(name: str) -> str | None:
    """Returns what a blocking call waits for: stream, device, event or copy; else None.

    The calls are those that CUDA documents to return only when the work is done (CUDA Runtime API,
    "API synchronization behavior"), and their equivalents on other devices. A query returns at
    once; an asynchronous copy may block, but its name does not show it.

    >>> waits_for("cudaStreamSynchronize"), waits_for("cuMemcpyDtoH_v2")
    ('stream', 'copy')
    >>> waits_for("cudaEventQuery"), waits_for("cudaMemcpyAsync")
    (None, None)
    """
    return next((kind for kind, calls in _WAITING.items() if calls.fullmatch(name)), None)


def is_blocking_call(name: str) -> bool:
    """Whether a runtime or driver call blocks the host until device work is done.

    >>> is_blocking_call("cudaDeviceSynchronize"), is_blocking_call("cudaEventQuery")
    (True, False)
    """
    return waits_for(name) is not None


def is_device_allocation(name: str) -> bool:
    """Whether a call allocates or frees device memory, or pinned host memory.

    >>> is_device_allocation("cudaMalloc"), is_device_allocation("cuMemCreate")
    (True, True)
    """
    return _ALLOCATION.fullmatch(name) is not None


def may_wait(name: str) -> bool:
    """Whether a call may block the host until device work is done, even if it does not always.

    Beside calls that always block, these are asynchronous copies, which block if host memory is not
    pinned, and frees of memory, which wait for all work that may use it.

    >>> may_wait("cudaMemcpyAsync"), may_wait("cudaFree"), may_wait("cudaLaunchKernel")
    (True, True, False)
    """
    released = is_device_allocation(name) and "Free" in name
    return released or is_blocking_call(name) or _COPY.match(name) is not None


def is_stream_wait(name: str) -> bool:
    """Whether a call makes a stream wait for an event, without blocking the host.

    >>> is_stream_wait("hipStreamWaitEvent"), is_stream_wait("cudaEventSynchronize")
    (True, False)
    """
    return _STREAM_WAIT.match(name) is not None
