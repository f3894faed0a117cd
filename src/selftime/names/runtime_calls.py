"""Classifies calls of a device's runtime and driver, such as `cudaLaunchKernel`, by name."""

import re
from typing import Final, NamedTuple

_CUPTI_COPY_DIRECTION: Final = re.compile(r"(?<![A-Z])([HDA]to[HDA]|PtoP)(?![A-Za-z])")
"""Matches copy directions, such as HtoD, as CUPTI and Kineto write them (CUpti_ActivityMemcpyKind).
"""
_COPY_LETTER_BY_MEMORY_WORD: Final = {
    "Host": "H",
    "H": "H",
    "M": "H",
    "Device": "D",
    "D": "D",
    "Peer": "P",
    "P": "P",
}
"""Maps each word for host, device or peer memory in a copy's name to its letter, such as H."""
_OTHER_COPY_DIRECTION: Final = re.compile(
    r"(Host|Device|Peer)To(Host|Device|Peer)(?![a-z])"
    r"|(?<![A-Za-z0-9])([HMDP])2([HMDP])(?![A-Za-z0-9])"
)
"""Matches copy directions as HIP (`hipMemcpyKind`), Level Zero (M is host memory) and others write
them.
"""
_SOURCE_AND_TARGET_MEMORY: Final = re.compile(r"\((.+?) -> (.+?)\)")
"""Matches the source and target memory in a copy's name, such as (Pageable -> Device)."""
_HOST_MEMORY_KINDS: Final = ("pageable", "pinned", "managed")
"""Kinds of host memory that the name of a copy can contain."""
_GRAPH_LAUNCH_CALL: Final = re.compile(r"(?:cuda|cu|hip|musa)GraphLaunch")
_LAUNCH_CALL: Final = re.compile(
    r"(?:cuda|cu|hip|musa)(?:Ext)?(?:Module)?(?:Drv)?Launch(?:Cooperative)?Kernel"
    r"|hip(?:Hcc|Ext)?ModuleLaunch(?:Cooperative)?Kernel|hipExtLaunch(?:MultiKernel|Kernel)"
    r"|(?:cuda|cu|hip|musa)Memcpy\w*Async|urEnqueue(?:Cooperative)?KernelLaunch"
    rf"|{_GRAPH_LAUNCH_CALL.pattern}"
)
_OVERLAPPING_LAUNCH_CALL: Final = re.compile(
    rf"{_GRAPH_LAUNCH_CALL.pattern}|cudaLaunchKernelEx|cuLaunchKernelEx|hip(?:Drv)?LaunchKernelEx"
    r"|hipExt(?:Module)?LaunchKernel"
)
"""Matches calls whose work may overlap earlier work of its stream: launches with attributes, graph
launches.
"""
_CAPTURE_BEGIN_CALL: Final = re.compile(r"(?:cuda|hip|cu)(?:Thread)?StreamBeginCapture")
_CAPTURE_END_CALL: Final = re.compile(r"(?:cuda|hip|cu)StreamEndCapture")
_GRAPH_INSTANTIATION_CALL: Final = re.compile(r"(?:cuda|hip|cu)GraphInstantiate")
_RUNTIME_CALL_SUFFIX: Final = r"(?:_v\d+)?(?:_spt|_ptsz|_ptds)?"
"""Pattern of the suffixes of runtime calls: versions, and variants for per-thread default streams.
"""
_BLOCKING_CALLS_BY_TARGET: Final = {
    "stream": r"(?:cuda|hip|musa|cu)StreamSynchronize|aclrtSynchronizeStream(?:WithTimeout)?"
    r"|(?:ur|pi)QueueFinish|zeCommandQueueSynchronize|zeCommandListHostSynchronize",
    "device": r"(?:cuda|hip|musa)DeviceSynchronize|cudaThreadSynchronize|(?:cu|hip)CtxSynchronize"
    r"|aclrtSynchronizeDevice(?:WithTimeout)?|zeDeviceSynchronize",
    "event": r"(?:cuda|hip|musa|cu)EventSynchronize|aclrtSynchronizeEvent(?:WithTimeout)?"
    r"|(?:urEvent|piEvents)Wait|ze(?:Event|Fence)HostSynchronize",
    "copy": r"(?:cuda|hip|musa)Memcpy(?:[23]D)?(?:WithStream|(?:To|From)(?:Symbol|Array))?"
    r"|(?:cu|hip)Memcpy(?:HtoD|DtoH|HtoA|AtoH|DtoD|[23]D(?:Unaligned)?)?|aclrtMemcpy(?:2d)?",
}
"""Maps what the host waits for to a pattern of the runtime calls that block until it is done."""
_BLOCKING_PATTERN_BY_TARGET: Final = {
    kind: re.compile(f"(?:{calls}){_RUNTIME_CALL_SUFFIX}")
    for kind, calls in _BLOCKING_CALLS_BY_TARGET.items()
}
_MEMORY_ALLOCATION_CALL: Final = re.compile(
    r"(?:(?:cuda|hip|musa)(?:Ext)?(?:Host)?(?:Malloc|Free)(?:Host|Managed|Pitch|Array|3D|3DArray)?"
    r"|(?:cuda|hip)HostAlloc|(?:cuda|hip)(?:Malloc|Free)(?:FromPool)?Async|hipExtMallocWithFlags"
    r"|(?:cu|hip)Mem(?:Alloc|Free|Create|Map|Unmap|Release|SetAccess|Address(?:Reserve|Free))"
    r"(?:Host|Managed|Pitch|Async)?|cuMemHostAlloc"
    r"|aclrt(?:Malloc|Free)(?:Host|Align32|Physical)?|zeMem(?:Alloc(?:Device|Host|Shared)|Free)"
    r"|urUSM(?:(?:Device|Host|Shared)Alloc|Free))"
    rf"{_RUNTIME_CALL_SUFFIX}"
)
_MEMCPY_CALL: Final = re.compile(r"(?:cuda|cu|hip|musa|aclrt)Memcpy\w*")
_STREAM_WAIT_CALL: Final = re.compile(
    r"(?:cuda|hip|musa|cu)StreamWaitEvent|aclrtStreamWaitEvent|urEnqueueEventsWait(?:WithBarrier)?"
)


