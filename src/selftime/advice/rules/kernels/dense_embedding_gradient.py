"""The gradient of a look-up is as large as its table.

## What it means
The backward pass of an embedding makes a tensor as large as the whole table, fills it with zeros,
and adds the gradients of the few rows that the batch had.

## Why it costs
The table has many more rows than a batch looks up: nearly all of what is written is zeros, and the
optimizer then reads them again. On a GPU the places are sorted as well.

## What to do
`nn.Embedding(..., sparse=True)` with an optimizer that takes sparse gradients: `SGD`, `SparseAdam`,
`Adagrad`. `SparseAdam` moves only rows that were looked up, which is another way to learn. Or make
the table smaller. A table that is also the output layer's weight has a dense gradient anyway.

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
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, Where, rule
from selftime.advice.detectors.changes import change
from selftime.advice.detectors.counted_steps import steps_recorded
from selftime.advice.detectors.operators import recorded_operators, sizes
from selftime.advice.detectors.places import by_line
from selftime.advice.gate import gate
from selftime.advice.pricing import priced
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace

LEAST_SHARE: Final = 0.1
"""Of the step, before another optimizer is worth its price."""

ROWS: Final = 2
"""The place of the number of rows of the table among the operator's arguments."""

MANY_ROWS: Final = 4
"""So many times the rows that were looked up: with fewer a sparse gradient, which is sorted and
summed up by row, moves as much as a dense one."""

PASSES: Final = 3
"""Over the rows that were looked up: read, sort and write."""


@rule(covers=("E11",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    found = _gradients(trace)
    if limits is None or not found.height:
        yield Checked(
            "no gradient of a look-up is much larger than what was looked up", is_absent=True
        )
        return
    for place, part in by_line(trace, found):
        keep = float(sum(part["moved"].to_list()) / max(sum(part["written"].to_list()), 1))
        saving = priced(trace, limits, change(trace, part, keep), most=(change(trace, part, 0.0),))
        if (saving.upper_ms or 0.0) < LEAST_SHARE * limits.step_ms:
            text = f"dense gradients of tables take below {LEAST_SHARE:.0%} of the step"
            yield Checked(text, limits.unrecorded(saving.upper_ms or 0.0))
        else:
            yield limits.judge(_finding(trace, part, place, saving, keep))


def _gradients(trace: Trace) -> pl.DataFrame:
    """Gradients of tables with many more rows: rows, looked; and numbers moved and written."""
    table = filter_by_name(recorded_operators(trace), names.makes_dense_gradient)
    keys = ["input_shapes", "concrete_inputs"]
    table = table.with_columns(pl.col(*keys).cast(pl.String))
    told = [
        (*texts, *read)
        for texts in table.select(keys).unique().iter_rows()
        if (read := _read(*texts))
    ]
    kinds = dict.fromkeys(("rows", "looked", "moved", "written"), pl.Int64)
    known = pl.DataFrame(told, schema={**dict.fromkeys(keys, pl.String), **kinds}, orient="row")
    return table.join(known, on=keys, how="inner", maintain_order="left")


def _read(shapes: str | None, concrete: str | None) -> tuple[int, int, int, int] | None:
    """Rows of the table, rows looked up, numbers that these are, and numbers of the table."""
    given = sizes(shapes)
    if len(given) < 2 or not given[0]:
        return None
    try:
        read = json.loads(concrete or "[]")
        rows = int(read[ROWS])
    except (ValueError, TypeError, IndexError, KeyError):
        return None
    looked, width = prod(given[1]), given[0][-1]
    if not 0 < rows * width < 1 << 58 or looked * MANY_ROWS > rows:
        return None
    return rows, looked, PASSES * looked * width, (rows + 2 * looked) * width


def _finding(
    trace: Trace, part: pl.DataFrame, place: Where, saving: Saving, keep: float
) -> Finding:
    rows, looked = part.select("rows", "looked").row(0)
    return Finding(
        title=f"The gradient of a look-up of {looked} rows has all {rows} of its table",
        where=place,
        count_per_step=part.height / steps_recorded(trace),
        saving=saving,
        confidence="medium",
        semantics="training",
        evidence=(
            Evidence("rows of the table", rows, "count"),
            Evidence("rows looked up at most", looked, "count"),
            Evidence("share of the bytes that sparse gradients move", keep, "ratio"),
        ),
        fix=Fix(
            "Ask for sparse gradients, and give the table an optimizer that takes them; it saves "
            "what the other optimizer does with the zeros as well. Not where the table is also "
            "the weight of a layer.",
            "self.words = nn.Embedding(rows, width, sparse=True)\n"
            "sparse = torch.optim.SparseAdam(self.words.parameters())",
        ),
        changes=(change(trace, part, keep),),
    )
