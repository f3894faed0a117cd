"""Classify operators and annotations of the host by name."""

import re
from typing import Final

from selftime.names.operators import is_matrix_operator

_STEP: Final = re.compile(r"ProfilerStep#(\d+)")
_DATA_LOADING: Final = re.compile(
    r"(?:\[pl\]\[profile\])?enumerate\(Data(?:Loader|Pipe)\)#"
    r"|\[pl\]\[(?:profile|module)\].*(?:(?:train|val)_dataloader|\.(?:val|test|predict))_next"
    r"|\[pl\]\[profile\].*(?:get_train_batch|fetch_next)"
    r"|(?i:(?:nvidia[./])?dali(?![a-z])|dali\w*iterator|webdataset|webloader|torchdata(?![a-z]))"
)
FLOATING: Final = frozenset(
    {"float", "double", "c10::Half", "c10::BFloat16", "c10::complex<float>", "c10::complex<double>"}
)
"""Dtypes of floating-point tensors, as `Input type` writes them."""
_NETWORK: Final = re.compile(
    r"aten::(?:_?conv|.*batch_norm|.*layer_norm|.*group_norm|.*rms_norm|.*dropout|embedding"
    r"|.*cross_entropy|nll_loss|_?log_softmax|.*scaled_dot_product|.*max_pool|.*avg_pool|relu|gelu"
    r"|silu|threshold_backward|lstm|gru|_thnn)"
)
LOADING_PREFIX: Final = "enumerate(Data"
"""Prefix of PyTorch's own data-loading annotations."""
_OPTIMIZER_STEP: Final = re.compile(r"Optimizer\.step#")
_COLLECTIVE_ANNOTATION: Final = re.compile(r"(?:nccl|gloo|mpi|ucc|hccl|xccl|c10d)(?::|::)")
_BACKWARD_NODE: Final = re.compile(r"autograd::engine::evaluate_function: ")
_DISPATCHED: Final = re.compile(r"(?!autograd::|profiler::)[A-Za-z_]\w*::\w")
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
    """Returns the number of a profiler step's annotation; None for any other name.

    >>> step_number("ProfilerStep#12"), step_number("ProfilerStep*")
    (12, None)
    """
    found = _STEP.fullmatch(name)
    return int(found[1]) if found else None


def is_data_loading(name: str) -> bool:
    """Whether a host annotation is the main thread's wait for the next batch.

    >>> is_data_loading("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    True
    >>> is_data_loading("DALIGenericIterator.__next__"), is_data_loading("dalit")
    (True, False)
    """
    return _DATA_LOADING.match(name) is not None


def is_optimizer_step(name: str) -> bool:
    """Whether a host annotation is an optimizer's step.

    >>> is_optimizer_step("Optimizer.step#AdamW.step")
    True
    """
    return _OPTIMIZER_STEP.match(name) is not None


def loads_on_main_thread(name: str) -> bool:
    """Whether a loading annotation belongs to a DataLoader without workers.

    >>> loads_on_main_thread("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    True
    """
    return "_SingleProcess" in name


def optimizer_of(name: str) -> str:
    """Returns the optimizer's class, from the annotation of its step.

    >>> optimizer_of("Optimizer.step#AdamW.step")
    'AdamW'
    """
    return _OPTIMIZER_STEP.sub("", name).removesuffix(".step") or "the optimizer"


def is_multi_tensor_operator(name: str) -> bool:
    """Whether an operator processes a list of tensors at once.

    >>> is_multi_tensor_operator("aten::_foreach_add_"), is_multi_tensor_operator("aten::add_")
    (True, False)
    """
    return name.startswith(("aten::_foreach_", "aten::_fused_", "aten::_multi_tensor_"))


def is_conversion(name: str) -> bool:
    """Whether an operator converts dtype or layout, or copies into another tensor.

    >>> is_conversion("aten::_to_copy"), is_conversion("aten::mm")
    (True, False)
    """
    return name in {"aten::_to_copy", "aten::copy_", "aten::to"}


def is_library_operator(name: str) -> bool:
    """Whether an operator is one of PyTorch's own (`aten`).

    >>> is_library_operator("aten::mm"), is_library_operator("CompiledFunction")
    (True, False)
    """
    return name.startswith("aten::")


def is_dispatched(name: str) -> bool:
    """Whether an operator went through PyTorch's dispatcher: PyTorch's own or a library's.

    >>> is_dispatched("aten::item"), is_dispatched("torchvision::nms")
    (True, True)
    >>> is_dispatched("ItemBackward0"), is_dispatched("autograd::engine::evaluate_function: X")
    (False, False)
    """
    return _DISPATCHED.match(name) is not None


def is_fallback_convolution(name: str) -> bool:
    """Whether an operator is PyTorch's slow fallback convolution.

    It runs where no library supports the case, such as float64 on a CPU.

    >>> is_fallback_convolution("aten::_slow_conv2d_forward")
    True
    >>> is_fallback_convolution("aten::mkldnn_convolution")
    False
    """
    return name.startswith(("aten::slow_conv", "aten::_slow_conv"))


def is_network_operator(name: str) -> bool:
    """Whether an operator is typical of neural networks and rare elsewhere.

    >>> is_network_operator("aten::convolution"), is_network_operator("aten::cholesky")
    (True, False)
    """
    return _NETWORK.match(name) is not None


def is_layer_operator(name: str) -> bool:
    """Whether an operator computes what layers do: products of matrices, or what networks are for.

    Copies, sums and other arithmetic, which updates of parameters and metrics consist of, do not.

    >>> is_layer_operator("aten::addmm"), is_layer_operator("aten::gelu")
    (True, True)
    >>> is_layer_operator("aten::add_"), is_layer_operator("aten::copy_")
    (False, False)
    """
    return is_matrix_operator(name) or is_network_operator(name)


def is_collective_annotation(name: str) -> bool:
    """Whether a host annotation belongs to a collective.

    >>> is_collective_annotation("gloo:all_reduce"), is_collective_annotation("train")
    (True, False)
    """
    return _COLLECTIVE_ANNOTATION.match(name) is not None


def is_backward_node(name: str) -> bool:
    """Whether an operator is autograd's slice around one node of the backward graph."""
    return _BACKWARD_NODE.match(name) is not None


def is_recorder_operator(name: str) -> bool:
    """Whether an operator is the recorder's bookkeeping, hidden in torch's tables."""
    return name in _RECORDER_OPERATORS
