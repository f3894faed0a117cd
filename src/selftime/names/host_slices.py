"""Classifies operators and annotations of the host by name."""

import re
from typing import Final

from selftime.names.operator_kinds import is_matrix_operator

_PROFILER_STEP: Final = re.compile(r"ProfilerStep#(\d+)")
_DATA_LOADING_ANNOTATION: Final = re.compile(
    r"(?:\[pl\]\[profile\])?enumerate\(Data(?:Loader|Pipe)\)#"
    r"|\[pl\]\[(?:profile|module)\].*(?:(?:train|val)_dataloader|\.(?:val|test|predict))_next"
    r"|\[pl\]\[profile\].*(?:get_train_batch|fetch_next)"
    r"|(?i:(?:nvidia[./])?dali(?![a-z])|dali\w*iterator|webdataset|webloader|torchdata(?![a-z]))"
)
FLOATING_POINT_DTYPES: Final = frozenset(
    {"float", "double", "c10::Half", "c10::BFloat16", "c10::complex<float>", "c10::complex<double>"}
)
"""Dtypes of floating-point tensors, as `Input type` writes them."""
_NEURAL_NETWORK_OPERATOR: Final = re.compile(
    r"aten::(?:_?conv|.*batch_norm|.*layer_norm|.*group_norm|.*rms_norm|.*dropout|embedding"
    r"|.*cross_entropy|nll_loss|_?log_softmax|.*scaled_dot_product|.*max_pool|.*avg_pool|relu|gelu"
    r"|silu|threshold_backward|linear(?:_backward)?$|rnn_|lstm|gru|_thnn)"
)
DATA_LOADING_PREFIX: Final = "enumerate(Data"
"""Prefix of PyTorch's own data-loading annotations."""
_OPTIMIZER_STEP_ANNOTATION: Final = re.compile(r"Optimizer\.step#")
_COLLECTIVE_ANNOTATION: Final = re.compile(r"(?:nccl|gloo|mpi|ucc|hccl|xccl|c10d)(?::|::)")
_BACKWARD_NODE_OPERATOR: Final = re.compile(r"autograd::engine::evaluate_function: ")
_DISPATCHED_OPERATOR: Final = re.compile(r"(?!autograd::|profiler::)[A-Za-z_]\w*::\w")
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
"""Operators that the recorder calls for its own bookkeeping."""


def profiler_step_number(annotation: str) -> int | None:
    """Returns the number in a `ProfilerStep#` annotation; None for any other name.

    >>> profiler_step_number("ProfilerStep#12"), profiler_step_number("ProfilerStep*")
    (12, None)
    """
    found = _PROFILER_STEP.fullmatch(annotation)
    return int(found[1]) if found else None


def is_data_loading(annotation: str) -> bool:
    """Returns whether a host annotation is the main thread's wait for the next batch.

    >>> is_data_loading("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    True
    >>> is_data_loading("DALIGenericIterator.__next__"), is_data_loading("dalit")
    (True, False)
    """
    return _DATA_LOADING_ANNOTATION.match(annotation) is not None


def is_optimizer_step(annotation: str) -> bool:
    """Returns whether a host annotation is an optimizer's step.

    >>> is_optimizer_step("Optimizer.step#AdamW.step")
    True
    """
    return _OPTIMIZER_STEP_ANNOTATION.match(annotation) is not None


def loads_on_main_thread(annotation: str) -> bool:
    """Returns whether a data-loading annotation shows that the DataLoader has no workers.

    >>> loads_on_main_thread("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    True
    """
    return "_SingleProcess" in annotation


def optimizer_class(annotation: str) -> str:
    """Returns the optimizer's class, from the annotation of its step.

    >>> optimizer_class("Optimizer.step#AdamW.step")
    'AdamW'
    """
    return _OPTIMIZER_STEP_ANNOTATION.sub("", annotation).removesuffix(".step") or "the optimizer"


def without_backward_node_prefix(operator: str) -> str:
    """Returns an operator's name; of a node of the backward pass the node's name alone.

    >>> without_backward_node_prefix("autograd::engine::evaluate_function: MmBackward0")
    'MmBackward0'
    """
    return _BACKWARD_NODE_OPERATOR.sub("", operator)


