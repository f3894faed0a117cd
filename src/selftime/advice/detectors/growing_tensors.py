"""Finds source lines that extend a tensor by copying all of it, such as a key-value cache."""

import json
from typing import Final, NamedTuple

import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import outermost_operators
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import arguments_of_slices
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace

MIN_LENGTHS_OF_GROWING_TENSOR: Final = 3
"""Smallest number of different lengths for a tensor to count as growing; two may be two input
sizes."""


class _TensorAppend(NamedTuple):
    """A concatenation of two tensors that appends the smaller to the larger along one dimension."""

    fixed: str
    """Sizes of the other dimensions, as text; they are equal in all appends to one tensor."""
    size: int
    """Length of the larger tensor along the appended dimension, in elements."""
    piece: int
    """Length of the smaller tensor along the appended dimension, in elements."""


@cached_per_trace
def growing_tensor_lines(trace: Trace) -> tuple[LineSlices, ...]:
    """Returns the source lines that repeatedly append to a tensor, with their operators."""
    return tuple(
        place
        for place in slices_by_line(trace, _appending_operators(trace))
        if _do_appends_extend_last_result(place.slices)
    )


def _appending_operators(trace: Trace) -> pl.DataFrame:
    """Returns the concatenations that append a smaller tensor to a larger one, with sizes."""
    found = filter_by_name(outermost_operators(trace), names.is_concatenation)
    shapes = arguments_of_slices(trace, "op_args", found["id"], "input_shapes")["input_shapes"]
    told = found.with_columns(shapes=shapes.cast(pl.String))
    texts = told["shapes"].drop_nulls().unique().to_list()
    rows = [
        (text, *join) for text in texts if (join := _tensor_append_from_shapes(text)) is not None
    ]
    kinds = {"shapes": pl.String, "fixed": pl.String, "size": pl.Int64, "piece": pl.Int64}
    table = pl.DataFrame(rows, schema=kinds, orient="row")
    return told.join(table, on="shapes", maintain_order="left").drop("shapes")


def _tensor_append_from_shapes(shapes: str) -> _TensorAppend | None:
    """Returns the sizes of a two-tensor concatenation; None unless one dimension differs."""
    try:
        first, piece = json.loads(shapes)[0]
        sizes = [(int(a), int(b)) for a, b in zip(first, piece, strict=True)]
    except (ValueError, TypeError, IndexError, KeyError):
        return None
    unlike = [at for at, (a, b) in enumerate(sizes) if a != b]
    if len(unlike) != 1 or sizes[unlike[0]][1] > sizes[unlike[0]][0]:
        return None
    fixed = [str(a) if at != unlike[0] else "*" for at, (a, _) in enumerate(sizes)]
    return _TensorAppend(",".join(fixed), *sizes[unlike[0]])


def _do_appends_extend_last_result(appends: pl.DataFrame) -> bool:
    """Returns whether, by tensor lengths, appends repeatedly extend an earlier append's result."""
    for _, own in appends.group_by("fixed"):
        lengths = own.group_by("size").agg(pl.col("piece").max()).sort("size")
        sizes, pieces = lengths["size"].to_list(), lengths["piece"].to_list()
        follow = [a + p == b for a, p, b in zip(sizes, pieces, sizes[1:], strict=False)]
        if (
            len(sizes) >= MIN_LENGTHS_OF_GROWING_TENSOR
            and sum(follow) >= MIN_LENGTHS_OF_GROWING_TENSOR - 1
        ):
            return True
    return False
