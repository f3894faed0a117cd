"""Categories: every one that Kineto ever wrote, the name it has today, and where it lies.

They changed twice since 2021 and differ by device.
"""

from typing import Final

TODAY: Final = {
    "operator": "cpu_op",
    "runtime": "cuda_runtime",
    "python": "python_function",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
}
"""Lower-case categories of 2021 and the names they have today."""

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
"""Host calls of a device's runtime or driver."""

COPIES: Final = ("gpu_memcpy", "gpu_memset")
DEVICE: Final = ("kernel", *COPIES, "concurrent_kernel", "mtia_ccp_events", "hpu_op")
"""Work that a device does."""

_SYNCS: Final = ("cuda_sync", "cuda_event", "xpu_sync")
RECORDER_SPAN: Final = "trace"
"""The recorder's own slice, from when it began to record until it stopped."""
_PROFILER: Final = ("overhead", RECORDER_SPAN)

TRACK_KIND: Final = {
    **dict.fromkeys((*OPERATORS, *ANNOTATIONS, *CALLS), "host"),
    **dict.fromkeys(FRAMES, "python"),
    **dict.fromkeys(DEVICE, "device"),
    **dict.fromkeys(_SYNCS, "device sync"),
    "gpu_user_annotation": "device annotation",
    **dict.fromkeys(_PROFILER, "profiler"),
}
"""The kind of track a category lies on, by its name today; categories not here lie on `other`."""

ASYNCHRONOUS: Final = "async "
"""Stands before the category of a span that no thread runs, such as a request: it is no work."""

ALLOCATION: Final = "[memory]"
OUT_OF_MEMORY: Final = "[OutOfMemory]"
