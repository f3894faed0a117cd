"""Recognise operators and frames of wasteful habits, such as anomaly mode or repeated `cat`."""

import re
from typing import Final

_ZERO_GRAD: Final = re.compile(r"Optimizer\.zero_grad#|(?:.*/)?torch/.*\.py\(\d+\): zero_grad$")
_STACK: Final = re.compile(r"(?:.*/)?(?:torch/fx/)?traceback\.py\(\d+\): format_stack$")
_DATA_PARALLEL: Final = re.compile(
    r"DataParallel\.forward|(?:.*/)?torch/nn/parallel/data_parallel\.py\(\d+\): forward$"
)
_ATTENDS: Final = re.compile(r"\w+::\w*(?:softmax|attention|flash|attn)\w*")
_WEIGHTS: Final = re.compile(r"aten::(?:addmm|mm|linear|matmul|mv|addmv)")


def clears_gradients(name: str) -> bool:
    """Whether an annotation or a frame is `zero_grad`.

    >>> clears_gradients("Optimizer.zero_grad#SGD.zero_grad")
    True
    >>> clears_gradients("torch/nn/modules/module.py(2901): zero_grad")
    True
    """
    return _ZERO_GRAD.match(name.replace("\\", "/")) is not None


def fills_with_zeros(name: str) -> bool:
    """Whether an operator overwrites existing tensors with zeros.

    >>> fills_with_zeros("aten::_foreach_zero_"), fills_with_zeros("aten::zeros")
    (True, False)
    """
    return name in {"aten::zero_", "aten::_foreach_zero_"}


def is_nan_check(name: str) -> bool:
    """Whether an operator searches for NaN.

    >>> is_nan_check("aten::isnan"), is_nan_check("aten::nansum")
    (True, False)
    """
    return name == "aten::isnan"


def makes_dense_gradient(name: str) -> bool:
    """Whether an operator makes an embedding's gradient as large as its table.

    >>> makes_dense_gradient("aten::embedding_dense_backward")
    True
    >>> makes_dense_gradient("aten::embedding_sparse_backward")
    False
    """
    return name == "aten::embedding_dense_backward"


def formats_stack(name: str) -> bool:
    """Whether a Python frame formats the stack, as anomaly mode does for every operator.

    >>> formats_stack("torch/fx/traceback.py(497): format_stack")
    True
    """
    return _STACK.match(name.replace("\\", "/")) is not None


def is_explicit_collection(name: str) -> bool:
    """Whether a frame is the program's own call of `gc.collect()`.

    >>> is_explicit_collection("<built-in function collect>"), is_explicit_collection("Python GC")
    (True, False)
    """
    return name == "<built-in function collect>"


def is_data_parallel(name: str) -> bool:
    """Whether an annotation or frame is `DataParallel`, not `DistributedDataParallel`.

    >>> is_data_parallel("DataParallel.forward")
    True
    >>> is_data_parallel("DistributedDataParallel.forward")
    False
    """
    return _DATA_PARALLEL.match(name.replace("\\", "/")) is not None


def selects_index(name: str) -> bool:
    """Whether an operator selects one index of a dimension, as `t[i]` does.

    >>> selects_index("aten::select"), selects_index("aten::index")
    (True, False)
    """
    return name == "aten::select"


def selects_part(name: str) -> bool:
    """Whether an operator selects a part of one dimension, by index or slice.

    >>> selects_part("aten::slice"), selects_part("aten::select"), selects_part("aten::split")
    (True, True, False)
    """
    return name in {"aten::select", "aten::slice"}


def is_concatenation(name: str) -> bool:
    """Whether an operator concatenates tensors into a new one.

    >>> is_concatenation("aten::cat"), is_concatenation("aten::stack")
    (True, False)
    """
    return name == "aten::cat"


def is_attention(name: str) -> bool:
    """Whether an operator is attention, or the softmax within it.

    >>> is_attention("vllm::unified_attention"), is_attention("aten::relu")
    (True, False)
    """
    return _ATTENDS.fullmatch(name) is not None


def multiplies_weights(name: str) -> bool:
    """Whether an operator multiplies with an unbatched matrix, as weights are.

    >>> multiplies_weights("aten::linear"), multiplies_weights("aten::bmm")
    (True, False)
    """
    return _WEIGHTS.fullmatch(name) is not None


def formats_tensor(name: str) -> bool:
    """Whether a Python frame formats the values of a tensor as text.

    >>> formats_tensor("torch/_tensor_str.py(700): _str")
    True
    """
    return "torch/_tensor_str.py(" in name.replace("\\", "/")
