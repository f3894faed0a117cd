"""Classify operators and frames that create, convert or update tensors."""

import re
from typing import Final

_UPDATES: Final = re.compile(
    r"aten::(?:mul|add|sub|div|lerp|clamp|clamp_min|clamp_max|addcmul|addcdiv|sign|sqrt)_"
    r"|aten::(?:linalg_vector_norm|norm|frobenius_norm)"
)
_ANEW: Final = re.compile(r"aten::(?:mul|add|sub|rsub|div|lerp|addcmul|addcdiv)")
_CONSTANT: Final = re.compile(
    r"aten::(?:zeros|ones|full|arange|linspace|logspace|eye|tril_indices|triu_indices)(?:_like)?"
)
_RANDOM: Final = re.compile(
    r"aten::(?:randn?|randint|randperm|bernoulli|multinomial|poisson|normal)(?:_like|_)?"
    r"|aten::(?:uniform|random|exponential|log_normal|cauchy|geometric)_"
)
_TO: Final = re.compile(r"aten::(?:to|_to_copy|copy_)")
_DROPS: Final = re.compile(r"aten::(?:native_dropout|_fused_dropout|bernoulli_)")
_NORMS: Final = re.compile(r"aten::batch_norm")
_INTERCEPTS: Final = re.compile(
    r"(?!(?:.*/)?selftime/).*\.py\(\d+\): __torch_(?:function|dispatch)__$"
)
_MODULE_CALL: Final = re.compile(
    r"(?:.*/)?torch/nn/modules/module\.py\(\d+\): (?:_call_impl|_wrapped_call_impl|inner)$"
)
_BACKWARD: Final = re.compile(
    r"(?:.*/)?torch/_tensor\.py\(\d+\): backward$"
    r"|(?:.*/)?torch/autograd/__init__\.py\(\d+\): (?:backward|grad)$"
)
_CHECKPOINT: Final = re.compile(
    r"(?:.*/)?torch/utils/checkpoint\.py\(\d+\): (?:checkpoint|checkpoint_sequential)$"
)
_CHECKPOINT_NOTES: Final = re.compile(
    r"(?:.*/)?torch/utils/checkpoint\.py\(\d+\): "
    r"(?:pack_hook|unpack_hook|_checkpoint_without_reentrant_generator)$"
)
_ANOMALY: Final = re.compile(
    r"(?:.*/)?torch/autograd/anomaly_mode\.py\(\d+\): (?:__init__|__enter__)$"
)


def _path(name: str) -> str:
    return name.replace("\\", "/")


def updates_one_tensor(name: str) -> bool:
    """Whether an operator updates one tensor in place, or computes its norm.

    Copies do not count: gradient reducers and checkpoint loaders copy tensors one by one as well.

    >>> updates_one_tensor("aten::lerp_"), updates_one_tensor("aten::_foreach_lerp_")
    (True, False)
    """
    return _UPDATES.fullmatch(name) is not None


def is_out_of_place_arithmetic(name: str) -> bool:
    """Whether an operator is arithmetic that writes to a new tensor.

    >>> is_out_of_place_arithmetic("aten::mul"), is_out_of_place_arithmetic("aten::mul_")
    (True, False)
    """
    return _ANEW.fullmatch(name) is not None


def makes_constant(name: str) -> bool:
    """Whether an operator creates a tensor from numbers alone.

    >>> makes_constant("aten::arange"), makes_constant("aten::randn"), makes_constant("aten::to")
    (True, False, False)
    """
    return _CONSTANT.fullmatch(name) is not None


def makes_random(name: str) -> bool:
    """Whether an operator draws random numbers.

    >>> makes_random("aten::randn"), makes_random("aten::normal_"), makes_random("aten::norm")
    (True, True, False)
    """
    return _RANDOM.fullmatch(name) is not None


def moves_or_converts(name: str) -> bool:
    """Whether an operator is `copy_`, or called by `.to()`, `.cuda()` or `.float()`.

    >>> moves_or_converts("aten::to"), moves_or_converts("aten::contiguous")
    (True, False)
    """
    return _TO.fullmatch(name) is not None