class MemcpyKind(NamedTuple):
    """A copy's direction and kind of host memory, such as pinned; None where its name lacks it."""

    direction: str | None
    """The direction, such as HtoD, DtoH, DtoD, HtoH or PtoP (between devices); A is a device array;
    None if unknown.
    """
    host_memory: str | None
    """The kind of host memory of a copy from or to the host: pageable, pinned or managed; None if
    unknown.
    """


def memcpy_kind(copy_name: str) -> MemcpyKind:
    """Returns a copy's direction and its kind of host memory, such as pinned, from its name.

    >>> memcpy_kind("Memcpy HtoD (Pageable -> Device)")
    MemcpyKind(direction='HtoD', host_memory='pageable')
    >>> memcpy_kind("Memcpy DtoH (Device -> Host)"), memcpy_kind("CopyDeviceToHost").direction
    (MemcpyKind(direction='DtoH', host_memory=None), 'DtoH')
    >>> memcpy_kind("zeCommandListAppendMemoryCopy(M2D)").direction, memcpy_kind("Memcpy").direction
    ('HtoD', None)
    """
    direction = _copy_direction(copy_name)
    ends = _SOURCE_AND_TARGET_MEMORY.search(copy_name)
    if ends is None or direction is None or "H" not in direction:
        return MemcpyKind(direction, None)
    on_host = ends[1] if direction.startswith("H") else ends[2]
    memory = on_host.lower()
    return MemcpyKind(direction, memory if memory in _HOST_MEMORY_KINDS else None)


def _copy_direction(copy_name: str) -> str | None:
    """Returns the direction in a copy's name, such as HtoD; None if the name does not say."""
    found = _CUPTI_COPY_DIRECTION.search(copy_name)
    if found:
        return found[1]
    words = _OTHER_COPY_DIRECTION.search(copy_name)
    if words is None:
        return None
    source, target = (_COPY_LETTER_BY_MEMORY_WORD[word] for word in words.groups() if word)
    return f"{source}to{target}"


