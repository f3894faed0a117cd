"""Classifies by name operators and Python frames that create, convert or update tensors."""

import re
from typing import Final

_ONE_TENSOR_UPDATE_OPERATOR: Final = re.compile(
    r"aten::(?:mul|add|sub|div|lerp|clamp|clamp_min|clamp_max|addcmul|addcdiv|sign|sqrt)_"
    r"|aten::(?:linalg_vector_norm|norm|frobenius_norm)"
)
_OUT_OF_PLACE_ARITHMETIC_OPERATOR: Final = re.compile(
    r"aten::(?:mul|add|sub|rsub|div|lerp|addcmul|addcdiv)"
)
_OPERATOR_WITH_PARAMETERS: Final = re.compile(
    r"aten::(?:linear|conv\w*|\w+_norm|embedding|embedding_bag)"
)
_CONSTANT_OPERATOR: Final = re.compile(
    r"aten::(?:zeros|ones|full|arange|linspace|logspace|eye|tril_indices|triu_indices)(?:_like)?"
)
_RANDOM_OPERATOR: Final = re.compile(
    r"aten::(?:randn?|randint|randperm|bernoulli|multinomial|poisson|normal)(?:_like|_)?"
    r"|aten::(?:uniform|random|exponential|log_normal|cauchy|geometric)_"
)
_MOVE_OR_CONVERSION_OPERATOR: Final = re.compile(r"aten::(?:to|_to_copy|copy_)")
_DROPOUT_MASK_OPERATOR: Final = re.compile(r"aten::(?:native_dropout|_fused_dropout|bernoulli_)")
_BATCH_NORM_OPERATOR: Final = re.compile(r"aten::batch_norm")
_OPERATOR_HANDLER_FRAME: Final = re.compile(
    r"(?!(?:.*/)?selftime/).*\.py\(\d+\): __torch_(?:function|dispatch)__$"
)
_TENSOR_FROM_VALUES_FRAME: Final = re.compile(
    r"<built-in method (?:tensor|as_tensor|asarray) of type object.*>"
)
_MODULE_CALL_FRAME: Final = re.compile(
    r"(?:.*/)?torch/nn/modules/module\.py\(\d+\): (?:_call_impl|_wrapped_call_impl|inner)$"
)
_BACKWARD_CALL_FRAME: Final = re.compile(
    r"(?:.*/)?torch/_tensor\.py\(\d+\): backward$"
    r"|(?:.*/)?torch/autograd/__init__\.py\(\d+\): (?:backward|grad)$"
)
_CHECKPOINT_NODE: Final = re.compile(r"Checkpoint\w*Backward\w*$")
_ACTIVATION_CHECKPOINT_FRAME: Final = re.compile(
    r"(?:.*/)?torch/utils/checkpoint\.py\(\d+\): (?:checkpoint|checkpoint_sequential)$"
)
_CHECKPOINT_OVERHEAD_FRAME: Final = re.compile(
    r"(?:.*/)?torch/utils/checkpoint\.py\(\d+\): "
    r"(?:pack_hook|unpack_hook|_checkpoint_without_reentrant_generator)$"
)
_ANOMALY_MODE_FRAME: Final = re.compile(
    r"(?:.*/)?torch/autograd/anomaly_mode\.py\(\d+\): (?:__init__|__enter__)$"
)


def _name_with_forward_slashes(name: str) -> str:
    """Returns a name with the path separators of Windows replaced by `/`."""
    return name.replace("\\", "/")


def updates_one_tensor(operator: str) -> bool:
    """Returns whether an operator updates one tensor in place, or computes its norm.

    Copies do not count: gradient reducers and checkpoint loaders copy tensors one by one as well.

    >>> updates_one_tensor("aten::lerp_"), updates_one_tensor("aten::_foreach_lerp_")
    (True, False)
    """
    return _ONE_TENSOR_UPDATE_OPERATOR.fullmatch(operator) is not None


def takes_parameters(operator: str) -> bool:
    """Returns whether an operator is a layer's whole work, whose inputs are the layer's parameters.

    >>> takes_parameters("aten::conv2d"), takes_parameters("aten::matmul")
    (True, False)
    """
    return _OPERATOR_WITH_PARAMETERS.fullmatch(operator) is not None


def is_out_of_place_arithmetic(operator: str) -> bool:
    """Returns whether an operator is arithmetic that writes to a new tensor.

    >>> is_out_of_place_arithmetic("aten::mul"), is_out_of_place_arithmetic("aten::mul_")
    (True, False)
    """
    return _OUT_OF_PLACE_ARITHMETIC_OPERATOR.fullmatch(operator) is not None


def makes_constant(operator: str) -> bool:
    """Returns whether an operator creates a tensor from numbers alone.

    >>> makes_constant("aten::arange"), makes_constant("aten::randn"), makes_constant("aten::to")
    (True, False, False)
    """
    return _CONSTANT_OPERATOR.fullmatch(operator) is not None


def draws_random_numbers(operator: str) -> bool:
    """Returns whether an operator draws random numbers.

    >>> [draws_random_numbers(name) for name in ("aten::randn", "aten::normal_", "aten::norm")]
    [True, True, False]
    """
    return _RANDOM_OPERATOR.fullmatch(operator) is not None


def moves_or_converts(operator: str) -> bool:
    """Returns whether an operator is `copy_`, or what `.to()`, `.cuda()` or `.float()` calls.

    >>> moves_or_converts("aten::to"), moves_or_converts("aten::contiguous")
    (True, False)
    """
    return _MOVE_OR_CONVERSION_OPERATOR.fullmatch(operator) is not None