def asks_for_conversion(name: str) -> bool:
    """Whether an operator is an explicit request for another dtype or layout.

    Copies within `reshape` and matrix products do not count.

    >>> asks_for_conversion("aten::to"), asks_for_conversion("aten::contiguous")
    (True, True)
    >>> asks_for_conversion("aten::copy_")
    False
    """
    return name in {"aten::to", "aten::_to_copy", "aten::contiguous"}


def copies_between_devices(name: str) -> bool:
    """Whether device work is a copy to or from the host, or to another device.

    >>> copies_between_devices("Memcpy HtoD (Pageable -> Device)")
    True
    >>> copies_between_devices("Memcpy DtoD (Device -> Device)")
    False
    """
    return name.startswith("Memcpy") and "DtoD" not in name


def draws_dropout_mask(name: str) -> bool:
    """Whether an operator draws a dropout's random mask.

    >>> draws_dropout_mask("aten::native_dropout"), draws_dropout_mask("aten::dropout")
    (True, False)
    """
    return _DROPS.fullmatch(name) is not None


def is_dropout(name: str) -> bool:
    """Whether an operator is a dropout, active or not.

    >>> is_dropout("aten::feature_dropout"), is_dropout("aten::native_dropout")
    (True, False)
    """
    return name in {"aten::dropout", "aten::dropout_", "aten::feature_dropout"}


def is_batch_norm(name: str) -> bool:
    """Whether an operator is a batch norm, in training or inference.

    >>> is_batch_norm("aten::batch_norm"), is_batch_norm("aten::layer_norm")
    (True, False)
    """
    return _NORMS.fullmatch(name) is not None


def is_training_batch_norm(values: list[str]) -> bool | None:
    """Whether a batch norm's inputs say that it trains; None if they do not say.

    The sixth input is `training`, after weight, bias and the two running statistics.

    >>> is_training_batch_norm(["", "", "", "", "", "True", "0.1", "1e-05", "True"])
    True
    """
    training = values[5] if len(values) > 5 else ""
    return {"True": True, "1": True, "False": False, "0": False}.get(training)


def intercepts_operators(name: str) -> bool:
    """Whether a frame intercepts PyTorch's operators, and is not selftime's own.

    >>> intercepts_operators("torch/utils/_device.py(103): __torch_function__")
    True
    """
    return _INTERCEPTS.match(_path(name)) is not None


def is_module_call(name: str) -> bool:
    """Whether a frame calls a module's `forward` and its hooks.

    >>> is_module_call("torch/nn/modules/module.py(1780): _call_impl")
    True
    """
    return _MODULE_CALL.match(_path(name)) is not None


def calls_backward(name: str) -> bool:
    """Whether a frame starts a backward pass.

    >>> calls_backward("torch/_tensor.py(570): backward")
    True
    """
    return _BACKWARD.match(_path(name)) is not None


def is_checkpoint_call(name: str) -> bool:
    """Whether a frame is activation checkpointing around a part of the network.

    >>> is_checkpoint_call("torch/utils/checkpoint.py(345): checkpoint")
    True
    """
    return _CHECKPOINT.match(_path(name)) is not None


def is_checkpoint_overhead(name: str) -> bool:
    """Whether a frame is overhead of activation checkpointing: its hooks and rerun.

    >>> is_checkpoint_overhead("torch/utils/checkpoint.py(1165): unpack_hook")
    True
    >>> is_checkpoint_overhead("torch/utils/checkpoint.py(345): checkpoint")
    False
    """
    return _CHECKPOINT_NOTES.match(_path(name)) is not None


def sets_anomaly_mode(name: str) -> bool:
    """Whether a frame switches anomaly detection on or off.

    >>> sets_anomaly_mode("torch/autograd/anomaly_mode.py(80): __init__")
    True
    """
    return _ANOMALY.match(_path(name)) is not None
