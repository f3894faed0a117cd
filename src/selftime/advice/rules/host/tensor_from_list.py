"""A tensor is made of a Python list in each step.

## What it means
`torch.tensor`, `torch.as_tensor` or `torch.asarray` gets a list of numbers, of lists or of NumPy
arrays, and looks at its elements one by one.

In the trace: 5 % of the median step or more on the critical path in such calls, outside of the
operators that they run, each of 20 us or more. Calls on an array of NumPy do not take this time:
they copy it, by an operator. Nor do the calls of a `DataLoader` count, which other rules are about.

## Why it costs
Each element is a Python object that must be unpacked, 30 to 100 ns each; in a list of NumPy arrays
each element of an array is made into a Python object first, which takes several times that.

## What to do
A list of arrays: `np.stack` makes one array of them, and `torch.from_numpy` takes it as it is. A
list of tensors: `torch.stack`. A list of numbers: keep them in an array or a tensor from the start,
and take the samples of a batch by an index; else `np.array` reads a list in half the time.

The estimate leaves four tenths of the time, the lower end seven.

## Fires on
A list that is made into a tensor in each step.

    column = 10 us
    mark 1   | sssssssssssssssssssstttttttttttttttttttt
    python 1 | ffffffffffffffffffffffffffffffffffffffff
    python 1 | cccccccc            cccccccc
    cpu 1    |       d mmmmmmmmmmmm      d mmmmmmmmmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = train.py(3): main
    c = <built-in method tensor of type object at 0x7f00>
    d = aten::to; line = train.py:20 main
    m = aten::mm

## Silent on
An array, which an operator copies.

    column = 10 us
    mark 1   | sssssssssssssssssssstttttttttttttttttttt
    python 1 | ffffffffffffffffffffffffffffffffffffffff
    python 1 | cccccccc            cccccccc
    cpu 1    | ddddddddmmmmmmmmmmmmddddddddmmmmmmmmmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = train.py(3): main
    c = <built-in method tensor of type object at 0x7f00>
    d = aten::to; line = train.py:20 main
    m = aten::mm
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_steps import (
    counted_step_count,
    significance_limits_for_cause,
)
from selftime.advice.replay import CutHostTime
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    rule,
    where_from_row,
)
from selftime.advice.savings.claims import RemovalClaim, SavingRange
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.account.step_account import account_segments
from selftime.analysis.slice_arguments import enclosing_frame_of_every_slice
from selftime.analysis.slice_filters import matches_name
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.array_types import Ints
from selftime.intervals import Intervals, length, union
from selftime.names.tensor_operators import makes_tensor_of_values
from selftime.nesting import NO_SLICE
from selftime.trace import Trace
from selftime.units import count_text, whole_percent_text

MIN_CONVERSION_NS: Final = 20_000
"""Shortest call that counts, in ns: those of a few numbers take 2 to 10 us."""

MIN_CONVERSION_SHARE_OF_STEP: Final = 0.05
"""Smallest share of the step in such calls to report; recording frames makes some of them longer.
"""

REMAINING_CONVERSION_SHARE: Final = 0.4
"""Assumed share of the time that remains: `np.array` takes half of it for a list of numbers, and
`np.stack` hardly anything for one of arrays."""

LARGEST_REMAINING_SHARE: Final = 0.7
"""Share of the time that remains if the list is of numbers and is read once more by NumPy."""

FIX_CODE: Final = """x = torch.tensor(rows)                  # before: element by element

x = torch.from_numpy(np.stack(rows))    # after: whole arrays
x = data[chosen]                        # or: one tensor from the start"""
"""Example code of the fix: NumPy makes one array of a list of arrays."""