def asks_for_conversion(operator: str) -> bool:
    """Returns whether an operator requests another dtype or memory layout of a tensor.

    Copies within `reshape` and matrix products do not count.

    >>> asks_for_conversion("aten::to"), asks_for_conversion("aten::contiguous")
    (True, True)
    >>> asks_for_conversion("aten::copy_")
    False
    """
    return operator in {"aten::to", "aten::_to_copy", "aten::contiguous"}


def copies_between_devices(copy_name: str) -> bool:
    """Returns whether device work is a copy to or from the host, or to another device.

    >>> copies_between_devices("Memcpy HtoD (Pageable -> Device)")
    True
    >>> copies_between_devices("Memcpy DtoD (Device -> Device)")
    False
    """
    return copy_name.startswith("Memcpy") and "DtoD" not in copy_name


def draws_dropout_mask(operator: str) -> bool:
    """Returns whether an operator draws a dropout's random mask.

    >>> draws_dropout_mask("aten::native_dropout"), draws_dropout_mask("aten::dropout")
    (True, False)
    """
    return _DROPOUT_MASK_OPERATOR.fullmatch(operator) is not None


def is_dropout(operator: str) -> bool:
    """Returns whether an operator is a dropout, active or not.

    >>> is_dropout("aten::feature_dropout"), is_dropout("aten::native_dropout")
    (True, False)
    """
    return operator in {"aten::dropout", "aten::dropout_", "aten::feature_dropout"}


def is_batch_norm(operator: str) -> bool:
    """Returns whether an operator is a batch norm, in training or inference.

    >>> is_batch_norm("aten::batch_norm"), is_batch_norm("aten::layer_norm")
    (True, False)
    """
    return _BATCH_NORM_OPERATOR.fullmatch(operator) is not None


def is_training_batch_norm(inputs: list[str]) -> bool | None:
    """Returns whether a batch norm's inputs say that it trains; None if they do not say.

    The sixth input is `training`, after weight, bias and the two running statistics.

    >>> is_training_batch_norm(["", "", "", "", "", "True", "0.1", "1e-05", "True"])
    True
    """
    training = inputs[5] if len(inputs) > 5 else ""
    return {"True": True, "1": True, "False": False, "0": False}.get(training)


def intercepts_operators(frame_name: str) -> bool:
    """Returns whether a frame, not one of selftime's, intercepts PyTorch's operators.

    >>> intercepts_operators("torch/utils/_device.py(103): __torch_function__")
    True
    """
    return _OPERATOR_HANDLER_FRAME.match(_name_with_forward_slashes(frame_name)) is not None


def makes_tensor_of_values(frame_name: str) -> bool:
    """Returns whether a Python frame is a call that makes a tensor of a list, an array or numbers.

    >>> makes_tensor_of_values("<built-in method tensor of type object at 0x7f74ad8cea40>")
    True
    >>> makes_tensor_of_values("<built-in function asarray>")  # NumPy's
    False
    """
    return _TENSOR_FROM_VALUES_FRAME.fullmatch(frame_name) is not None


def is_module_call(frame_name: str) -> bool:
    """Returns whether a frame calls a module's `forward` and its hooks.

    >>> is_module_call("torch/nn/modules/module.py(1780): _call_impl")
    True
    """
    return _MODULE_CALL_FRAME.match(_name_with_forward_slashes(frame_name)) is not None


def calls_backward(frame_name: str) -> bool:
    """Returns whether a frame starts a backward pass.

    >>> calls_backward("torch/_tensor.py(570): backward")
    True
    """
    return _BACKWARD_CALL_FRAME.match(_name_with_forward_slashes(frame_name)) is not None


def is_checkpoint_call(frame_name: str) -> bool:
    """Returns whether a frame runs a part of the network under activation checkpointing.

    >>> is_checkpoint_call("torch/utils/checkpoint.py(345): checkpoint")
    True
    """
    return _ACTIVATION_CHECKPOINT_FRAME.match(_name_with_forward_slashes(frame_name)) is not None


def is_checkpoint_node(operator: str) -> bool:
    """Returns whether a node of the backward graph is one of activation checkpointing.

    >>> is_checkpoint_node("autograd::engine::evaluate_function: CheckpointFunctionBackward")
    True
    """
    return _CHECKPOINT_NODE.search(operator) is not None


def is_checkpoint_overhead(frame_name: str) -> bool:
    """Returns whether a frame is a hook or second forward pass of activation checkpointing.

    >>> is_checkpoint_overhead("torch/utils/checkpoint.py(1165): unpack_hook")
    True
    >>> is_checkpoint_overhead("torch/utils/checkpoint.py(345): checkpoint")
    False
    """
    return _CHECKPOINT_OVERHEAD_FRAME.match(_name_with_forward_slashes(frame_name)) is not None


def sets_anomaly_mode(frame_name: str) -> bool:
    """Returns whether a frame switches anomaly detection on or off.

    >>> sets_anomaly_mode("torch/autograd/anomaly_mode.py(80): __init__")
    True
    """
    return _ANOMALY_MODE_FRAME.match(_name_with_forward_slashes(frame_name)) is not None


def indexes_by_tensors(operator: str) -> bool:
    """Returns whether an operator takes elements of a tensor by tensors of indices or masks.

    >>> indexes_by_tensors("aten::index"), indexes_by_tensors("aten::index_select")
    (True, False)
    """
    return operator == "aten::index"


def is_strided_view(operator: str) -> bool:
    """Returns whether an operator makes a view of given sizes and strides.

    >>> is_strided_view("aten::as_strided")
    True
    """
    return operator == "aten::as_strided"
