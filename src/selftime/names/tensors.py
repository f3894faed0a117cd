"""What names of operators and frames say of the tensors that they make, convert or update."""

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
    """Whether an operator is what loops over parameters do: an update in place, or a norm.

    Copies are not: reducers of gradients and loaders of states copy one by one as well.

    >>> updates_one_tensor("aten::lerp_"), updates_one_tensor("aten::_foreach_lerp_")
    (True, False)
    """
    return _UPDATES.fullmatch(name) is not None


def calculates_anew(name: str) -> bool:
    """Whether an operator is the arithmetic of an update that writes to a new tensor.

    >>> calculates_anew("aten::mul"), calculates_anew("aten::mul_")
    (True, False)
    """
    return _ANEW.fullmatch(name) is not None


def makes_constant(name: str) -> bool:
    """Whether an operator makes a tensor from nothing but numbers.

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
    """Whether an operator is what `.to()`, `.cuda()` and `.float()` call, or `copy_`.

    >>> moves_or_converts("aten::to"), moves_or_converts("aten::contiguous")
    (True, False)
    """
    return _TO.fullmatch(name) is not None


def asks_for_conversion(name: str) -> bool:
    """Whether an operator is the program's own wish for another dtype or layout.

    Copies that `reshape` and products make on their way are not.

    >>> asks_for_conversion("aten::to"), asks_for_conversion("aten::contiguous")
    (True, True)
    >>> asks_for_conversion("aten::copy_")
    False
    """
    return name in {"aten::to", "aten::_to_copy", "aten::contiguous"}


def copies_between_devices(name: str) -> bool:
    """Whether device work is a copy from the host, to it, or to another device.

    >>> copies_between_devices("Memcpy HtoD (Pageable -> Device)")
    True
    >>> copies_between_devices("Memcpy DtoD (Device -> Device)")
    False
    """
    return name.startswith("Memcpy") and "DtoD" not in name


def drops_at_random(name: str) -> bool:
    """Whether an operator draws the elements that a dropout leaves out.

    >>> drops_at_random("aten::native_dropout"), drops_at_random("aten::dropout")
    (True, False)
    """
    return _DROPS.fullmatch(name) is not None


def is_dropout(name: str) -> bool:
    """Whether an operator is a dropout, whether or not it leaves elements out.

    >>> is_dropout("aten::feature_dropout"), is_dropout("aten::native_dropout")
    (True, False)
    """
    return name in {"aten::dropout", "aten::dropout_", "aten::feature_dropout"}


def norms_batch(name: str) -> bool:
    """Whether an operator is a batch norm, in training or not.

    >>> norms_batch("aten::batch_norm"), norms_batch("aten::layer_norm")
    (True, False)
    """
    return _NORMS.fullmatch(name) is not None


def checks_training_mode(values: list[str]) -> bool | None:
    """Whether a batch norm's inputs say that it trains; None where they do not tell.

    The sixth input is `training`: weight, bias and both running averages come before it.

    >>> checks_training_mode(["", "", "", "", "", "True", "0.1", "1e-05", "True"])
    True
    """
    told = values[5] if len(values) > 5 else ""
    return {"True": True, "1": True, "False": False, "0": False}.get(told)


def intercepts_operators(name: str) -> bool:
    """Whether a frame stands between a call of PyTorch and its operator, and is not our own.

    >>> intercepts_operators("torch/utils/_device.py(103): __torch_function__")
    True
    """
    return _INTERCEPTS.match(_path(name)) is not None


def is_module_call(name: str) -> bool:
    """Whether a frame is what calls a module's `forward` and its hooks.

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
    """Whether a frame runs a part of the network to run it again in the backward pass.

    >>> is_checkpoint_call("torch/utils/checkpoint.py(345): checkpoint")
    True
    """
    return _CHECKPOINT.match(_path(name)) is not None


def keeps_checkpoint(name: str) -> bool:
    """Whether a frame is what checkpointing adds to the program: its notes, and its second run.

    >>> keeps_checkpoint("torch/utils/checkpoint.py(1165): unpack_hook")
    True
    >>> keeps_checkpoint("torch/utils/checkpoint.py(345): checkpoint")
    False
    """
    return _CHECKPOINT_NOTES.match(_path(name)) is not None


def sets_anomaly_mode(name: str) -> bool:
    """Whether a frame switches anomaly detection on or off.

    >>> sets_anomaly_mode("torch/autograd/anomaly_mode.py(80): __init__")
    True
    """
    return _ANOMALY.match(_path(name)) is not None
