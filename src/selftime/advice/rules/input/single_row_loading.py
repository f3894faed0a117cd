"""A `DataLoader` takes the rows of tensors one at a time.

## What it means
The data are tensors in memory, in a `TensorDataset`. The loader takes each row of a batch by an
operator of its own, and joins the rows again.

In the trace: loading on the main thread takes 10 % of the step or more, a `TensorDataset` indexes
its tensors for 32 samples a step or more, and functions of the program take less than a tenth of
the loading. With workers the main process shows no function; other rules tell what the wait costs.

## Why it costs
A sample takes some 10 us: an operator for each tensor, and a few functions of Python. A batch by an
index is one operator for each tensor, whatever its size.

## What to do
Go through batches of indices and index the tensors by them. Workers would do the same slow work
elsewhere, and hand the batches over.

The estimate leaves a tenth of the time of the loader, the lower end three tenths.

## Fires on
A loader over a `TensorDataset`.

    column = 10 us
    mark 1   | ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    mark 1   | dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd
    python 1 | ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff
    python 1 | ggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggg
    python 1 | x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x
    cpu 1    | e e e e e e e e e e e e e e e e e e e e e e e e e e e e e e e e     aaaaaaaa
    s = ProfilerStep#1
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    f = torch/utils/data/_utils/fetch.py(47): fetch
    g = torch/utils/data/dataset.py(205): __getitem__
    x = torch/utils/data/dataset.py(206): <genexpr>
    e = aten::select
    a = aten::mm

## Silent on
A data set of the program.

    column = 10 us
    mark 1   | ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    mark 1   | dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd
    python 1 | ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff
    python 1 | ggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggg
    cpu 1    | e e e e e e e e e e e e e e e e e e e e e e e e e e e e e e e e     aaaaaaaa
    s = ProfilerStep#1
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    f = torch/utils/data/_utils/fetch.py(47): fetch
    g = data.py(12): __getitem__
    e = aten::select
    a = aten::mm
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.detectors.batch_fetching import next_batch_times, share_of_loading_time
from selftime.advice.detectors.counted_operators import operators_in_counted_steps
from selftime.advice.detectors.counted_steps import begins_during_intervals, counted_step_count
from selftime.advice.detectors.exposed_loading import (
    data_loading_annotations,
    data_loading_times_of,
)
from selftime.advice.detectors.python_outside_torch import frames_of_program
from selftime.advice.replay import CutHostTime
from selftime.advice.rule_definition import (
    Argument,
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    rule,
    where_from_row,
)
from selftime.advice.savings.claims import RemovalClaim, SavingRange
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.slice_arguments import arguments_of_slices
from selftime.analysis.slice_filters import covered_time, filter_by_name
from selftime.intervals import Intervals, intersect
from selftime.names.data_loading import may_take_tensor_row
from selftime.trace import Trace
from selftime.units import count_text, whole_percent_text

MIN_ROWS_PER_STEP: Final = 32
"""Smallest number of samples in a step that the loader takes one at a time; of fewer the loader's
time is mostly what it takes for each batch."""

MIN_LOADING_SHARE_OF_STEP: Final = 0.1
"""Smallest share of the step in which it loads for the rule to report it."""

MAX_PROGRAM_SHARE_OF_LOADING: Final = 0.1
"""Largest share of the loading in functions of the program: such data need more than an index."""

REMAINING_LOADING_SHARE: Final = 0.1
"""Assumed share of the loader's time that remains: a batch by one index."""

LARGEST_REMAINING_SHARE: Final = 0.3
"""Share of the loader's time that remains where rows are large, so that copying them takes it."""

FIX_CODE: Final = """for x, y in DataLoader(TensorDataset(data, target), 64, shuffle=True):
    train(x, y)                                   # before: row by row

for chosen in torch.randperm(len(data)).split(64):
    train(data[chosen], target[chosen])           # after: by one index"""
"""Example code of the fix: batches of indices replace the loader."""


@rule(covers=("A11",), needs=("operators", "stacks"))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats, loading = step_statistics(trace), data_loading_times_of(trace)
    rows = _row_frames(trace)
    count = rows.height / counted_step_count(trace)
    if step_stats is None or loading is None or loading.has_workers or count < MIN_ROWS_PER_STEP:
        yield Checked(
            "no loader takes rows of tensors one at a time on the main thread", is_absent=True
        )
        return
    times = next_batch_times(trace)
    share = share_of_loading_time(trace, _program_times(trace, times))
    if loading.exposed_share < MIN_LOADING_SHARE_OF_STEP or share > MAX_PROGRAM_SHARE_OF_LOADING:
        yield Checked(
            "a loader takes rows of tensors one at a time in "
            f"{whole_percent_text(loading.exposed_share)} of the step, "
            f"{whole_percent_text(share)} of that in functions of the program",
            loading.exposed_ms,
        )
        return
    row = max(data_loading_annotations(trace), key=lambda row: row["exposed_time"])
    yield Finding(
        title=f"A `DataLoader` takes rows of tensors one at a time, {count_text(count)} a step",
        where=where_from_row(row),
        count_per_step=count,
        claim=RemovalClaim(
            (CutHostTime(times, REMAINING_LOADING_SHARE),),
            worst_case_changes=(CutHostTime(times, LARGEST_REMAINING_SHARE),),
            largest_changes=(CutHostTime(times),),
            interval=SavingRange(1.0, None),
            noise_ms=loading.noise_ms,
        ),
        confidence="medium",
        evidence=(
            Evidence("exposed data loading time", loading.exposed_ms, "ms", _events(rows)),
            Evidence("rows a step", count, "count", (), rows["id"].to_numpy()),
        ),
        fix=Fix(
            "Index the tensors by the indices of a whole batch.",
            FIX_CODE,
            Argument("loader", "batch_sampler", "..."),
        ),
    )


def _row_frames(trace: Trace) -> pl.DataFrame:
    """Returns the frames in which a `TensorDataset` takes a row of its tensors."""
    selects = filter_by_name(operators_in_counted_steps(trace), names.selects_one_index)
    frames = arguments_of_slices(trace, "op_args", selects["id"], "frame")["frame"]
    around = trace.slices.filter(pl.col("id").is_in(frames.drop_nulls().unique().implode()))
    return filter_by_name(around, may_take_tensor_row)


def _program_times(trace: Trace, loading: Intervals) -> Intervals:
    """Returns when functions of the program run that the loader called."""
    own = trace.slices.filter(
        pl.Series(frames_of_program(trace), dtype=pl.Boolean) & pl.col("duration").is_not_null()
    )
    return intersect(covered_time(own.filter(begins_during_intervals(own, loading))), loading)


def _events(rows: pl.DataFrame) -> tuple[int, ...]:
    longest = rows.sort("duration", "id", descending=[True, False]).head(3)
    return tuple(longest["id"].to_list())
