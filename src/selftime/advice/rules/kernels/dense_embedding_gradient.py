"""The gradient of an embedding is as large as the whole embedding table.

## What it means
The backward pass of an embedding makes a tensor as large as the whole table, fills it with zeros,
and adds the gradients of the few rows that the batch had.

In the trace: `aten::embedding_dense_backward` with four times as many rows of the table as were
looked up, or more.

## Why it costs
The table has many more rows than a batch looks up: nearly all of what is written is zeros, and the
optimizer then reads them again. On a GPU the indices are sorted as well.

## What to do
`nn.Embedding(..., sparse=True)` with an optimizer that takes sparse gradients: `SGD`, `SparseAdam`,
`Adagrad`. `SparseAdam` moves only rows that were looked up, which is another way to learn. Or make
the table smaller. A table that is also the output layer's weight has a dense gradient anyway.

The estimate leaves the share of the bytes that a sparse gradient moves.

## Fires on
A table of 100,000 rows, of which a batch has 512.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | fmmmmmbbbbfmmmmmbbbbfmmmmmbbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    f = aten::embedding; input_shapes = [[100000,64],[8,64],[],[],[]]; line = words.py:7 forward
    m = aten::mm; input_shapes = [[64,64],[64,64]]
    b = aten::embedding_dense_backward; input_shapes = [[8,64,64],[8,64],[],[],[]]; input_types = ["float","long int","Scalar","Scalar","Scalar"]; concrete_inputs = ["","","100000","-1","False"]; line = words.py:7 forward

## Silent on
A table whose rows a batch has nearly all.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | fmmmmmbbbbfmmmmmbbbbfmmmmmbbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    f = aten::embedding; input_shapes = [[600,64],[8,64],[],[],[]]
    m = aten::mm; input_shapes = [[64,64],[64,64]]
    b = aten::embedding_dense_backward; input_shapes = [[8,64,64],[8,64],[],[],[]]; input_types = ["float","long int","Scalar","Scalar","Scalar"]; concrete_inputs = ["","","600","-1","False"]
"""  # noqa: E501 - what a letter stands for is on one line

import json
from collections.abc import Iterator
from math import prod
from typing import Final, NamedTuple

import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import operators_in_counted_steps, parse_sizes
from selftime.advice.detectors.counted_steps import recorded_step_count
from selftime.advice.detectors.operator_changes import change_shortening_operators
from selftime.advice.detectors.source_lines import operators_by_line
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.savings.estimates import estimated_saving_of_recorded_step
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace
from selftime.units import whole_percent_text

MIN_SAVED_SHARE_OF_STEP: Final = 0.1
"""Smallest share of the step that sparse gradients must save to report, as they need another
optimizer."""

NUM_WEIGHTS_ARGUMENT_INDEX: Final = 2
"""Index of the argument `num_weights` (number of table rows) of `embedding_dense_backward`."""

MIN_TABLE_ROWS_PER_LOOKED_UP_ROW: Final = 4
"""Smallest ratio of the table's rows to the rows looked up to report; with a smaller ratio a sparse
gradient moves as many bytes as a dense one."""

SPARSE_GRADIENT_MEMORY_PASSES: Final = 3
"""Number of times that a sparse gradient moves each row looked up: to read, sort and write."""


