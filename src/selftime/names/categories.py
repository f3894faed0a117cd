"""Event categories: all that Kineto ever wrote, their current names, and their kinds of track.

They changed twice since 2021, and differ by device.
"""

from typing import Final

CURRENT_CATEGORY: Final = {
    "operator": "cpu_op",
    "runtime": "cuda_runtime",
    "python": "python_function",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
}
"""Current category names, by the lower-case names of 2021."""

OPERATORS: Final = ("cpu_op",)
ANNOTATIONS: Final = ("user_annotation",)
FRAMES: Final = ("python_function",)
CALLS: Final = (
    "cuda_runtime",
    "cuda_driver",
    "xpu_runtime",
    "xpu_driver",
    "mtia_runtime",
    "glow_runtime",
    "privateuse1_runtime",
    "privateuse1_driver",
)
"""Categories of calls of a device's runtime or driver, on the host."""

COPIES: Final = ("gpu_memcpy", "gpu_memset")
DEVICE: Final = ("kernel", *COPIES, "concurrent_kernel", "mtia_ccp_events", "hpu_op")
"""Categories of work on a device."""

_SYNCS: Final = ("cuda_sync", "cuda_event", "xpu_sync")
RECORDER_SPAN: Final = "trace"
"""The category of the recorder's own slice, which lasts as long as the recording."""
_PROFILER: Final = ("overhead", RECORDER_SPAN)

TRACK_KIND: Final = {
    **dict.fromkeys((*OPERATORS, *ANNOTATIONS, *CALLS), "host"),
    **dict.fromkeys(FRAMES, "python"),
    **dict.fromkeys(DEVICE, "device"),
    **dict.fromkeys(_SYNCS, "device sync"),
    "gpu_user_annotation": "device annotation",
    **dict.fromkeys(_PROFILER, "profiler"),
}
"""The kind of track by current category name; categories not listed are on `other` tracks."""

ASYNCHRONOUS: Final = "async "
"""Prefix of the category of an asynchronous span, such as a request, which no thread executes."""

ALLOCATION: Final = "[memory]"
OUT_OF_MEMORY: Final = "[OutOfMemory]"
