"""A reduction on the CPU runs far below the memory's rate.

## What it means
A reduction makes one result of some elements. Some take tens of ns for each result, or several for
each element, where memory would deliver the elements in a fraction of that.

In the trace: `linalg_vector_norm`, `var`, `std`, `softmax`, `log_softmax`, `sum` or `mean` along
dimensions that are recorded, in a forward pass, at less than a tenth of the rate at which a copy
moves as many bytes, in 5 % of the step or more together at a line.

## Why it costs
PyTorch's kernels vectorise sums over rows or columns that are long. A norm across rows, a norm with
another exponent than 2, and a variance call a function for each element; a softmax of rows shorter
than 16 does so for each row. Measured on one thread with AVX-512, for a million elements: the norm
of 2 elements that lie apart 41 ms, the variance of 2 or of 512 50 and 5.4 ms, the softmax of rows
of 2 24 ms; a copy of the elements takes 0.3 ms.

## What to do
Write the same in elementwise operators and a plain sum. Measured on the same million elements, with
the backward pass where there is one:

    norm of 2 elements apart, of 8               46.1 to 3.6 ms, 13.7 to 2.0 ms
    variance of 2 elements, of 8                 56.7 to 12.9 ms, 19.9 to 6.8 ms
    variance of 128 elements, forward            5.9 to 1.0 ms
    sum of magnitudes (p=1) of 2 elements        40.8 to 2.9 ms
    softmax of rows of 2, of 8                   30.5 to 6.6 ms, 24.0 to 4.2 ms
    log-softmax of rows of 2, of 8               18.5 to 6.6 ms, 21.3 to 4.1 ms
    sum of rows of 2                             2.4 to 1.1 ms

Leave `clamp_min` before a root: it keeps the gradient zero where all elements are zero, as that of
`norm` and `std` is; without it it is NaN. If you lay out the tensor yourself, put the short
dimension first: a softmax or sum along it needs no rewriting then.

A program of scores of complex vectors, with such a norm, went from 48.9 to 13.3 ms a step with the
same loss.

The estimate gives the operators the time that was measured of the rewritten code, in copies of the
input; the lower end half of their time.

## Fires on
The norm of complex numbers whose parts are two planes.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | nnnnnnllllnnnnnnllllnnnnnnllll
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    n = aten::linalg_vector_norm; input_shapes = [[2,64,1024],[],[],[],[]]; input_types = ["float","Scalar","ScalarList","Scalar",""]; concrete_inputs = ["","2","[0]","False",""]; line = model.py:8 score
    l = aten::linear; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]

A softmax over two classes.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | nnnnnnllllnnnnnnllllnnnnnnllll
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    n = aten::_softmax; input_shapes = [[65536,2],[],[]]; input_types = ["float","Scalar","Scalar"]; concrete_inputs = ["","1","False"]; line = model.py:8 score
    l = aten::linear; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]

## Silent on
A norm of rows, which is fast.

    column = 100 us
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | nllllllllllnllllllllnlllllllll
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    n = aten::linalg_vector_norm; input_shapes = [[512,512],[],[],[],[]]; input_types = ["float","Scalar","ScalarList","Scalar",""]; concrete_inputs = ["","2","[1]","False",""]
    l = aten::linear; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]

A gradient's sum, which no line of the program writes.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | bbbbbbllllbbbbbbllllbbbbbbllll
    cpu 1  | nnnnnn    nnnnnn    nnnnnn
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    b = autograd::engine::evaluate_function: MulBackward0
    n = aten::sum; input_shapes = [[65536,2],[],[],[]]; input_types = ["float","ScalarList","Scalar",""]; concrete_inputs = ["","[1]","False",""]
    l = aten::linear; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]
"""  # noqa: E501 - what a letter stands for is on one line

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import polars as pl

from selftime.advice.detectors.attained_rates import moving_ns
from selftime.advice.detectors.counted_operators import operators_in_counted_steps
from selftime.advice.detectors.counted_steps import recorded_step_count
from selftime.advice.detectors.elementwise_operators import (
    operator_ms_per_step,
    outside_backward_passes,
)
from selftime.advice.detectors.operator_changes import claim_of_shorter_operators
from selftime.advice.detectors.reduction_rewrites import (
    Reduction,
    Rewrite,
    code_of,
    recorded_reduction,
    rewrite_of,
)
from selftime.advice.detectors.source_lines import operators_by_line
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.slice_filters import filter_by_name
from selftime.names.reductions import is_reduction
from selftime.trace import Trace
from selftime.units import time_text, whole_percent_text

MAX_SLOW_SHARE_OF_COPY_RATE: Final = 0.1
"""Largest rate of a slow reduction, as a share of a copy's: those that vectorise reach a third and
more."""

MIN_SLOW_REDUCTION_SHARE_OF_STEP: Final = 0.05
"""Smallest share of the step in slow reductions at a line to report."""

LARGEST_REMAINING_SHARE: Final = 0.5
"""Share of the time that remains if the rewritten code helps least."""

_ARGUMENTS: Final = ("name", "input_shapes", "input_types", "input_strides", "concrete_inputs")
"""What tells of an operator along which elements it reduces."""


