"""Classifies host slices, other than operators, by name: garbage collection, logging and others.

The names are those of operators, annotations, Python frames, and the recorder's own slices.
"""

import re
from typing import Final

from selftime.names.host_slices import is_collective_annotation

SELFTIME_WORK_SLICE: Final = "selftime: own work"
"""Name of the slices that show the work of `selftime run` and `watch` in the program's own thread.
"""
GARBAGE_COLLECTION_SLICE: Final = "Python GC"
"""Name of the slice of a garbage collection, by the option `record_python_gc_info`."""

_GARBAGE_COLLECTION_SLICES: Final = frozenset(
    {GARBAGE_COLLECTION_SLICE, "<built-in function collect>"}
)
"""Names of slices of garbage collection: the recorder's own (`record_python_gc_info`), and the
frame of `gc.collect()`.
"""

_COMPILATION_SLICE: Final = re.compile(
    r".*\(dynamo_timed\)|entire_frame_compile|Driver Compiler"
    r"|(?:.*/)?torch/_dynamo/convert_frame\.py\(\d+\): "
    r"|(?:.*/)?torch/_inductor/async_compile\.py\(\d+\): "
    r"|(?:.*/)?torch/_inductor/compile_fx\.py\(\d+\): \w*compile\w*$"
    r"|(?:.*/)?torch/_inductor/codecache\.py\(\d+\): load\w*$"
    r"|(?:.*/)?torch/_inductor/runtime/triton_heuristics\.py\(\d+\): "
    r"(?:_?precompile\w*|autotune_to_one_config|benchmark_all_configs|coordinate_descent_tuning)$"
    r"|(?:.*/)?torch/utils/cpp_extension\.py\(\d+\): (?:load|load_inline|_jit_compile)$"
    r"|(?:.*/)?torch/jit/_(?:script|trace)\.py\(\d+\): _?(?:script|trace)(?:_impl)?$"
    r"|(?:.*/)?triton/compiler/compiler\.py\(\d+\): compile$"
    r"|(?:.*/)?triton/runtime/jit\.py\(\d+\): _do_compile$"
    r"|(?:.*/)?triton/runtime/autotuner\.py\(\d+\): (?:_bench|benchmark)$"
)
"""Matches slices that compile code: by Dynamo, Inductor, Triton, TorchScript, or for C++
extensions.
"""

_CHECKPOINT_FRAME: Final = re.compile(
    r"(?:.*/)?torch/serialization\.py\(\d+\): (?:save|load)$"
    r"|(?:.*/)?torch/distributed/checkpoint/|(?:.*/)?safetensors/\w+\.py\(\d+\): (?:save|load)\w*$"
)
_LOGGING_FRAME: Final = re.compile(
    r"(?:.*/)?logging/__init__\.py\(\d+\): (?!isEnabledFor|getEffectiveLevel)"
    r"|(?:.*/)?torch/_tensor_str\.py\(\d+\): "
    r"|(?:.*/)?(?:tqdm(?!/_monitor)|wandb|mlflow|tensorboardX|torch/utils/tensorboard)/.*"
    r"\.py\(\d+\): (?!(?:get_lock|acquire|release|__enter__|__exit__)$)"
    r"|<built-in function print>"
)
_NEXT_BATCH_FRAME: Final = re.compile(r"(?:.*/)?torch/utils/data/dataloader\.py\(\d+\): __next__$")
_COLLECTIVE_SLICE: Final = re.compile(
    r"record_param_comms|_?c10d_functional::"
    r"|(?:.*/)?torch/distributed/distributed_c10d\.py\(\d+\): _?(?:(?:monitored_)?barrier"
    r"|all_(?:reduce|gather|to_all)\w*|(?:broadcast|reduce|gather|scatter)\w*"
    r"|(?:batch_)?i?(?:send|recv)\w*)$"
)
_OPTIMIZER_ANNOTATION: Final = re.compile(r"Optimizer\.(?:step|zero_grad)#")
_RECORDER_OVERHEADS: Final = frozenset(
    {"Buffer Flush", "Instrumentation", "Resource", "Activity Buffer Request", SELFTIME_WORK_SLICE}
)
"""Names of overheads that the recorder itself causes (CUpti_ActivityOverheadKind), and of
selftime's own work.
"""
_KERNEL_LOADING_SLICE: Final = re.compile(
    r"Lazy Function Loading|Runtime Triggered Module Loading"
    r"|(?:cu|hip)(?:Module|Library)Load|(?:cu|hip)ModuleGetFunction"
)


