"""Lists the event categories that Kineto has ever written, with current name and track kind.

The categories changed twice since 2021, and differ by device.
"""

from typing import Final

CURRENT_CATEGORY_BY_OLD_NAME: Final = {
    "operator": "cpu_op",
    "runtime": "cuda_runtime",
    "python": "python_function",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
}
"""Maps the lower-case category names of 2021 to the current names."""

OPERATOR_CATEGORIES: Final = ("cpu_op",)
"""Categories of operators."""
ANNOTATION_CATEGORIES: Final = ("user_annotation",)
"""Categories of annotations on the host."""
FRAME_CATEGORIES: Final = ("python_function",)
"""Categories of Python frames."""
RUNTIME_CALL_CATEGORIES: Final = (
    "cuda_runtime",
    "cuda_driver",
    "xpu_runtime",
    "xpu_driver",
    "mtia_runtime",
    "glow_runtime",
    "privateuse1_runtime",
    "privateuse1_driver",
)
"""Categories of host calls of a device's runtime or driver."""

COPY_CATEGORIES: Final = ("gpu_memcpy", "gpu_memset")
"""Categories of copies and memsets on a device."""
DEVICE_WORK_CATEGORIES: Final = (
    "kernel",
    *COPY_CATEGORIES,
    "concurrent_kernel",
    "mtia_ccp_events",
    "hpu_op",
)
"""Categories of work on a device."""

_SYNC_CATEGORIES: Final = ("cuda_sync", "cuda_event", "xpu_sync")
"""Categories of records about synchronisation with a device."""
RECORDER_SPAN_CATEGORY: Final = "trace"
"""Category of the recorder's own slice, which lasts as long as the recording."""
_PROFILER_CATEGORIES: Final = ("overhead", RECORDER_SPAN_CATEGORY)
"""Categories of the recorder's own slices."""

TRACK_KIND_BY_CATEGORY: Final = {
    **dict.fromkeys(
        (*OPERATOR_CATEGORIES, *ANNOTATION_CATEGORIES, *RUNTIME_CALL_CATEGORIES), "host"
    ),
    **dict.fromkeys(FRAME_CATEGORIES, "python"),
    **dict.fromkeys(DEVICE_WORK_CATEGORIES, "device"),
    **dict.fromkeys(_SYNC_CATEGORIES, "device sync"),
    "gpu_user_annotation": "device annotation",
    **dict.fromkeys(_PROFILER_CATEGORIES, "profiler"),
}
"""Maps each current category to the kind of its tracks; all other categories have the kind `other`.
"""

ASYNCHRONOUS_CATEGORY_PREFIX: Final = "async "
"""Prefix of the category of an asynchronous span, such as a request, which no thread executes."""

ALLOCATION_EVENT: Final = "[memory]"
"""Name of the event of a memory allocation or release."""
OUT_OF_MEMORY_EVENT: Final = "[OutOfMemory]"
"""Name of the event of an allocation that failed for lack of memory."""