@rule(covers=("D11",), needs=("operators", "stacks"))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    conversions = _conversions(trace)
    if step_stats is None or not conversions.height:
        yield Checked("no recorded step takes long to make a tensor of a list", is_absent=True)
        return
    for _, same in conversions.group_by(SOURCE_SITE_COLUMNS, maintain_order=True):
        spent = _ms_per_step(trace, step_stats, _times(same))
        if spent < MIN_CONVERSION_SHARE_OF_STEP * step_stats.step_ms:
            least = whole_percent_text(MIN_CONVERSION_SHARE_OF_STEP)
            where = where_from_row(same.row(0, named=True))
            yield Checked(
                f"a tensor is made of a list ({where}) in less than {least} of a step", spent
            )
        else:
            yield _finding(trace, step_stats, same, spent)


def _conversions(trace: Trace) -> pl.DataFrame:
    """Returns the time of long calls that make tensors of values, in order of time.

    Columns: start and end in ns; call, the slice of the call; file, line, function and how: the
    line that made it.
    """
    told = account_segments(trace).filter(
        pl.col("counted") & (pl.col("class") == "python") & pl.col("slice").is_not_null()
    )
    frame = enclosing_frame_of_every_slice(trace)[told["slice"].to_numpy()]
    converts = np.append(matches_name(trace.slices, makes_tensor_of_values), False)
    table = told.select("start", "end", call=pl.Series(frame, dtype=pl.Int64))
    table = table.filter(pl.Series(converts[frame], dtype=pl.Boolean))
    spent = (pl.col("end") - pl.col("start")).sum().over("call")
    table = table.filter(spent >= MIN_CONVERSION_NS)
    return table.hstack(source_sites_of_slices(trace, _slices_with_line(trace, table["call"])))


def _slices_with_line(trace: Trace, calls: pl.Series) -> pl.Series:
    """Returns for each call the first operator that it ran, else the call itself.

    Lines are recorded of operators.
    """
    first: Ints = np.full(trace.slices.height + 1, NO_SLICE, np.int64)
    ran = trace.op_args.select("id", "frame").drop_nulls().sort("id", descending=True)
    category = trace.slices["category"].gather(ran["id"])
    ran = ran.filter(category.is_in(list(names.OPERATOR_CATEGORIES)))
    first[ran["frame"].to_numpy()] = ran["id"].to_numpy()
    asked = calls.to_numpy()
    return pl.Series(np.where(first[asked] == NO_SLICE, asked, first[asked]), dtype=pl.UInt32)


def _times(conversions: pl.DataFrame) -> Intervals:
    return union(conversions["start"].to_numpy(), conversions["end"].to_numpy())


def _ms_per_step(trace: Trace, step_stats: StepStatistics, times: Intervals) -> float:
    return step_stats.scaled_to_typical_step(length(times) / counted_step_count(trace) / 1e6)


def _finding(
    trace: Trace, step_stats: StepStatistics, conversions: pl.DataFrame, spent_ms: float
) -> Finding:
    times, calls = _times(conversions), conversions["call"].unique(maintain_order=True)
    own = significance_limits_for_cause(trace, step_stats, times)
    count = calls.len() / counted_step_count(trace)
    often = "once" if round(count) == 1 else f"{count_text(count)} times"
    return Finding(
        title=f"A tensor is made of a Python list {often} a step",
        where=where_from_row(conversions.row(0, named=True)),
        count_per_step=count,
        claim=RemovalClaim(
            (CutHostTime(times, REMAINING_CONVERSION_SHARE),),
            worst_case_changes=(CutHostTime(times, LARGEST_REMAINING_SHARE),),
            largest_changes=(CutHostTime(times),),
            interval=SavingRange(1.0, None),
            noise_ms=own.noise_ms,
        ),
        confidence="medium",
        evidence=(
            Evidence("time in which the elements are read", spent_ms, "ms", _events(calls)),
            Evidence("calls a step", count, "count", (), calls.to_numpy()),
        ),
        fix=Fix("Make one array of the list, or keep the data in one from the start.", FIX_CODE),
    )


def _events(calls: pl.Series) -> tuple[int, ...]:
    return tuple(calls.head(3).to_list())