def _name_with_forward_slashes(slice_name: str) -> str:
    """Returns a name with the path separators of Windows replaced by `/`."""
    return slice_name.replace("\\", "/")


def is_garbage_collection(slice_name: str) -> bool:
    """Returns whether a host slice is Python's cyclic garbage collection.

    >>> is_garbage_collection("Python GC"), is_garbage_collection("train.py(3): collect")
    (True, False)
    """
    return slice_name in _GARBAGE_COLLECTION_SLICES


def is_compilation(slice_name: str) -> bool:
    """Returns whether a host slice compiles a graph, a kernel or an extension.

    >>> is_compilation("_compile.compile_inner (dynamo_timed)")
    True
    >>> is_compilation("Torch-Compiled Region: 0/0"), is_compilation("TorchDynamo Cache Lookup")
    (False, False)
    """
    return _COMPILATION_SLICE.match(_name_with_forward_slashes(slice_name)) is not None


def is_kernel_loading(slice_name: str) -> bool:
    """Returns whether a host slice loads the code of kernels, as happens at their first launch.

    >>> is_kernel_loading("Lazy Function Loading"), is_kernel_loading("hipModuleLoadData")
    (True, True)
    """
    return _KERNEL_LOADING_SLICE.match(slice_name) is not None


def is_profiler_overhead(slice_name: str) -> bool:
    """Returns whether a slice of the category `overhead` is the recorder's own work.

    >>> is_profiler_overhead("Buffer Flush"), is_profiler_overhead("Command Buffer Full")
    (True, False)
    """
    return slice_name in _RECORDER_OVERHEADS


def is_checkpoint_frame(slice_name: str) -> bool:
    """Returns whether a Python frame saves or loads a checkpoint.

    >>> is_checkpoint_frame("torch/serialization.py(943): save")
    True
    """
    return _CHECKPOINT_FRAME.match(_name_with_forward_slashes(slice_name)) is not None


def is_logging_frame(slice_name: str) -> bool:
    """Returns whether a Python frame prints, logs or shows progress.

    Checking whether a message would be logged does not count: libraries do so all the time. Neither
    do locks, and the thread that watches progress bars, which sleeps nearly all the time.

    >>> frames = "<built-in function print>", "tqdm/std.py(1160): __iter__"
    >>> tuple(is_logging_frame(frame) for frame in frames)
    (True, True)
    >>> is_logging_frame("logging/__init__.py(1720): getEffectiveLevel")
    False
    >>> frames = "tqdm/_monitor.py(69): run", "tqdm/std.py(766): get_lock"
    >>> any(is_logging_frame(frame) for frame in frames)
    False
    """
    return _LOGGING_FRAME.match(_name_with_forward_slashes(slice_name)) is not None


def is_next_batch_frame(slice_name: str) -> bool:
    """Returns whether a Python frame is the main thread's wait for the next batch.

    >>> is_next_batch_frame("torch/utils/data/dataloader.py(733): __next__")
    True
    """
    return _NEXT_BATCH_FRAME.match(_name_with_forward_slashes(slice_name)) is not None


def is_collective_call(slice_name: str) -> bool:
    """Returns whether a host slice issues a collective or waits for one.

    >>> is_collective_call("gloo:all_reduce"), is_collective_call("_c10d_functional::wait_tensor")
    (True, True)
    """
    return (
        is_collective_annotation(slice_name)
        or _COLLECTIVE_SLICE.match(_name_with_forward_slashes(slice_name)) is not None
    )


def is_optimizer_annotation(slice_name: str) -> bool:
    """Returns whether an annotation is an optimizer's `step` or `zero_grad`.

    >>> annotations = "Optimizer.zero_grad#SGD.zero_grad", "Optimizer.step#SGD.step"
    >>> tuple(is_optimizer_annotation(annotation) for annotation in annotations)
    (True, True)
    """
    return _OPTIMIZER_ANNOTATION.match(slice_name) is not None
