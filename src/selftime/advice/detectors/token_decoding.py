"""Finds matrix products with weights, and steps in which a language model decodes tokens."""

import json
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.advice.detectors.counted_operators import (
    outermost_operators,
    outermost_operators_of_recording,
)
from selftime.advice.detectors.counted_steps import counted_step_count, slices_in_counted_steps
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import arguments_of_slices
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.array_types import Ints
from selftime.trace import Trace

MAX_ROWS_OF_DECODING_PRODUCT: Final = 16
"""Largest number of rows of a matrix product that computes one or a few tokens; so few rows fill
only part of one tensor core tile."""

MIN_REPEATED_READS_PER_TOKEN: Final = 2
"""Smallest number of reads per token from which a source line counts as reading the device
repeatedly for each token, such as one value at a time."""

MAX_ROWS_BOUND_BY_WEIGHT_READS: Final = 128
"""Largest number of rows with which a matrix product on a device takes the time to read its
weights.

An A100 does 156 operations while it reads a byte, in half precision one row of a weight's two; an
H100 twice as many, scalar units a tenth.
"""

MAX_ROWS_BOUND_BY_WEIGHT_READS_ON_CPU: Final = 4
"""Largest number of rows with which a matrix product on a CPU takes the time to read its weights:
as measured, the first row takes as long as 3 to 5 further rows."""

RARE_END_CHECK_FIX_CODE: Final = """ended |= token == end_of_text        # stays on the device
if position % 16 == 0 and bool(ended.all()):
    break                            # one wait in sixteen tokens"""
"""Example code of the fix in text generation: checks for the end of the text every 16 tokens, and
drops tokens made after the end."""


class _MatrixProductSizes(NamedTuple):
    """The sizes of the product of an input matrix and a weight matrix."""

    rows: int
    """Number of rows of the input matrix: the product of all its dimensions but the last."""
    inner: int
    """The size of the dimension that is summed over."""
    columns: int
    """The number of columns of the result."""


@dataclass(frozen=True, slots=True)
class TokenDecoding:
    """Matrix products, and number of tokens, of steps that decode tokens one by one."""

    products: pl.DataFrame
    """Matrix products with few rows; columns as in `weight_matrix_products`."""
    tokens_per_step: float
    """Largest number of tokens that a step decodes for one sequence: 1, or all of an answer.

    It is how often the least used weights are used, such as those of the vocabulary.
    """

    def reads_several_times_per_token(self, reads_per_step: float) -> bool:
        """Returns whether `reads_per_step` are at least two for each decoded token."""
        return reads_per_step >= MIN_REPEATED_READS_PER_TOKEN * self.tokens_per_step


@cached_per_trace
def weight_matrix_products(trace: Trace) -> pl.DataFrame:
    """Returns matrix products of the measured steps whose second matrix may be a weight, by time.

    Columns: those of `weight_matrix_products_of_recording`.
    """
    return slices_in_counted_steps(trace, weight_matrix_products_of_recording(trace))


@cached_per_trace
def weight_matrix_products_of_recording(trace: Trace) -> pl.DataFrame:
    """Returns matrix products, by time, whose second matrix is 2-D and thus may be a weight.

    Columns: those of `slices`; shapes and types as JSON text; rows, inner and columns.
    """
    operators = outermost_operators_of_recording(trace)
    found = filter_by_name(operators, names.multiplies_weights)
    inputs = arguments_of_slices(trace, "op_args", found["id"], "input_shapes", "input_types")
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
        if (product := _weight_product_sizes(name, text)) is not None
    ]
    kinds = dict.fromkeys(("rows", "inner", "columns"), pl.Int64)
    schema = {"name": pl.String, "shapes": pl.String, **kinds}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    named = told.with_columns(pl.col("name").cast(pl.String))
    return named.join(table, on=["name", "shapes"], maintain_order="left")


@cached_per_trace
def token_decoding_of(trace: Trace) -> TokenDecoding | None:
    """Returns how many tokens a step decodes; None if steps do not decode tokens one by one.

    They do if most products have few rows, nothing computes gradients, and a language model runs:
    one of its attention, or a softmax and an embedding or a product of batches. A softmax alone is
    also one of a policy's actions.
    """
    if filter_by_name(trace.slices, names.is_backward_node).height:
        return None
    products = weight_matrix_products(trace)
    few = products.filter(pl.col("rows") <= MAX_ROWS_OF_DECODING_PRODUCT)
    if 2 * few.height <= products.height:
        return None
    if not _runs_language_model(trace):
        return None
    weights = few.group_by("inner", "columns").len()["len"].to_list()
    steps = counted_step_count(trace)
    often = [count / steps for count in weights if count >= steps]
    return TokenDecoding(few, min(often, default=1.0))


def _runs_language_model(trace: Trace) -> bool:
    outermost = outermost_operators(trace)
    if filter_by_name(outermost, names.is_attention_operator).height:
        return True
    has_softmax = filter_by_name(outermost, names.is_softmax_operator).height > 0
    host = slices_on(trace, "host")
    return has_softmax and filter_by_name(host, names.embeds_or_multiplies_batches).height > 0


def time_share_with_fewer_rows(
    kept_rows: Ints, recorded_rows: Ints, *, on_device: bool
) -> NDArray[np.float64]:
    """Returns for each matrix product the share of its time that it takes with `kept_rows` rows.

    >>> time_share_with_fewer_rows(np.array([1, 1]), np.array([100, 512]), on_device=True).tolist()
    [1.0, 0.25]
    """
    read = MAX_ROWS_BOUND_BY_WEIGHT_READS if on_device else MAX_ROWS_BOUND_BY_WEIGHT_READS_ON_CPU
    return np.asarray(np.maximum(kept_rows, read) / np.maximum(recorded_rows, read), np.float64)


def _weight_product_sizes(operator: str, shapes: str) -> _MatrixProductSizes | None:
    """Returns the sizes of a matrix product; None if its second matrix cannot be a weight.

    >>> _weight_product_sizes("aten::linear", "[[1,7,64],[256,64],[256]]")
    _MatrixProductSizes(rows=7, inner=64, columns=256)
    >>> _weight_product_sizes("aten::addmm", "[[256],[7,64],[64,256],[],[]]")
    _MatrixProductSizes(rows=7, inner=64, columns=256)
    >>> _weight_product_sizes("aten::matmul", "[[1,8,7,64],[1,8,64,7]]") is None
    True
    """
    try:
        sizes = [[int(n) for n in d] for d in json.loads(shapes) if isinstance(d, list) and d]
    except (ValueError, TypeError):
        return None
    skip = 1 if operator.endswith("::addmm") else 0
    if len(sizes) < 2 + skip:
        return None
    first, second = sizes[skip : skip + 2]
    if len(second) != 2 or len(first) < 2:
        return None
    inner = first[-1]
    columns, summed = second if operator.endswith("::linear") else reversed(second)
    if summed != inner:
        return None
    rows = 1
    for size in first[:-1]:
        rows *= size
    return _MatrixProductSizes(rows, inner, columns)
