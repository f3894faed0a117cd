"""Tensors that are copied whole, step after step, to append to them."""

import json
from typing import Final, NamedTuple

import polars as pl

from selftime import names
from selftime.advice.detectors.operators import outermost_operators
from selftime.advice.detectors.places import Place, places
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.slice_arguments import arguments_of
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace

LEAST_LENGTHS: Final = 3
"""Two lengths may be two kinds of input; three that follow each other are a sequence."""


class _Join(NamedTuple):
    """How an operator joins a tensor and a piece: along which of the sizes, from which length."""

    fixed: str
    """The sizes of the other dimensions, by which caches are told apart."""
    size: int
    piece: int


@cached_per_trace
def growing_caches(trace: Trace) -> tuple[Place, ...]:
    """The lines that append to a tensor, each time to what it has become; with size and piece."""
    return tuple(place for place in places(trace, _joins(trace)) if _grows(place.slices))


def _joins(trace: Trace) -> pl.DataFrame:
    """Operators that append a smaller piece to a tensor; with fixed, size and piece."""
    found = filter_by_name(outermost_operators(trace), names.is_concatenation)
    shapes = arguments_of(trace, "op_args", found["id"], "input_shapes")["input_shapes"]
    told = found.with_columns(shapes=shapes.cast(pl.String))
    texts = told["shapes"].drop_nulls().unique().to_list()
    rows = [(text, *join) for text in texts if (join := _join(text)) is not None]
    kinds = {"shapes": pl.String, "fixed": pl.String, "size": pl.Int64, "piece": pl.Int64}
    table = pl.DataFrame(rows, schema=kinds, orient="row")
    return told.join(table, on="shapes", maintain_order="left").drop("shapes")


def _join(text: str) -> _Join | None:
    """What the shapes say: the first tensor and one piece that differ in one dimension."""
    try:
        first, piece = json.loads(text)[0]
        sizes = [(int(a), int(b)) for a, b in zip(first, piece, strict=True)]
    except (ValueError, TypeError, IndexError, KeyError):
        return None
    unlike = [at for at, (a, b) in enumerate(sizes) if a != b]
    if len(unlike) != 1 or sizes[unlike[0]][1] > sizes[unlike[0]][0]:
        return None
    fixed = [str(a) if at != unlike[0] else "*" for at, (a, _) in enumerate(sizes)]
    return _Join(",".join(fixed), *sizes[unlike[0]])


def _grows(joins: pl.DataFrame) -> bool:
    """Whether the lengths follow each other: each is the one before with its piece."""
    for _, own in joins.group_by("fixed"):
        lengths = own.group_by("size").agg(pl.col("piece").max()).sort("size")
        sizes, pieces = lengths["size"].to_list(), lengths["piece"].to_list()
        follow = [a + p == b for a, p, b in zip(sizes, pieces, sizes[1:], strict=False)]
        if len(sizes) >= LEAST_LENGTHS and sum(follow) >= LEAST_LENGTHS - 1:
            return True
    return False
