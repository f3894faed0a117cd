"""Compiled code is left and entered again within one call.

## What it means
`torch.compile` met something in a function that it cannot put into a graph (a value read on the
host, a `print`, a call of code that it cannot trace), compiled what comes before and after on their
own, and runs the rest in Python.

In the trace: regions of compiled code that begin while another region of the same thread is open,
at least one a step.

## Why it costs
Each part has its own guards and wrappers, nothing is fused across the break, and the code between
the parts runs uncompiled. On a device the host may launch too slowly.

## What to do
Move the read or the print out of the function, or let the graph hold it:
`torch._dynamo.config.capture_scalar_outputs = True`, `torch.where` in place of `if`.
`torch.compile(fullgraph=True)` makes a break an error, and `TORCH_LOGS=graph_breaks` says the
reason, which the trace does not hold.

The estimate removes the guards and wrappers of the further regions: the time from the look-up of
their code to their first operator, and the time in wrappers in which no operator runs.

## Fires on
A region of compiled code within another, in every step.

    column = 10 us
    mark 1   | ssssssssssttttttttttuuuuuuuuuu
    cpu 1    | rrrrrrrrr rrrrrrrrr rrrrrrrrr
    cpu 1    |  aa clpaa  aa clpaa  aa clpaa
    cpu 1    |      qqqq      qqqq      qqqq
    python 1 |      ffff      ffff      ffff
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    r = Torch-Compiled Region: 0/0
    q = Torch-Compiled Region: 1/0
    c = TorchDynamo Cache Lookup
    l = Pregraph bytecode
    p = AOTDispatcher Runtime Wrapper Prologue
    a = aten::mm
    f = train.py(9): torch_dynamo_resume_in_forward_at_12

## Silent on
One region for the whole function.

    column = 10 us
    mark 1   | ssssssssssttttttttttuuuuuuuuuu
    cpu 1    | crrrrrrrr crrrrrrrr crrrrrrrr
    cpu 1    |  lpaaaaaa  lpaaaaaa  lpaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    r = Torch-Compiled Region: 0/0
    c = TorchDynamo Cache Lookup
    l = Pregraph bytecode
    p = AOTDispatcher Runtime Wrapper Prologue
    a = aten::mm

A break in large work: it costs less than can be seen.

    column = 10 us
    mark 1 | ssssssssssssssssssssssssssssssssssssssssttttttttttttttttttttttttttttttttttttttttt
    cpu 1  | rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr
    cpu 1  | aaaaaaaaaaaaaaaaaaaaaaaaaaaaaqqqqqqqqqqq aaaaaaaaaaaaaaaaaaaaaaaaaaaaaqqqqqqqqqqq
    cpu 1  |                              aaaaaaaaaaa                              aaaaaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    r = Torch-Compiled Region: 0/0
    q = Torch-Compiled Region: 1/0
    a = aten::mm
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import operators_in_counted_steps
from selftime.advice.detectors.counted_steps import (
    begins_within_enclosing,
    operator_intervals,
    recorded_step_count,
    union_of_interval_sets,
)
from selftime.advice.replay import CutHostTime
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.intervals import Intervals, intersect, length, subtract, union
from selftime.trace import Trace

_ONLY_SCALAR_INPUT_SHAPES_PATTERN: Final = r"^\[(\[\],?)*\]$"
"""Regular expression for `input_shapes` in which no tensor has a dimension."""

FIX_CODE: Final = """\
model = torch.compile(model, fullgraph=True)  # a break is an error
torch._dynamo.config.capture_scalar_outputs = True  # keeps `.item()`"""
"""Example code of the fix: make graph breaks errors, and keep `.item()` in the graph."""


