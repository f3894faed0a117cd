"""Models the FLOPs and bytes of operators from the shapes and dtypes of their inputs.

Operations are counted as in textbooks: a multiply-add is two. Bytes are inputs read and outputs
written, each once, as if caches were perfect, so they are a lower bound. Where the trace lacks what
a formula needs, the call has no model. Each kind of operator has a module with its formulas and
their sources.
"""

from typing import Final

from selftime.analysis.models.attention_work import ATTENTION_MODELS
from selftime.analysis.models.convolution_work import CONVOLUTION_MODELS
from selftime.analysis.models.data_movement_work import MOVEMENT_MODELS, RECURRENCE_MODELS
from selftime.analysis.models.matrix_product_work import MATRIX_PRODUCT_MODELS
from selftime.analysis.models.pointwise_work import POINTWISE_MODELS
from selftime.analysis.models.recorded_operator_calls import (
    OperatorFamily,
    OperatorWork,
    OperatorWorkModel,
    RecordedOperatorCall,
    RecordedTensor,
    UnknownOperatorArgument,
)
from selftime.analysis.models.reduction_work import REDUCTION_MODELS

__all__ = [
    "COMPONENT_FAMILIES_BY_OPERATOR_FAMILY",
    "MATRIX_UNIT_OPERATOR_FAMILIES",
    "OPERATOR_WORK_MODELS",
    "OperatorFamily",
    "OperatorWork",
    "RecordedOperatorCall",
    "RecordedTensor",
    "UnknownOperatorArgument",
    "work_model_of_operator",
    "work_of_operator_call",
]

OPERATOR_WORK_MODELS: Final[dict[str, OperatorWorkModel]] = {
    **MATRIX_PRODUCT_MODELS,
    **CONVOLUTION_MODELS,
    **ATTENTION_MODELS,
    **POINTWISE_MODELS,
    **REDUCTION_MODELS,
    **MOVEMENT_MODELS,
    **RECURRENCE_MODELS,
}
"""Maps an operator's name, without `aten::`, to the function that computes its FLOPs and bytes."""

COMPONENT_FAMILIES_BY_OPERATOR_FAMILY: Final[dict[OperatorFamily, tuple[OperatorFamily, ...]]] = {
    "attention": ("attention", "product"),
    "convolution": ("convolution", "product"),
    "recurrence": ("recurrence", "product"),
    "product": ("product",),
    "norm": ("norm",),
    "softmax": ("softmax",),
    "reduction": ("reduction",),
    "pointwise": ("pointwise",),
    "movement": ("movement",),
}
"""Maps a family of operators to the families of inner operators that do its work. Where such an
inner operator runs, its FLOPs and bytes are counted and those of the outer operator are not.

So `linear` leaves its operations to the `addmm` that it calls, and attention in separate products
to these products. But a convolution that also copies an input computes itself, and both count.
"""

MATRIX_UNIT_OPERATOR_FAMILIES: Final[tuple[OperatorFamily, ...]] = (
    "attention",
    "convolution",
    "recurrence",
    "product",
)
"""Families of operators whose operations tensor or matrix cores can compute."""


def work_model_of_operator(operator_name: str) -> OperatorWorkModel | None:
    """Returns the function that models an operator's FLOPs and bytes; None if there is no model.

    >>> [work_model_of_operator(name) is not None for name in ("aten::add_", "aten::view", "train")]
    [True, False, False]
    """
    return (
        OPERATOR_WORK_MODELS.get(operator_name.removeprefix("aten::"))
        if "::" in operator_name
        else None
    )


def work_of_operator_call(operator_name: str, call: RecordedOperatorCall) -> OperatorWork | None:
    """Returns a call's FLOPs and bytes; None if it has no model or its arguments are unknown.

    >>> call = RecordedOperatorCall("[[2,3],[3,4]]", '["float","float"]')
    >>> found = work_of_operator_call("aten::mm", call)
    >>> found.flops, found.bytes, found.dtype
    (48, 104, 'float32')
    """
    model = work_model_of_operator(operator_name)
    if model is None:
        return None
    try:
        return model(call)
    except (UnknownOperatorArgument, ValueError, TypeError, IndexError, ZeroDivisionError):
        return None  # invalid shapes for the operator: its work is unknown