def is_multi_tensor_operator(operator: str) -> bool:
    """Returns whether an operator processes a list of tensors at once.

    >>> is_multi_tensor_operator("aten::_foreach_add_"), is_multi_tensor_operator("aten::add_")
    (True, False)
    """
    return operator.startswith(("aten::_foreach_", "aten::_fused_", "aten::_multi_tensor_"))


def is_copy_or_conversion(operator: str) -> bool:
    """Returns whether an operator converts dtype or layout, or copies into another tensor.

    >>> is_copy_or_conversion("aten::_to_copy"), is_copy_or_conversion("aten::mm")
    (True, False)
    """
    return operator in {"aten::_to_copy", "aten::copy_", "aten::to"}


def is_aten_operator(operator: str) -> bool:
    """Returns whether an operator is one of PyTorch's own (`aten`).

    >>> is_aten_operator("aten::mm"), is_aten_operator("CompiledFunction")
    (True, False)
    """
    return operator.startswith("aten::")


def is_dispatched_operator(operator: str) -> bool:
    """Returns whether an operator, PyTorch's own or a library's, went through the dispatcher.

    >>> is_dispatched_operator("aten::item"), is_dispatched_operator("torchvision::nms")
    (True, True)
    >>> names = ("ItemBackward0", "autograd::engine::evaluate_function: X")
    >>> [is_dispatched_operator(name) for name in names]
    [False, False]
    """
    return _DISPATCHED_OPERATOR.match(operator) is not None


def is_convolution(operator: str) -> bool:
    """Returns whether an operator is a convolution, or its backward pass.

    >>> is_convolution("aten::mkldnn_convolution"), is_convolution("aten::mm")
    (True, False)
    """
    return "conv" in operator


def is_fallback_convolution(operator: str) -> bool:
    """Returns whether an operator is PyTorch's slow fallback convolution.

    It runs where no library supports the case, such as float64 on a CPU.

    >>> is_fallback_convolution("aten::_slow_conv2d_forward")
    True
    >>> is_fallback_convolution("aten::mkldnn_convolution")
    False
    """
    return operator.startswith(("aten::slow_conv", "aten::_slow_conv"))


def is_neural_network_operator(operator: str) -> bool:
    """Returns whether an operator is common in neural networks and rare in other programs.

    >>> [is_neural_network_operator(name) for name in ("aten::convolution", "aten::cholesky")]
    [True, False]
    >>> is_neural_network_operator("aten::linear"), is_neural_network_operator("aten::addmm")
    (True, False)
    """
    return _NEURAL_NETWORK_OPERATOR.match(operator) is not None


def is_layer_operator(operator: str) -> bool:
    """Returns whether an operator is a matrix product, or common only in neural networks.

    Copies, sums and other arithmetic, which updates of parameters and metrics consist of, do not.

    >>> is_layer_operator("aten::addmm"), is_layer_operator("aten::gelu")
    (True, True)
    >>> is_layer_operator("aten::add_"), is_layer_operator("aten::copy_")
    (False, False)
    """
    return is_matrix_operator(operator) or is_neural_network_operator(operator)


def is_collective_annotation(annotation: str) -> bool:
    """Returns whether a host annotation marks a collective.

    >>> is_collective_annotation("gloo:all_reduce"), is_collective_annotation("train")
    (True, False)
    """
    return _COLLECTIVE_ANNOTATION.match(annotation) is not None


def is_backward_node(operator: str) -> bool:
    """Returns whether an operator is autograd's slice around one node of the backward graph."""
    return _BACKWARD_NODE_OPERATOR.match(operator) is not None


def is_numbered_node(operator: str) -> bool:
    """Returns whether a node of the backward pass is one of PyTorch's operators, as `MmBackward0`.

    Those of functions written in Python, such as a checkpoint's, have no number.

    >>> is_numbered_node("autograd::engine::evaluate_function: MmBackward0")
    True
    >>> is_numbered_node("autograd::engine::evaluate_function: CheckpointFunctionBackward")
    False
    """
    return is_backward_node(operator) and operator[-1].isdigit()


def is_recorder_operator(operator: str) -> bool:
    """Returns whether an operator is the profiler's own bookkeeping, not work of the program."""
    return operator in _RECORDER_OPERATORS