@rule(covers=("H2",), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    operators = operators_in_counted_steps(trace)
    regions = filter_by_name(operators, lambda name: names.compiled_region(name) is not None)
    nested = regions.filter(pl.Series(_are_regions_nested(regions), dtype=pl.Boolean))
    if step_stats is None or nested.height < recorded_step_count(trace):
        yield Checked("no compiled function is left and entered again in each step", is_absent=True)
        return
    wrapped, python = (
        _graph_wrapper_overhead_intervals(trace, operators),
        _intervals_without_operator_work(operators, regions),
    )
    again = _non_first_compiled_regions_of_calls(trace, regions)
    for break_line, resumed_regions in _regions_by_break(trace, nested):
        around = again.filter(
            pl.Series(_contains_any_region(again, resumed_regions), dtype=pl.Boolean)
        )
        parts = pl.concat([resumed_regions, around])
        lost_time = union_of_interval_sets(
            _region_entry_intervals(operators, parts), intersect(wrapped, operator_intervals(parts))
        )
        claim = RemovalClaim(
            (CutHostTime(lost_time),),
            largest_changes=(CutHostTime(union_of_interval_sets(lost_time, python)),),
        )
        yield _finding(trace, resumed_regions, lost_time, break_line, claim)


def _non_first_compiled_regions_of_calls(trace: Trace, regions: pl.DataFrame) -> pl.DataFrame:
    """Returns the outermost compiled regions, except the first in each compiled function call.

    Where a break cannot be left and entered in the middle, as in a loop, the function around it
    runs uncompiled, and each function that it calls is a region of its own.
    """
    outer = regions.filter(~pl.Series(_are_regions_nested(regions), dtype=pl.Boolean))
    frames = filter_by_name(slices_on(trace, "python"), names.is_compiled_function_call)
    frames = frames.filter(pl.col("duration").is_not_null())
    threads = trace.tracks.select(track="id", thread="thread")
    calls = frames.join(threads, on="track", how="left", maintain_order="left").select(
        "thread", at="start", until=pl.col("start") + pl.col("duration")
    )
    placed = (
        outer.join(threads, on="track", how="left", maintain_order="left")
        .sort("start")
        .join_asof(
            calls.sort("at"), left_on="start", right_on="at", by="thread", check_sortedness=False
        )
        .filter(pl.col("start") < pl.col("until"))
    )
    first = pl.col("start").cum_count().over("thread", "at") == 1
    return placed.filter(~first).select(regions.columns)


def _contains_any_region(outer_regions: pl.DataFrame, inner_regions: pl.DataFrame) -> list[bool]:
    """Returns for each region of `outer_regions` whether any of `inner_regions` begins in it."""
    inner = inner_regions.select("track", first="start").sort("first")
    found = (
        outer_regions.with_row_index("at")
        .sort("start")
        .join_asof(
            inner,
            left_on="start",
            right_on="first",
            by="track",
            strategy="forward",
            check_sortedness=False,
        )
    )
    holds = (pl.col("first") < pl.col("end")).fill_null(value=False)
    return found.sort("at").select(holds.alias("holds"))["holds"].to_list()


def _are_regions_nested(regions: pl.DataFrame) -> list[bool]:
    """Returns for each compiled region whether it began within another one on its thread."""
    before = regions.select(
        open=pl.col("end").cum_max().shift(1).over("track", order_by="start") > pl.col("start")
    )
    return before["open"].fill_null(value=False).to_list()


def _region_entry_intervals(operators: pl.DataFrame, regions: pl.DataFrame) -> Intervals:
    """Returns the intervals from each compiled region's cache lookup to its first ATen operator."""
    lookups = filter_by_name(operators, names.is_compiled_code_lookup).select(
        "track", at="start", found="end"
    )
    work = filter_by_name(operators, names.is_aten_operator).select("track", first="start")
    spans = regions.sort("start").join_asof(
        lookups.sort("at"), left_on="start", right_on="at", by="track", check_sortedness=False
    )
    spans = spans.join_asof(
        work.sort("first"),
        left_on="start",
        right_on="first",
        by="track",
        strategy="forward",
        check_sortedness=False,
    )
    follows = pl.col("start") - pl.col("found") <= pl.col("found") - pl.col("at")
    begin = pl.when(follows).then("at").otherwise("start")
    end = pl.min_horizontal("first", "end")
    found = spans.select(begin=begin, end=end)
    return union(found["begin"].to_numpy(), found["end"].to_numpy())


def _graph_wrapper_overhead_intervals(trace: Trace, operators: pl.DataFrame) -> Intervals:
    """Returns the intervals in wrappers of compiled graphs in which no operator runs.

    One graph has one wrapper.

    Work is what operators do, and generated code. A number that was read on the host comes into the
    next graph as an input, and what the compiler does to make a tensor of it again is none.
    """
    frames = covered_time(
        filter_by_name(slices_on(trace, "python"), names.is_compiled_graph_wrapper)
    )
    return subtract(frames, _operator_work_intervals(operators))


def _operator_work_intervals(operators: pl.DataFrame) -> Intervals:
    numbers = filter_by_name(operators, names.is_compiler_primitive)
    numbers = numbers.filter(
        pl.col("input_shapes").cast(pl.String).str.contains(_ONLY_SCALAR_INPUT_SHAPES_PATTERN)
    )
    generated = filter_by_name(operators, names.is_compiled_call)
    work = filter_by_name(operators, names.is_dispatched_operator)
    work = work.filter(~pl.Series(begins_within_enclosing(work, numbers), dtype=pl.Boolean))
    return operator_intervals(pl.concat([work, generated]))


def _intervals_without_operator_work(operators: pl.DataFrame, regions: pl.DataFrame) -> Intervals:
    """Returns the intervals in compiled regions in which no operator runs."""
    return subtract(operator_intervals(regions), _operator_work_intervals(operators))


def _regions_by_break(trace: Trace, regions: pl.DataFrame) -> Iterator[tuple[Where, pl.DataFrame]]:
    """Yields for each graph break its source line and the compiled regions that run after it.

    The source line is known only if a Python frame of the break was recorded.
    """
    frames = _frames_resuming_after_breaks(trace)
    threads = trace.tracks.select(track="id", thread="thread")
    placed = (
        regions.join(threads, on="track", how="left", maintain_order="left")
        .sort("start")
        .join_asof(
            frames.sort("at"),
            left_on="start",
            right_on="at",
            by="thread",
            strategy="forward",
            check_sortedness=False,
        )
        .with_columns(frame=pl.when(pl.col("at") < pl.col("end")).then("frame"))
    )
    for resumed_regions in placed.partition_by("frame", maintain_order=True):
        yield (
            _source_line_of_break(trace, resumed_regions["frame"][0]),
            resumed_regions.select(regions.columns),
        )


def _frames_resuming_after_breaks(trace: Trace) -> pl.DataFrame:
    """Returns the Python frames in which functions resume after a graph break.

    Columns: thread; at, the start in ns; frame, the name.
    """
    frames = filter_by_name(
        slices_on(trace, "python"), lambda text: _function_and_line_of_break(text) is not None
    )
    thread = trace.tracks["thread"].gather(frames["track"])
    return frames.select("start", text=pl.col("name").cast(pl.String)).select(
        pl.lit(thread).alias("thread"), at="start", frame="text"
    )


def _function_and_line_of_break(frame_name: str) -> tuple[str, int] | None:
    told = names.parse_frame(frame_name)
    return names.graph_break_location(told.function) if told else None


def _source_line_of_break(trace: Trace, frame_name: str | None) -> Where:
    told = names.parse_frame(frame_name) if frame_name else None
    resumed = names.graph_break_location(told.function) if told else None
    if told is None or resumed is None:
        return Where()
    saved = trace.lines["file"].unique().cast(pl.String).to_list()
    whole = [file for file in saved if file.endswith(f"/{told.file}")]
    file = whole[0] if len(whole) == 1 else told.file
    return Where(file, resumed[1], resumed[0], "stack")


def _finding(
    trace: Trace,
    resumed_regions: pl.DataFrame,
    lost_time: Intervals,
    break_line: Where,
    claim: RemovalClaim,
) -> Finding:
    steps = recorded_step_count(trace)
    reason = "`TORCH_LOGS=graph_breaks` says why it breaks"
    if break_line.line is None:
        reason += ", and a recording with stacks says where"
    return Finding(
        title="A compiled function breaks into several graphs, with Python code in between",
        where=break_line,
        count_per_step=resumed_regions.height / steps,
        claim=claim,
        confidence="medium",
        evidence=(
            Evidence(
                "compiled regions within others, a step", resumed_regions.height / steps, "count"
            ),
            Evidence(
                "time in the guards and wrappers of these regions",
                length(lost_time) / steps / 1e6,
                "ms",
            ),
        ),
        fix=Fix(f"Move out of the function what cannot be compiled; {reason}.", FIX_CODE),
    )
