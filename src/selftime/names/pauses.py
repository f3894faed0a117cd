"""Classify host slices beside operators: garbage collection, compilation, logging and so on.

The names are those of operators, annotations, Python frames, and the recorder's own slices.
"""

import re
from typing import Final

from selftime.names.host import is_collective_annotation

_GARBAGE: Final = frozenset({"Python GC", "<built-in function collect>"})
"""The recorder's slice (`record_python_gc_info`), and a program's own `gc.collect()`."""

_COMPILATION: Final = re.compile(
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
"""Compilation by Dynamo, Inductor, Triton, TorchScript and for C++ extensions; without the guards
and wrappers that run at every call of compiled code."""

_CHECKPOINT: Final = re.compile(
    r"(?:.*/)?torch/serialization\.py\(\d+\): (?:save|load)$"
    r"|(?:.*/)?torch/distributed/checkpoint/|(?:.*/)?safetensors/\w+\.py\(\d+\): (?:save|load)\w*$"
)
_LOGGING: Final = re.compile(
    r"(?:.*/)?logging/__init__\.py\(\d+\): (?!isEnabledFor|getEffectiveLevel)"
    r"|(?:.*/)?torch/_tensor_str\.py\(\d+\): "
    r"|(?:.*/)?(?:tqdm|wandb|mlflow|tensorboardX|torch/utils/tensorboard)/.*\.py\(\d+\): "
    r"|<built-in function print>"
)
_LOADING_FRAME: Final = re.compile(r"(?:.*/)?torch/utils/data/dataloader\.py\(\d+\): __next__$")
_COLLECTIVE: Final = re.compile(
    r"record_param_comms|_?c10d_functional::"
    r"|(?:.*/)?torch/distributed/distributed_c10d\.py\(\d+\): _?(?:(?:monitored_)?barrier"
    r"|all_(?:reduce|gather|to_all)\w*|(?:broadcast|reduce|gather|scatter)\w*"
    r"|(?:batch_)?i?(?:send|recv)\w*)$"
)
_OPTIMIZER: Final = re.compile(r"Optimizer\.(?:step|zero_grad)#")
_OVERHEAD: Final = frozenset(
    {"Buffer Flush", "Instrumentation", "Resource", "Activity Buffer Request"}
)
"""CUPTI's overheads (CUpti_ActivityOverheadKind) that are caused by the recorder itself."""
_KERNEL_LOADING: Final = re.compile(
    r"Lazy Function Loading|Runtime Triggered Module Loading"
    r"|(?:cu|hip)(?:Module|Library)Load|(?:cu|hip)ModuleGetFunction"
)


def _with_slashes(name: str) -> str:
    """Returns a name with Windows path separators replaced by `/`."""
    return name.replace("\\", "/")


def is_garbage_collection(name: str) -> bool:
    """Whether a host slice is Python's cyclic garbage collection.

    >>> is_garbage_collection("Python GC"), is_garbage_collection("train.py(3): collect")
    (True, False)
    """
    return name in _GARBAGE


def is_compilation(name: str) -> bool:
    """Whether a host slice compiles a graph, a kernel or an extension.

    >>> is_compilation("_compile.compile_inner (dynamo_timed)")
    True
    >>> is_compilation("Torch-Compiled Region: 0/0"), is_compilation("TorchDynamo Cache Lookup")
    (False, False)
    """
    return _COMPILATION.match(_with_slashes(name)) is not None


def is_kernel_loading(name: str) -> bool:
    """Whether a host slice loads the code of kernels, which happens at their first run.

    >>> is_kernel_loading("Lazy Function Loading"), is_kernel_loading("hipModuleLoadData")
    (True, True)
    """
    return _KERNEL_LOADING.match(name) is not None


def is_profiler_overhead(name: str) -> bool:
    """Whether a slice of the category `overhead` is work of the recorder.

    >>> is_profiler_overhead("Buffer Flush"), is_profiler_overhead("Command Buffer Full")
    (True, False)
    """
    return name in _OVERHEAD


def is_checkpoint(name: str) -> bool:
    """Whether a Python frame saves or loads a checkpoint.

    >>> is_checkpoint("torch/serialization.py(943): save")
    True
    """
    return _CHECKPOINT.match(_with_slashes(name)) is not None


def is_logging(name: str) -> bool:
    """Whether a Python frame prints, logs or shows progress.

    Checking whether a message would be logged does not count: libraries do so all the time.

    >>> is_logging("<built-in function print>"), is_logging("tqdm/std.py(1160): __iter__")
    (True, True)
    >>> is_logging("logging/__init__.py(1720): getEffectiveLevel")
    False
    """
    return _LOGGING.match(_with_slashes(name)) is not None


def is_loading_frame(name: str) -> bool:
    """Whether a Python frame is the main thread's wait for the next batch.

    >>> is_loading_frame("torch/utils/data/dataloader.py(733): __next__")
    True
    """
    return _LOADING_FRAME.match(_with_slashes(name)) is not None


def is_collective_call(name: str) -> bool:
    """Whether a host slice issues a collective or waits for one.

    >>> is_collective_call("gloo:all_reduce"), is_collective_call("_c10d_functional::wait_tensor")
    (True, True)
    """
    return is_collective_annotation(name) or _COLLECTIVE.match(_with_slashes(name)) is not None


def is_optimizer(name: str) -> bool:
    """Whether an annotation is an optimizer's `step` or `zero_grad`.

    >>> is_optimizer("Optimizer.zero_grad#SGD.zero_grad"), is_optimizer("Optimizer.step#SGD.step")
    (True, True)
    """
    return _OPTIMIZER.match(name) is not None