@rule(covers=("J11",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    slow = None if trace.device_args.height else _slow_reductions(trace)
    if limits is None or slow is None or not slow.height:
        share = whole_percent_text(MAX_SLOW_SHARE_OF_COPY_RATE)
        text = f"no reduction on the CPU runs below {share} of the memory's rate"
        yield Checked(text, is_absent=True)
        return
    small = []
    for where, of_line in operators_by_line(trace, slow):
        if operator_ms_per_step(trace, of_line) < MIN_SLOW_REDUCTION_SHARE_OF_STEP * limits.step_ms:
            small.append(of_line)
        else:
            yield _finding(trace, of_line, where)
    if small:
        least = whole_percent_text(MIN_SLOW_REDUCTION_SHARE_OF_STEP)
        spent = operator_ms_per_step(trace, pl.concat(small))
        yield Checked(f"slow reductions take less than {least} of a step at each line", spent)


def _slow_reductions(trace: Trace) -> pl.DataFrame:
    """Returns the forward passes' reductions that run slowly and can be written faster.

    Columns: those of operators, and needed: the ns that the rewritten code takes.
    """
    table = filter_by_name(operators_in_counted_steps(trace), is_reduction)
    table = outside_backward_passes(trace, table.drop_nulls("input_shapes"))
    parents = trace.slices["parent"].gather(table["id"])
    table = table.filter(~parents.is_in(table["id"].implode()).fill_null(value=False))
    calls = table.select(pl.col(*_ARGUMENTS).cast(pl.String))
    rates = {call: _least_and_needed_ns(trace, call) for call in set(calls.rows())}
    told = np.array([rates[call] for call in calls.rows()], float).reshape(-1, 2)
    recorded = (table["end"] - table["start"]).to_numpy()
    is_slow = (told[:, 0] < MAX_SLOW_SHARE_OF_COPY_RATE * recorded) & (told[:, 1] < recorded)
    return table.with_columns(needed=pl.Series(told[:, 1])).filter(
        pl.Series(is_slow, dtype=pl.Boolean)
    )


def _least_and_needed_ns(trace: Trace, call: tuple[Any, ...]) -> tuple[float, float]:
    """Returns the ns of a copy of as many bytes and of the rewritten code; NaN if there is none."""
    reduction = recorded_reduction(*call)
    rewrite = None if reduction is None else rewrite_of(reduction)
    if reduction is None or rewrite is None or reduction.moved_bytes is None:
        return (np.nan, np.nan)
    read = reduction.tensor.bytes or 0
    needed = rewrite.passes(reduction.length) * moving_ns(trace, read)
    return (moving_ns(trace, reduction.moved_bytes), needed)


def _finding(trace: Trace, slow: pl.DataFrame, where: Where) -> Finding:
    times = (slow["end"] - slow["start"]).to_numpy()
    kept = float(np.clip(slow["needed"].sum() / times.sum(), 0, 1))
    reduction, rewrite = _longest(slow, times)
    return Finding(
        title=_title(reduction, float(times.max())),
        where=where,
        count_per_step=slow.height / recorded_step_count(trace),
        claim=claim_of_shorter_operators(
            trace, slow, kept, largest_kept_share=LARGEST_REMAINING_SHARE
        ),
        confidence="medium",
        semantics="numerics",
        evidence=(
            Evidence(
                "time in slow reductions, a step",
                operator_ms_per_step(trace, slow),
                "ms",
                tuple(slow["id"].head(3).to_list()),
                slow["id"].to_numpy(),
            ),
            Evidence("elements of each result", reduction.length, "count"),
            Evidence("bytes moved", reduction.moved_bytes or 0, "bytes"),
            Evidence("share of this time that remains", kept, "ratio"),
        ),
        fix=_fix(rewrite, reduction),
    )


def _longest(slow: pl.DataFrame, times: np.ndarray[Any, Any]) -> tuple[Reduction, Rewrite]:
    """Returns the reduction that took the longest, and what computes the same."""
    call = slow.select(pl.col(*_ARGUMENTS).cast(pl.String)).row(int(times.argmax()))
    reduction = recorded_reduction(*call)
    rewrite = None if reduction is None else rewrite_of(reduction)
    if reduction is None or rewrite is None:
        raise ValueError(f"no reduction: {call}")
    return reduction, rewrite


def _title(reduction: Reduction, longest_ns: float) -> str:
    words = reduction.kind.replace("_", "-")
    result = "row" if reduction.keeps_size else "result"
    each_ns = longest_ns / max(reduction.results, 1)
    return (
        f"The {words} of {reduction.length} elements each takes {time_text(each_ns)} for a {result}"
    )


def _fix(rewrite: Rewrite, reduction: Reduction) -> Fix:
    text = "Write it in elementwise operators and a plain sum."
    if "clamp_min" in rewrite.code:
        text += " `clamp_min` keeps the gradient zero where all elements are alike."
    if reduction.keeps_size:
        text = "Take the softmax along the first dimension in memory, which vectorises."
    return Fix(text, code_of(rewrite, reduction) + f"  # for: the {reduction.kind} of x")
