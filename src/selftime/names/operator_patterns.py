"""What names say of habits of a program: what it does in each step and could leave."""

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
    """Whether an annotation or a frame is the clearing of gradients.

    >>> clears_gradients("Optimizer.zero_grad#SGD.zero_grad")
    True
    >>> clears_gradients("torch/nn/modules/module.py(2901): zero_grad")
    True
    """
    return _ZERO_GRAD.match(name.replace("\\", "/")) is not None


def fills_with_zeros(name: str) -> bool:
    """Whether an operator fills tensors that exist with zeros.

    >>> fills_with_zeros("aten::_foreach_zero_"), fills_with_zeros("aten::zeros")
    (True, False)
    """
    return name in {"aten::zero_", "aten::_foreach_zero_"}


def is_nan_check(name: str) -> bool:
    """Whether an operator looks for what is not a number.

    >>> is_nan_check("aten::isnan"), is_nan_check("aten::nansum")
    (True, False)
    """
    return name == "aten::isnan"


def makes_dense_gradient(name: str) -> bool:
    """Whether an operator makes the gradient of a look-up as large as the whole table.

    >>> makes_dense_gradient("aten::embedding_dense_backward")
    True
    >>> makes_dense_gradient("aten::embedding_sparse_backward")
    False
    """
    return name == "aten::embedding_dense_backward"


def formats_stack(name: str) -> bool:
    """Whether a Python frame writes down the stack, as anomaly mode does at every operator.

    >>> formats_stack("torch/fx/traceback.py(497): format_stack")
    True
    """
    return _STACK.match(name.replace("\\", "/")) is not None


def explicit_collection(name: str) -> bool:
    """Whether a frame is the program's own call of the garbage collector.

    >>> explicit_collection("<built-in function collect>"), explicit_collection("Python GC")
    (True, False)
    """
    return name == "<built-in function collect>"


def is_data_parallel(name: str) -> bool:
    """Whether an annotation or a frame is `DataParallel`, and not its distributed successor.

    >>> is_data_parallel("DataParallel.forward")
    True
    >>> is_data_parallel("DistributedDataParallel.forward")
    False
    """
    return _DATA_PARALLEL.match(name.replace("\\", "/")) is not None


def takes_one_element(name: str) -> bool:
    """Whether an operator takes one index of a dimension, as `t[i]` does.

    >>> takes_one_element("aten::select"), takes_one_element("aten::index")
    (True, False)
    """
    return name == "aten::select"


def takes_part(name: str) -> bool:
    """Whether an operator takes a part of one dimension and leaves the rest.

    >>> takes_part("aten::slice"), takes_part("aten::select"), takes_part("aten::split")
    (True, True, False)
    """
    return name in {"aten::select", "aten::slice"}


def grows_by_copy(name: str) -> bool:
    """Whether an operator joins tensors to a new one.

    >>> grows_by_copy("aten::cat"), grows_by_copy("aten::stack")
    (True, False)
    """
    return name == "aten::cat"


def attends(name: str) -> bool:
    """Whether an operator is attention, or the softmax that it is made of.

    >>> attends("aten::_softmax"), attends("vllm::unified_attention"), attends("aten::relu")
    (True, True, False)
    """
    return _ATTENDS.fullmatch(name) is not None


def multiplies_weights(name: str) -> bool:
    """Whether an operator multiplies a matrix with one without a batch, as weights are.

    >>> multiplies_weights("aten::linear"), multiplies_weights("aten::bmm")
    (True, False)
    """
    return _WEIGHTS.fullmatch(name) is not None


def formats_tensor(name: str) -> bool:
    """Whether a Python frame writes the values of a tensor as text.

    >>> formats_tensor("torch/_tensor_str.py(700): _str")
    True
    """
    return "torch/_tensor_str.py(" in name.replace("\\", "/")
