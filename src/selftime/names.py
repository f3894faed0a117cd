"""What the names in a trace mean: the only module that matches categories, operators and kernels.

Categories changed twice since 2021 and differ by device; every one that Kineto ever wrote is here,
in lower case, with the name it has today and the kind of track it lies on.
"""

import re
import sys
from typing import Final, NamedTuple

__all__ = [
    "ALLOCATION",
    "ANNOTATIONS",
    "CALLS",
    "COPIES",
    "DEVICE",
    "FLOATING",
    "FRAMES",
    "LOADING_PREFIX",
    "OPERATORS",
    "OUT_OF_MEMORY",
    "TODAY",
    "TRACK_KIND",
    "Frame",
    "frame",
    "is_backward_node",
    "is_capture_begin",
    "is_capture_end",
    "is_collective_annotation",
    "is_collective_kernel",
    "is_conversion",
    "is_data_loading",
    "is_launch",
    "is_library_operator",
    "is_network_operator",
    "is_optimizer_step",
    "is_recorder_operator",
    "loads_on_main_thread",
    "optimizer_of",
    "step_number",
    "takes_many_tensors",
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
FLOATING: Final = frozenset(
    {"float", "double", "c10::Half", "c10::BFloat16", "c10::complex<float>", "c10::complex<double>"}
)
"""Dtypes of floating-point tensors, as `Input type` names them."""
_NETWORK: Final = re.compile(
    r"aten::(?:_?conv|.*batch_norm|.*layer_norm|.*group_norm|.*rms_norm|.*dropout|embedding"
    r"|.*cross_entropy|nll_loss|_?log_softmax|.*scaled_dot_product|.*max_pool|.*avg_pool|relu|gelu"
    r"|silu|threshold_backward|lstm|gru|_thnn)"
)
LOADING_PREFIX: Final = "enumerate(Data"
"""How the names of PyTorch's own loading annotations begin."""
_OPTIMIZER_STEP: Final = re.compile(r"Optimizer\.step#")
_COLLECTIVE: Final = re.compile(
    r"^(?:void )?(?:nccl|rccl|hccl|oneccl|mscclpp|nvshmem)|nccl(?:Dev)?Kernel|mscclKernel"
    r"|cross_device_reduce|all_?reduce_kernel|deep_ep::",
    re.IGNORECASE,
)
_COLLECTIVE_ANNOTATION: Final = re.compile(r"(?:nccl|gloo|mpi|ucc|hccl|xccl|c10d)(?::|::)")
_LAUNCH: Final = re.compile(
    r"(?:cuda|hip)(?:Ext)?(?:Module)?Launch(?:Cooperative)?Kernel|cuLaunchKernel|cu(?:da)?GraphLaunch"
    r"|hip(?:Ext)?ModuleLaunchKernel|hipGraphLaunch|(?:cuda|hip)Memcpy(?:\dD)?Async|urEnqueueKernelLaunch"
)
_CAPTURE_BEGIN: Final = re.compile(r"(?:cuda|hip|cu)(?:Thread)?StreamBeginCapture")
_CAPTURE_END: Final = re.compile(r"(?:cuda|hip|cu)StreamEndCapture")
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


def loads_on_main_thread(name: str) -> bool:
    """Whether a loading annotation is that of an iterator without workers.

    >>> loads_on_main_thread("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    True
    """
    return "_SingleProcess" in name


def optimizer_of(name: str) -> str:
    """The optimizer's class, from the annotation of its step.

    >>> optimizer_of("Optimizer.step#AdamW.step")
    'AdamW'
    """
    return _OPTIMIZER_STEP.sub("", name).removesuffix(".step") or "the optimizer"


def takes_many_tensors(name: str) -> bool:
    """Whether an operator works on a list of tensors at once.

    >>> takes_many_tensors("aten::_foreach_add_"), takes_many_tensors("aten::add_")
    (True, False)
    """
    return name.startswith(("aten::_foreach_", "aten::_fused_", "aten::_multi_tensor_"))


def is_conversion(name: str) -> bool:
    """Whether an operator makes a tensor of another dtype or layout, or copies into one.

    >>> is_conversion("aten::_to_copy"), is_conversion("aten::mm")
    (True, False)
    """
    return name in {"aten::_to_copy", "aten::copy_", "aten::to"}


def is_library_operator(name: str) -> bool:
    """Whether an operator is one of PyTorch's own, whose inputs say what it computes in.

    >>> is_library_operator("aten::mm"), is_library_operator("CompiledFunction")
    (True, False)
    """
    return name.startswith("aten::")


def is_network_operator(name: str) -> bool:
    """Whether an operator is at home in neural networks and hardly elsewhere.

    >>> is_network_operator("aten::convolution"), is_network_operator("aten::cholesky")
    (True, False)
    """
    return _NETWORK.match(name) is not None


def is_collective_annotation(name: str) -> bool:
    """Whether a host annotation is a collective's.

    >>> is_collective_annotation("gloo:all_reduce"), is_collective_annotation("train")
    (True, False)
    """
    return _COLLECTIVE_ANNOTATION.match(name) is not None


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


def is_backward_node(name: str) -> bool:
    """Whether an operator is autograd's row around one node of the backward graph."""
    return _BACKWARD_NODE.match(name) is not None


def is_recorder_operator(name: str) -> bool:
    """Whether an operator is the recorder's own bookkeeping, which torch's tables leave out."""
    return name in _RECORDER_OPERATORS


class Frame(NamedTuple):
    """A Python frame as its name tells it."""

    file: str
    line: int
    function: str
    origin: str
    """`user`, `library`, or `system`: torch, the standard library, generated code."""


_FRAME: Final = re.compile(r"(.+)\((\d+)\): (.+)")
_SYSTEM: Final = re.compile(
    r"^<|/torch/|^torch/|(?:^|/)torch(?:inductor|dynamo)|/lib/python\d|/python\d\.\d+/(?!site-packages)"
    r"|^selftime/|/selftime/(?:capture|session)"
)
_LIBRARY: Final = re.compile(r"site-packages/|dist-packages/")
_LIBRARIES: Final = frozenset(
    "accelerate datasets deepspeed diffusers einops flash_attn huggingface_hub lightning"  # noqa: SIM905 - read best as words
    " matplotlib"
    " megatron mmcv mmengine numpy pandas peft pytorch_lightning safetensors scipy sglang sklearn"
    " timm tokenizers torchaudio torchmetrics torchtext torchvision tqdm transformers triton vllm"
    " wandb xformers".split()
)
"""First folders of paths that are relative to a folder of installed packages."""


def frame(text: str) -> Frame | None:
    """A Python frame from its text; None for built-in functions and modules' rows.

    >>> frame("train.py(12): main")
    Frame(file='train.py', line=12, function='main', origin='user')
    >>> frame("torch/nn/functional.py(99): relu").origin, frame("<built-in method relu>")
    ('system', None)
    """
    found = _FRAME.fullmatch(text.strip())
    if found is None:
        return None
    return Frame(found[1], int(found[2]), found[3], _origin(found[1]))


def _origin(file: str) -> str:
    path = file.replace("\\", "/")
    if _LIBRARY.search(path):
        inside = _LIBRARY.split(path)[-1]
        return "system" if inside.startswith(("torch/", "selftime/")) else "library"
    first = path.partition("/")[0].removesuffix(".py")
    if _SYSTEM.search(path) or (not path.startswith("/") and first in sys.stdlib_module_names):
        return "system"
    return "library" if first in _LIBRARIES else "user"