@rule(covers=("E11",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    gradients = _dense_gradient_operators(trace)
    if limits is None or not gradients.height:
        yield Checked(
            "no gradient of an embedding is much larger than the rows looked up", is_absent=True
        )
        return
    for location, gradients_of_line in operators_by_line(trace, gradients):
        sparse_to_dense_bytes_ratio = float(
            sum(gradients_of_line["moved"].to_list())
            / max(sum(gradients_of_line["written"].to_list()), 1)
        )
        claim = RemovalClaim(
            (change_shortening_operators(trace, gradients_of_line, sparse_to_dense_bytes_ratio),),
            largest_changes=(change_shortening_operators(trace, gradients_of_line, 0.0),),
        )
        upper = estimated_saving_of_recorded_step(trace, claim).upper_ms
        if upper < MIN_SAVED_SHARE_OF_STEP * limits.step_ms:
            least = whole_percent_text(MIN_SAVED_SHARE_OF_STEP)
            text = (
                f"dense gradients of embedding tables take less than {least} of the recorded step"
            )
            yield Checked(text, upper, is_slowed=not trace.device_args.height)
        else:
            yield _finding(trace, gradients_of_line, location, claim, sparse_to_dense_bytes_ratio)


def _dense_gradient_operators(trace: Trace) -> pl.DataFrame:
    """Returns the operators that compute dense gradients of large embedding tables.

    Columns: rows (of the table), looked (rows looked up), and how many numbers a sparse (moved) and
    a dense gradient (written) move.
    """
    table = filter_by_name(operators_in_counted_steps(trace), names.makes_dense_gradient)
    keys = ["input_shapes", "concrete_inputs"]
    table = table.with_columns(pl.col(*keys).cast(pl.String))
    rows = [
        (*texts, *sizes_of_call)
        for texts in table.select(keys).unique().iter_rows()
        if (sizes_of_call := _embedding_gradient_sizes(*texts))
    ]
    kinds = dict.fromkeys(("rows", "looked", "moved", "written"), pl.Int64)
    sizes = pl.DataFrame(rows, schema={**dict.fromkeys(keys, pl.String), **kinds}, orient="row")
    return table.join(sizes, on=keys, how="inner", maintain_order="left")


class _EmbeddingGradientSizes(NamedTuple):
    """Sizes of an embedding's gradient: table rows, rows looked up, and elements moved."""

    table_rows: int
    looked_up_rows: int
    sparse_gradient_elements: int
    dense_gradient_elements: int


def _embedding_gradient_sizes(
    input_shapes: str | None, concrete_inputs: str | None
) -> _EmbeddingGradientSizes | None:
    """Returns the sizes of an embedding's gradient; None if unknown or if the table is small."""
    sizes = parse_sizes(input_shapes)
    if len(sizes) < 2 or not sizes[0]:
        return None
    try:
        values = json.loads(concrete_inputs or "[]")
        rows = int(values[NUM_WEIGHTS_ARGUMENT_INDEX])
    except (ValueError, TypeError, IndexError, KeyError):
        return None
    looked, width = prod(sizes[1]), sizes[0][-1]
    if not 0 < rows * width < 1 << 58 or looked * MIN_TABLE_ROWS_PER_LOOKED_UP_ROW > rows:
        return None
    return _EmbeddingGradientSizes(
        table_rows=rows,
        looked_up_rows=looked,
        sparse_gradient_elements=SPARSE_GRADIENT_MEMORY_PASSES * looked * width,
        dense_gradient_elements=(rows + 2 * looked) * width,
    )


def _finding(
    trace: Trace,
    gradients: pl.DataFrame,
    location: Where,
    claim: RemovalClaim,
    sparse_to_dense_bytes_ratio: float,
) -> Finding:
    rows, looked = gradients.select("rows", "looked").row(0)
    return Finding(
        title=f"The gradient of an embedding of {looked} rows has all {rows} rows of the table",
        where=location,
        count_per_step=gradients.height / recorded_step_count(trace),
        claim=claim,
        confidence="medium",
        semantics="training",
        evidence=(
            Evidence("rows of the embedding table", rows, "count"),
            Evidence("rows looked up in a call, at most", looked, "count"),
            Evidence(
                "bytes that sparse gradients move, as a share of dense ones",
                sparse_to_dense_bytes_ratio,
                "ratio",
            ),
        ),
        fix=Fix(
            "Use sparse gradients, and an optimizer for the table that accepts them; this also "
            "saves the optimizer's work on zeros. Not where the table is also the weight of "
            "another layer.",
            "self.words = nn.Embedding(rows, width, sparse=True)\n"
            "sparse = torch.optim.SparseAdam(self.words.parameters())",
        ),
    )
