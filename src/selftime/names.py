"""What the names in a trace mean: the only module that matches categories, operators and kernels.

Categories changed twice since 2021 and differ by device; every one that Kineto ever wrote is here,
in lower case, with the name it has today and the kind of track it lies on.
"""

import re
from typing import Final

__all__ = [
    "ALLOCATION",
    "ANNOTATIONS",
    "CALLS",
    "COPIES",
    "DEVICE",
    "FRAMES",
    "OPERATORS",
    "OUT_OF_MEMORY",
    "TODAY",
    "TRACK_KIND",
    "is_backward_node",
    "is_collective_kernel",
    "is_data_loading",
    "is_optimizer_step",
    "is_recorder_operator",
    "step_number",
]

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
_PROFILER: Final = ("overhead", "trace")

TRACK_KIND: Final = {
    **dict.fromkeys((*OPERATORS, *ANNOTATIONS, *CALLS), "host"),
    **dict.fromkeys(FRAMES, "python"),
    **dict.fromkeys(DEVICE, "device"),
    **dict.fromkeys(_SYNCS, "device sync"),
    "gpu_user_annotation": "device annotation",
    **dict.fromkeys(_PROFILER, "profiler"),
}
"""The kind of track a category lies on, by its name today; categories not here lie on `other`."""

ALLOCATION: Final = "[memory]"
OUT_OF_MEMORY: Final = "[OutOfMemory]"

_STEP: Final = re.compile(r"ProfilerStep#(\d+)")
_DATA_LOADING: Final = re.compile(
    r"(?:\[pl\]\[profile\])?enumerate\(Data(?:Loader|Pipe)\)#"
    r"|\[pl\]\[(?:profile|module)\].*(?:train_dataloader|val_dataloader)_next"
    r"|\[pl\]\[profile\].*(?:get_train_batch|fetch_next)"
)
_OPTIMIZER_STEP: Final = re.compile(r"Optimizer\.step#")
_COLLECTIVE: Final = re.compile(
    r"^(?:void )?(?:nccl|rccl|hccl|oneccl|mscclpp|nvshmem)|nccl(?:Dev)?Kernel|mscclKernel"
    r"|cross_device_reduce|all_?reduce_kernel|deep_ep::",
    re.IGNORECASE,
)
_BACKWARD_NODE: Final = re.compile(r"autograd::engine::evaluate_function: ")
_RECORDER_OPERATORS: Final = frozenset(
    {
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
    }
)


def step_number(name: str) -> int | None:
    """The number of a profiler step's annotation; None for any other name.

    >>> step_number("ProfilerStep#12"), step_number("ProfilerStep*")
    (12, None)
    """
    found = _STEP.fullmatch(name)
    return int(found[1]) if found else None


def is_data_loading(name: str) -> bool:
    """Whether a host annotation is the main thread's wait for the next batch.

    >>> is_data_loading("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    True
    """
    return _DATA_LOADING.match(name) is not None


def is_optimizer_step(name: str) -> bool:
    """Whether a host annotation is an optimizer's step.

    >>> is_optimizer_step("Optimizer.step#AdamW.step")
    True
    """
    return _OPTIMIZER_STEP.match(name) is not None


def is_collective_kernel(name: str) -> bool:
    """Whether a kernel's name is that of a collective.

    >>> is_collective_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)")
    True
    """
    return _COLLECTIVE.search(name) is not None


def is_backward_node(name: str) -> bool:
    """Whether an operator is autograd's row around one node of the backward graph."""
    return _BACKWARD_NODE.match(name) is not None


def is_recorder_operator(name: str) -> bool:
    """Whether an operator is the recorder's own bookkeeping, which torch's tables leave out."""
    return name in _RECORDER_OPERATORS
