"""Products with weights, and whether they make the tokens of a language model one by one."""

import json
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.advice.detectors.counted_steps import steps_counted
from selftime.advice.detectors.operators import outermost_operators
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.slice_arguments import arguments_of
from selftime.analysis.slice_filters import filter_by_name
from selftime.arrays import Ints
from selftime.trace import Trace

DECODED_ROWS: Final = 16
"""Products of at most so many rows fill a part of one tile of a tensor core: a token, or a few."""

MANY: Final = 2
"""From so many reads a token on, a line reads for one sequence, or one number, after the other."""

READ_ROWS: Final = 128
"""Up to so many rows a product on a device takes as long as it takes to read its weights.

An A100 does 156 operations while it reads a byte, in half precision one row of a weight's two; an
H100 twice as many, scalar units a tenth.
"""

READ_ROWS_ON_HOST: Final = 4
"""The same on a CPU: the first row takes as long as 3 to 5 of those that follow, measured."""


class _Product(NamedTuple):
    """What the shapes of a product with weights say."""

    rows: int
    """Of the first matrix: all its dimensions but the last."""
    inner: int
    """What is summed over."""
    columns: int
    """Of the result."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """Steps that make tokens one by one."""

    products: pl.DataFrame
    """The products of so few rows: columns of `weight_products`."""
    per_step: float
    """At most so many tokens of each sequence a step makes: 1, or all tokens of an answer.

    Told by the weights that are used least often, such as those of the vocabulary.
    """

    def reads_often(self, per_step: float) -> bool:
        """Whether the host reads so often that it must be several times a token."""
        return per_step >= MANY * self.per_step


@cached_per_trace
def weight_products(trace: Trace) -> pl.DataFrame:
    """Products with a matrix that has no batch, as weights have none, in order of time.

    Columns: those of `slices`; shapes and types as JSON text; rows, inner and columns.
    """
    found = filter_by_name(outermost_operators(trace), names.multiplies_weights)
    inputs = arguments_of(trace, "op_args", found["id"], "input_shapes", "input_types")
    told = found.hstack(
        inputs.select(
            shapes=pl.col("input_shapes").cast(pl.String),
            types=pl.col("input_types").cast(pl.String),
        )
    )
    texts = told.select("name", "shapes").unique().drop_nulls()
    rows = [
        (name, text, *product)
        for name, text in texts.with_columns(pl.col("name").cast(pl.String)).iter_rows()
        if (product := _product(name, text)) is not None
    ]
    kinds = dict.fromkeys(("rows", "inner", "columns"), pl.Int64)
    schema = {"name": pl.String, "shapes": pl.String, **kinds}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    named = told.with_columns(pl.col("name").cast(pl.String))
    return named.join(table, on=["name", "shapes"], maintain_order="left")


@cached_per_trace
def decoding(trace: Trace) -> Decoding | None:
    """How the steps make tokens; None if they do not make them one by one.

    Then most products have few rows, attention is beside them, and nothing computes gradients.
    """
    if filter_by_name(trace.slices, names.is_backward_node).height:
        return None
    products = weight_products(trace)
    few = products.filter(pl.col("rows") <= DECODED_ROWS)
    if 2 * few.height <= products.height:
        return None
    if not filter_by_name(outermost_operators(trace), names.is_attention).height:
        return None
    weights = few.group_by("inner", "columns").len()["len"].to_list()
    steps = steps_counted(trace)
    often = [count / steps for count in weights if count >= steps]
    return Decoding(few, min(often, default=1.0))


def share_of_rows(few: Ints, every: Ints, *, on_device: bool) -> NDArray[np.float64]:
    """The share of their time that products with weights take if few rows are left of all.

    >>> share_of_rows(np.array([1, 1]), np.array([100, 512]), on_device=True).tolist()
    [1.0, 0.25]
    """
    read = READ_ROWS if on_device else READ_ROWS_ON_HOST
    return np.asarray(np.maximum(few, read) / np.maximum(every, read), np.float64)


def _product(name: str, shapes: str) -> _Product | None:
    """The sizes of a product with weights; None for what has no such weights.

    >>> _product("aten::linear", "[[1,7,64],[256,64],[256]]")
    _Product(rows=7, inner=64, columns=256)
    >>> _product("aten::addmm", "[[256],[7,64],[64,256],[],[]]")
    _Product(rows=7, inner=64, columns=256)
    >>> _product("aten::matmul", "[[1,8,7,64],[1,8,64,7]]") is None
    True
    """
    try:
        sizes = [[int(n) for n in d] for d in json.loads(shapes) if isinstance(d, list) and d]
    except (ValueError, TypeError):
        return None
    skip = 1 if name.endswith("::addmm") else 0
    if len(sizes) < 2 + skip:
        return None
    first, second = sizes[skip : skip + 2]
    if len(second) != 2 or len(first) < 2:
        return None
    inner = first[-1]
    columns, summed = second if name.endswith("::linear") else reversed(second)
    if summed != inner:
        return None
    rows = 1
    for size in first[:-1]:
        rows *= size
    return _Product(rows, inner, columns)
