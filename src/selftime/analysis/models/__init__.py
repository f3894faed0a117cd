"""What operators have to do, from the shapes and dtypes of their inputs: operations and bytes.

Operations count the textbook's way: a multiply-add is two. Bytes count inputs read and outputs
written, each once, as if caches were perfect: a lower bound. Where the trace does not tell what a
formula needs, nothing is said of the call. One module for each kind of operator; formulas and
where they come from stand there.
"""

from typing import Final

from selftime.analysis.models.attention import ATTENTION
from selftime.analysis.models.calls import Call, Family, Model, Tensor, Untold, Work
from selftime.analysis.models.convolution import CONVOLUTIONS
from selftime.analysis.models.movement import MOVEMENT, RECURRENCE
from selftime.analysis.models.pointwise import POINTWISE
from selftime.analysis.models.products import PRODUCTS
from selftime.analysis.models.reductions import REDUCTIONS

__all__ = [
    "BUILT_FROM",
    "MATRIX_FAMILIES",
    "MODELS",
    "Call",
    "Family",
    "Tensor",
    "Work",
    "model_of",
    "work",
]

MODELS: Final[dict[str, Model]] = {
    **PRODUCTS,
    **CONVOLUTIONS,
    **ATTENTION,
    **POINTWISE,
    **REDUCTIONS,
    **MOVEMENT,
    **RECURRENCE,
}
"""Every model, by the operator's name without `aten::`."""

BUILT_FROM: Final[dict[Family, tuple[Family, ...]]] = {
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
"""What an operator of a family may be made of: if one of those runs within it, that one counts.

So `linear` leaves its operations to the `addmm` that it calls, and attention in separate products
to these; but a convolution that also copies an input still computes, and both count.
"""

MATRIX_FAMILIES: Final[tuple[Family, ...]] = (
    "attention",
    "convolution",
    "recurrence",
    "product",
)
"""Families whose operations tensor or matrix cores can do."""


def model_of(name: str) -> Model | None:
    """The model of an operator, by its name.

    >>> model_of("aten::add_") is not None, model_of("aten::view"), model_of("train")
    (True, None, None)
    """
    return MODELS.get(name.removeprefix("aten::")) if "::" in name else None


def work(name: str, call: Call) -> Work | None:
    """What one call has to do; None without a model, or if the trace does not tell enough.

    >>> found = work("aten::mm", Call("[[2,3],[3,4]]", '["float","float"]'))
    >>> found.flops, found.bytes, found.dtype
    (48, 104, 'float32')
    """
    model = model_of(name)
    if model is None:
        return None
    try:
        return model(call)
    except (Untold, ValueError, TypeError, IndexError, ZeroDivisionError):
        return None  # shapes that do not fit the operator: nothing is known
