"""Compiled code is left and entered again within one call.

## What it means
`torch.compile` met something in a function that it cannot put into a graph (a value read on the
host, a `print`, a call of code that it cannot trace), compiled what comes before and after on their
own, and runs the rest in Python.

## Why it costs
Each part has guards to check and wrappers to pass, nothing is fused across the break, and what is
between runs uncompiled. On a device the launches of all that may not keep up.

## What to do
Move the read or the print out of the function, or let the graph hold it:
`torch._dynamo.config.capture_scalar_outputs = True`, `torch.where` in place of `if`.
`torch.compile(fullgraph=True)` makes a break an error, and `TORCH_LOGS=graph_breaks` says the
reason, which the trace does not hold.

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
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, Where, rule
from selftime.advice.detectors.counted_steps import both, covered, is_under, steps_recorded
from selftime.advice.detectors.operators import recorded_operators
from selftime.advice.gate import gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Cut
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.intervals import Intervals, intersect, length, subtract, union
from selftime.trace import Trace

_NUMBERS: Final = r"^\[(\[\],?)*\]$"
"""The shapes of inputs none of which has a dimension."""

CODE: Final = """model = torch.compile(model, fullgraph=True)    # a break is an error that says why
torch._dynamo.config.capture_scalar_outputs = True    # `.item()` stays in the graph"""
"""How breaks are found and the commonest is removed."""


@rule(covers=("H2",), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    operators = recorded_operators(trace)
    regions = filter_by_name(operators, lambda name: names.compiled_region(name) is not None)
    nested = regions.filter(pl.Series(_is_nested(regions), dtype=pl.Boolean))
    if limits is None or nested.height < steps_recorded(trace):
        yield Checked("no compiled function is left and entered again in each step", is_absent=True)
        return
    wrapped, python = _wrapped(trace, operators), _python(operators, regions)
    again = _entered_again(trace, regions)
    for place, part in _by_break(trace, nested):
        around = again.filter(pl.Series(_holds(again, part), dtype=pl.Boolean))
        parts = pl.concat([part, around])
        lost = both(_entered(operators, parts), intersect(wrapped, covered(parts)))
        saving = priced(trace, limits, Cut(lost), most=(Cut(both(lost, python)),))
        yield limits.judge(_finding(trace, part, lost, place, saving))


def _entered_again(trace: Trace, regions: pl.DataFrame) -> pl.DataFrame:
    """The regions that no other holds, but the first in each call of what was compiled.

    Where a break cannot be left and entered in the middle, as in a loop, the function around it
    runs uncompiled, and each function that it calls is a region of its own.
    """
    outer = regions.filter(~pl.Series(_is_nested(regions), dtype=pl.Boolean))
    frames = filter_by_name(slices_on(trace, "python"), names.is_compiled_entry)
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


def _holds(these: pl.DataFrame, those: pl.DataFrame) -> list[bool]:
    """Whether any of those regions lies in each of these."""
    inner = those.select("track", first="start").sort("first")
    found = (
        these.with_row_index("at")
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


def _is_nested(regions: pl.DataFrame) -> list[bool]:
    """Whether each region began while another of its thread was open."""
    before = regions.select(
        open=pl.col("end").cum_max().shift(1).over("track", order_by="start") > pl.col("start")
    )
    return before["open"].fill_null(value=False).to_list()


def _entered(operators: pl.DataFrame, regions: pl.DataFrame) -> Intervals:
    """From the look-up of the code for each region until its first operator of the library."""
    lookups = filter_by_name(operators, names.is_code_lookup).select(
        "track", at="start", found="end"
    )
    work = filter_by_name(operators, names.is_library_operator).select("track", first="start")
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


def _wrapped(trace: Trace, operators: pl.DataFrame) -> Intervals:
    """Time in the wrappers of graphs that is no work: a graph without breaks has one wrapper.

    Work is what operators do, and generated code. A number that was read on the host comes into the
    next graph as an input, and what the compiler does to make a tensor of it again is none.
    """
    frames = covered_time(filter_by_name(slices_on(trace, "python"), names.is_graph_wrapper))
    return subtract(frames, _work(operators))


def _work(operators: pl.DataFrame) -> Intervals:
    numbers = filter_by_name(operators, names.is_primitive)
    numbers = numbers.filter(pl.col("input_shapes").cast(pl.String).str.contains(_NUMBERS))
    generated = filter_by_name(operators, names.is_compiled_call)
    work = filter_by_name(operators, names.is_dispatched)
    work = work.filter(~pl.Series(is_under(work, numbers), dtype=pl.Boolean))
    return covered(pl.concat([work, generated]))


def _python(operators: pl.DataFrame, regions: pl.DataFrame) -> Intervals:
    """Time in regions and in no operator that works."""
    return subtract(covered(regions), _work(operators))


def _by_break(trace: Trace, regions: pl.DataFrame) -> Iterator[tuple[Where, pl.DataFrame]]:
    """The regions after each break, with the line of the break where frames were recorded."""
    frames = _resumed(trace)
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
    for part in placed.partition_by("frame", maintain_order=True):
        yield _place(trace, part["frame"][0]), part.select(regions.columns)


def _resumed(trace: Trace) -> pl.DataFrame:
    """Frames of what follows a break: thread, at (ns), frame (its text)."""
    frames = filter_by_name(slices_on(trace, "python"), lambda text: _resumes(text) is not None)
    thread = trace.tracks["thread"].gather(frames["track"])
    return frames.select("start", text=pl.col("name").cast(pl.String)).select(
        pl.lit(thread).alias("thread"), at="start", frame="text"
    )


def _resumes(text: str) -> tuple[str, int] | None:
    told = names.frame(text)
    return names.graph_break_location(told.function) if told else None


def _place(trace: Trace, text: str | None) -> Where:
    told = names.frame(text) if text else None
    resumed = names.graph_break_location(told.function) if told else None
    if told is None or resumed is None:
        return Where()
    saved = trace.lines["file"].unique().cast(pl.String).to_list()
    whole = [file for file in saved if file.endswith(f"/{told.file}")]
    file = whole[0] if len(whole) == 1 else told.file
    return Where(file, resumed[1], resumed[0], "stack")


def _finding(
    trace: Trace, part: pl.DataFrame, lost: Intervals, place: Where, saving: Saving
) -> Finding:
    steps = steps_recorded(trace)
    reason = "`TORCH_LOGS=graph_breaks` says why it breaks"
    if place.line is None:
        reason += ", and a recording with stacks where"
    return Finding(
        title="A compiled function is left and entered again",
        where=place,
        count_per_step=part.height / steps,
        saving=saving,
        confidence="medium",
        evidence=(
            Evidence("regions within others, a step", part.height / steps, "count"),
            Evidence("guards and wrappers of them", length(lost) / steps / 1e6, "ms"),
        ),
        fix=Fix(f"Move out of the function what cannot be compiled; {reason}.", CODE),
        changes=(Cut(lost),),
    )
