"""Recognises by name operators and Python frames that waste time, such as anomaly mode's."""

import re
from typing import Final

_ZERO_GRAD_SLICE: Final = re.compile(
    r"Optimizer\.zero_grad#|(?:.*/)?torch/.*\.py\(\d+\): zero_grad$"
)
_STACK_FORMATTING_FRAME: Final = re.compile(
    r"(?:.*/)?(?:torch/fx/)?traceback\.py\(\d+\): format_stack$"
)
_DATA_PARALLEL_SLICE: Final = re.compile(
    r"DataParallel\.forward|(?:.*/)?torch/nn/parallel/data_parallel\.py\(\d+\): forward$"
)
_ATTENTION_OPERATOR: Final = re.compile(r"\w+::\w*(?:attention|flash|attn)\w*")
_SOFTMAX_OPERATOR: Final = re.compile(r"aten::_?(?:softmax|safe_softmax)")
_LANGUAGE_MODEL_OPERATOR: Final = re.compile(r"aten::(?:embedding|bmm|baddbmm)")
_WEIGHT_PRODUCT_OPERATOR: Final = re.compile(r"aten::(?:addmm|mm|linear|matmul|mv|addmv)")


def clears_gradients(slice_name: str) -> bool:
    """Returns whether an annotation or a Python frame is a call of `zero_grad`.

    >>> clears_gradients("Optimizer.zero_grad#SGD.zero_grad")
    True
    >>> clears_gradients("torch/nn/modules/module.py(2901): zero_grad")
    True
    """
    return _ZERO_GRAD_SLICE.match(slice_name.replace("\\", "/")) is not None


def fills_with_zeros(operator: str) -> bool:
    """Returns whether an operator overwrites existing tensors with zeros.

    >>> fills_with_zeros("aten::_foreach_zero_"), fills_with_zeros("aten::zeros")
    (True, False)
    """
    return operator in {"aten::zero_", "aten::_foreach_zero_"}


def is_nan_check(operator: str) -> bool:
    """Returns whether an operator searches for NaN.

    >>> is_nan_check("aten::isnan"), is_nan_check("aten::nansum")
    (True, False)
    """
    return operator == "aten::isnan"


def makes_dense_gradient(operator: str) -> bool:
    """Returns whether an operator makes an embedding's gradient dense: as large as its weight.

    >>> makes_dense_gradient("aten::embedding_dense_backward")
    True
    >>> makes_dense_gradient("aten::embedding_sparse_backward")
    False
    """
    return operator == "aten::embedding_dense_backward"


def formats_stack(frame_name: str) -> bool:
    """Returns whether a Python frame formats the stack, as anomaly mode does for every operator.

    >>> formats_stack("torch/fx/traceback.py(497): format_stack")
    True
    """
    return _STACK_FORMATTING_FRAME.match(frame_name.replace("\\", "/")) is not None


def is_explicit_garbage_collection(frame_name: str) -> bool:
    """Returns whether a Python frame is the program's own call of `gc.collect()`.

    >>> names = ("<built-in function collect>", "Python GC")
    >>> [is_explicit_garbage_collection(name) for name in names]
    [True, False]
    """
    return frame_name == "<built-in function collect>"


def is_data_parallel_slice(slice_name: str) -> bool:
    """Returns whether a slice belongs to `DataParallel`, not to `DistributedDataParallel`.

    >>> is_data_parallel_slice("DataParallel.forward")
    True
    >>> is_data_parallel_slice("DistributedDataParallel.forward")
    False
    """
    return _DATA_PARALLEL_SLICE.match(slice_name.replace("\\", "/")) is not None


def selects_one_index(operator: str) -> bool:
    """Returns whether an operator selects one index of a dimension, as `t[i]` does.

    >>> selects_one_index("aten::select"), selects_one_index("aten::index")
    (True, False)
    """
    return operator == "aten::select"


def takes_apart(operator: str) -> bool:
    """Returns whether an operator takes a tensor apart along a dimension, as `for row in t` does.

    >>> takes_apart("aten::unbind"), takes_apart("aten::split")
    (True, False)
    """
    return operator == "aten::unbind"


def selects_part_of_dimension(operator: str) -> bool:
    """Returns whether an operator selects a part of one dimension, by index or slice.

    >>> [selects_part_of_dimension(name) for name in ("aten::slice", "aten::select", "aten::split")]
    [True, True, False]
    """
    return operator in {"aten::select", "aten::slice"}


def is_concatenation(operator: str) -> bool:
    """Returns whether an operator concatenates tensors into a new one.

    >>> is_concatenation("aten::cat"), is_concatenation("aten::stack")
    (True, False)
    """
    return operator == "aten::cat"


def is_attention_operator(operator: str) -> bool:
    """Returns whether an operator computes attention as a whole.

    >>> is_attention_operator("vllm::unified_attention"), is_attention_operator("aten::softmax")
    (True, False)
    """
    return _ATTENTION_OPERATOR.fullmatch(operator) is not None


def is_softmax_operator(operator: str) -> bool:
    """Returns whether an operator is a softmax: one of attention, of tokens or of actions.

    >>> is_softmax_operator("aten::_softmax"), is_softmax_operator("aten::log_softmax")
    (True, False)
    """
    return _SOFTMAX_OPERATOR.fullmatch(operator) is not None


def embeds_or_multiplies_batches(operator: str) -> bool:
    """Returns whether an operator looks up an embedding, or multiplies batches of matrices.

    A language model does one of both: its tokens are embedded, and attention without an operator of
    its own multiplies the queries of each head by its keys.

    >>> [embeds_or_multiplies_batches(name) for name in ("aten::embedding", "aten::linear")]
    [True, False]
    """
    return _LANGUAGE_MODEL_OPERATOR.fullmatch(operator) is not None


def multiplies_weights(operator: str) -> bool:
    """Returns whether an operator multiplies by an unbatched matrix, as layers do by weights.

    >>> multiplies_weights("aten::linear"), multiplies_weights("aten::bmm")
    (True, False)
    """
    return _WEIGHT_PRODUCT_OPERATOR.fullmatch(operator) is not None


def formats_tensor(frame_name: str) -> bool:
    """Returns whether a Python frame formats the values of a tensor as text.

    >>> formats_tensor("torch/_tensor_str.py(700): _str")
    True
    """
    return "torch/_tensor_str.py(" in frame_name.replace("\\", "/")