def is_launch(call_name: str) -> bool:
    """Returns whether a runtime or driver call launches work on a device; memsets do not count.

    >>> is_launch("cudaLaunchKernel"), is_launch("cuLaunchKernelEx"), is_launch("cudaMemsetAsync")
    (True, True, False)
    >>> is_launch("hipExtModuleLaunchKernel"), is_launch("cudaLaunchHostFunc_v10000")
    (True, False)
    """
    return _LAUNCH_CALL.match(call_name) is not None


def is_graph_launch(call_name: str) -> bool:
    """Returns whether a call replays a CUDA graph: one launch of many kernels.

    >>> is_graph_launch("cudaGraphLaunch_v10000"), is_graph_launch("cudaLaunchKernel")
    (True, False)
    """
    return _GRAPH_LAUNCH_CALL.match(call_name) is not None


def may_overlap_previous_work(call_name: str) -> bool:
    """Returns whether a launch may start its work before earlier work of its stream has ended.

    Launches with attributes may (programmatic dependent launch), and so may the branches of graphs.

    >>> [may_overlap_previous_work(name) for name in ("cudaLaunchKernelExC", "cudaLaunchKernel")]
    [True, False]
    """
    return _OVERLAPPING_LAUNCH_CALL.match(call_name) is not None


def is_capture_begin(call_name: str) -> bool:
    """Returns whether a runtime call begins the capture of a CUDA graph."""
    return _CAPTURE_BEGIN_CALL.match(call_name) is not None


def is_capture_end(call_name: str) -> bool:
    """Returns whether a runtime call ends the capture of a CUDA graph."""
    return _CAPTURE_END_CALL.match(call_name) is not None


def is_graph_instantiation(call_name: str) -> bool:
    """Returns whether a runtime call makes a CUDA graph ready to be launched.

    >>> is_graph_instantiation("hipGraphInstantiateWithFlags")
    True
    """
    return _GRAPH_INSTANTIATION_CALL.match(call_name) is not None


def blocking_call_target(call_name: str) -> str | None:
    """Returns what a blocking call waits for: stream, device, event or copy; else None.

    The calls are those that CUDA documents to return only when the work is done (CUDA Runtime API,
    "API synchronization behavior"), and their equivalents on other devices. A query returns at
    once; an asynchronous copy may block, but its name does not show it.

    >>> blocking_call_target("cudaStreamSynchronize"), blocking_call_target("cuMemcpyDtoH_v2")
    ('stream', 'copy')
    >>> blocking_call_target("cudaEventQuery"), blocking_call_target("cudaMemcpyAsync")
    (None, None)
    """
    return next(
        (kind for kind, calls in _BLOCKING_PATTERN_BY_TARGET.items() if calls.fullmatch(call_name)),
        None,
    )


def is_blocking_call(call_name: str) -> bool:
    """Returns whether a runtime or driver call blocks the host until device work is done.

    >>> is_blocking_call("cudaDeviceSynchronize"), is_blocking_call("cudaEventQuery")
    (True, False)
    """
    return blocking_call_target(call_name) is not None


def is_device_allocation(call_name: str) -> bool:
    """Returns whether a call allocates or frees device memory, or pinned host memory.

    >>> is_device_allocation("cudaMalloc"), is_device_allocation("cuMemCreate")
    (True, True)
    """
    return _MEMORY_ALLOCATION_CALL.fullmatch(call_name) is not None


def may_block_host(call_name: str) -> bool:
    """Returns whether a call may, but need not, block the host until device work is done.

    Beside calls that always block, these are asynchronous copies, which block if host memory is not
    pinned, and frees of memory, which wait for all work that may use it.

    >>> [may_block_host(name) for name in ("cudaMemcpyAsync", "cudaFree", "cudaLaunchKernel")]
    [True, True, False]
    """
    released = is_device_allocation(call_name) and "Free" in call_name
    return released or is_blocking_call(call_name) or _MEMCPY_CALL.match(call_name) is not None


def is_stream_wait(call_name: str) -> bool:
    """Returns whether a call makes a stream wait for an event, without blocking the host.

    >>> is_stream_wait("hipStreamWaitEvent"), is_stream_wait("cudaEventSynchronize")
    (True, False)
    """
    return _STREAM_WAIT_CALL.match(call_name) is not None
