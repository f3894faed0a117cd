"""Python code outside of operators takes much of the step.

## What it means
A function of the program computes in Python, NumPy or another library, and the step waits for it:
it prepares samples, parses text, goes through lists, draws. No operator of PyTorch runs meanwhile,
and on a GPU no kernel.

In the trace: 10 % of the median step or more on the critical path in Python frames of one function
and what it calls, in which no operator runs, or 200 us and more passes between two of them. Time in
PyTorch's own functions, loading by a `DataLoader`, logging, checkpoints, compilation, optimizers,
garbage collections and waits are left out: other rules are about them. Without Python frames the
samples of the stack in steps without recording tell a line: where it has more of the step than all
operators have, the rest of it is Python.

## Why it costs
Python takes 20 to 100 ns for each operation on one number and about a microsecond for a call of a
function, where NumPy or an operator takes about a nanosecond an element. It runs on one core, and
the step stands still.

## What to do
Replace the loop by operations on whole arrays or tensors. What is the same in every step: compute
it once, before the loop. What does not need the results of the model: compute it in the data set of
a `DataLoader` with `num_workers`, while the step before runs. Drawings: once in many steps. Where a
function of a library takes most of the time, as a metric of scikit-learn does, the finding names it
and the line that calls it: call it once for many steps.

Where the time is in a loop, the estimate leaves a fifth of it, and half of it elsewhere. That a fix
saves nothing is not excluded: whether the work can be done otherwise, no trace shows.

## Fires on
A loop in Python that prepares samples, one element after the other.

    column = 100 us
    mark 1   | sssssssssssssssssssstttttttttttttttttttt
    python 1 | ffffffffffffffffffffffffffffffffffffffff
    python 1 | aaaaaaaaaaaa        aaaaaaaaaaaa
    python 1 |  r r r r r r         r r r r r r
    cpu 1    |             mmmmmmmm            mmmmmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = train.py(3): main
    a = train.py(20): augment
    r = <built-in method random of Random object>
    m = aten::mm

## Silent on
A function that issues operators, one after the other.

    column = 10 us
    mark 1   | sssssssssssssssssssstttttttttttttttttttt
    python 1 | ffffffffffffffffffffffffffffffffffffffff
    python 1 | aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    cpu 1    |  mm  mm  mm  mm  mm  mm  mm  mm  mm  mm
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = train.py(3): main
    a = net.py(20): forward
    m = aten::mm

Python that runs while the device still has work.

    column = 100 us
    mark 1   | sssssssssssssssssssstttttttttttttttttttt
    python 1 | ffffffffffffffffffffffffffffffffffffffff
    python 1 |   aaaaaaaaaaaaaaaaa   aaaaaaaaaaaaaaaaa
    cpu 1    | m                   m
    call 1   | m                   m
    gpu 7    |  mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = train.py(3): main
    a = train.py(20): augment
    m = aten::mm
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_steps import (
    counted_step_count,
    significance_limits_for_cause,
)
from selftime.advice.detectors.library_calls import LibraryCall, library_calls_of
from selftime.advice.detectors.python_outside_torch import (
    PythonFunctionTime,
    python_functions_outside_torch,
    python_without_frames,
)
from selftime.advice.detectors.token_decoding import token_decoding_of
from selftime.advice.lines.slowest_code import SlowestCode, slowest_code_of_function
from selftime.advice.replay import CutHostTime
from selftime.advice.rule_definition import (
    Checked,
    Confidence,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
    Where,
    rule,
    where_from_row,
)
from selftime.advice.savings.claims import UNSURE_SAVING_RANGE, RemovalClaim, SavingRange
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.run.sampled_lines import sampled_lines
from selftime.analysis.source_sites import source_sites_of_slices
from selftime.analysis.steps.steady_steps import counted_step_windows
from selftime.intervals import covered_time_before, length
from selftime.trace import Trace
from selftime.units import whole_percent_text

MIN_PYTHON_SHARE_OF_STEP: Final = 0.1
"""Smallest share of the median step in a function for the rule to report it; what the program does
in Python between operators that it issues takes as much in small networks."""

MIN_LIBRARY_SHARE_OF_FUNCTION: Final = 0.5
"""Smallest share of a function's time in functions of libraries for the fix to be about them."""

MAX_NAMED_LIBRARY_CALLS: Final = 3
"""Largest number of functions of libraries that a finding names."""

MIN_DRAWING_SHARE_OF_FUNCTION: Final = 0.5
"""Smallest share of a function's time in a library that draws for the fix to be about drawing."""

_DRAWING_LIBRARIES: Final = ("matplotlib/", "seaborn/", "plotly/", "bokeh/")
"""Beginnings of the paths of libraries that draw."""

FRAMES_REMEDY: Final = (
    "Python frames: record with `with_stack=True`, or with `selftime run`, with a larger `--hold` "
    "if it left them out"
)
"""What a user can do where Python takes much of the step and the recording has no frames."""


@dataclass(frozen=True, slots=True)
class _Cure:
    """What removes the time of a function, and how much of it stays."""

    text: str
    code: str
    remaining_share: float
    """Assumed share of the time that remains after the fix, 0 to 1."""
    interval: SavingRange
    confidence: Confidence


LOOP_CODE: Final = """for row in rows:                  # before: Python for every element
    batch.append([math.sqrt(abs(value)) for value in row])

batch = np.sqrt(np.abs(rows))     # after: one operation on the array"""
"""Example code of the fix of a loop: one operation on a whole array replaces it."""

PREPARED_CODE: Final = """class Prepared(Dataset):
    def __getitem__(self, index):
        return prepare(self.samples[index])

loader = DataLoader(Prepared(samples), 64, num_workers=2)
for batch in loader:             # prepared while the step before ran
    train(batch)"""
"""Example code of the fix of other Python: the workers of a `DataLoader` do it."""

LIBRARY_CODE: Final = """for step, (x, y) in enumerate(loader):
    outputs.append(train(x, y).detach())
    if step % 100 == 99:         # once for 100 steps
        print(score(torch.cat(outputs)))
        outputs.clear()"""
"""Example code of the fix of a library's function: it is called once for many steps."""

DRAWING_CODE: Final = """if step % 100 == 0:
    draw(losses)"""
"""Example code of the fix of drawings: only some steps draw."""

_CURE_OF_LOOP: Final = _Cure(
    "Replace the loop by operations on whole arrays; make what is the same in every step once.",
    LOOP_CODE,
    0.2,
    UNSURE_SAVING_RANGE,
    "medium",
)
"""The cure of a loop. NumPy takes a tenth of the time of Python or less; a fifth is left, because
not all of a function can be done at once."""

_CURE_ELSEWHERE: Final = _Cure(
    "Compute it once, before the loop, or in the workers of a `DataLoader`; else by operators.",
    PREPARED_CODE,
    0.5,
    SavingRange(0.0, None),
    "low",
)
"""The cure of Python outside of loops. Whether it can leave the step is not known: half stays."""

_CURE_OF_LIBRARY: Final = _Cure(
    "Call it once for many steps, such as once an epoch, or do by operators what it does; what "
    "prepares samples, call in the workers of a `DataLoader`.",
    LIBRARY_CODE,
    _CURE_ELSEWHERE.remaining_share,
    _CURE_ELSEWHERE.interval,
    _CURE_ELSEWHERE.confidence,
)
"""The cure of a call of a library, whose code nobody changes; what it saves is as uncertain."""

_CURE_OF_DRAWING: Final = _Cure(
    "Draw once in many steps.",
    DRAWING_CODE,
    0.1,
    UNSURE_SAVING_RANGE,
    "medium",
)
"""The cure of drawing: a tenth is left, as if every tenth step drew."""


@rule(covers=("D9",), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    if step_stats is None:
        yield Checked("no step has a duration", is_absent=True)
        return
    if not trace.frame_args.height:
        yield _outcome_by_samples(trace, step_stats)
        return
    if token_decoding_of(trace) is not None:
        yield Checked("each step makes a token of a language model; see `host_between_tokens`")
        return
    least = MIN_PYTHON_SHARE_OF_STEP * step_stats.step_ms
    found = [(_median_ms(trace, step_stats, f), f) for f in python_functions_outside_torch(trace)]
    large = [(spent, function) for spent, function in found if spent >= least]
    for spent, function in large:
        yield _finding(trace, step_stats, function, spent)
    if not large:
        most = max((spent for spent, _ in found), default=0.0)
        share = whole_percent_text(MIN_PYTHON_SHARE_OF_STEP)
        yield Checked(
            f"no function takes {share} of a step or more in Python outside of operators",
            most,
            is_absent=not most,
        )


def _outcome_by_samples(trace: Trace, step_stats: StepStatistics) -> Outcome:
    """Returns what samples of the stack tell of the time between operators, without frames."""
    python = python_without_frames(trace)
    spent = length(python) / counted_step_count(trace) / 1e6
    spent = step_stats.scaled_to_typical_step(spent)
    least = MIN_PYTHON_SHARE_OF_STEP * step_stats.step_ms
    if spent < least:
        return Checked("hardly any time passes between operators", spent)
    lines = sampled_lines(trace.run).filter(
        (pl.col("part") == "program")
        & pl.col("file").is_not_null()
        & (pl.col("kind") == pl.col("kind").first())
    )
    if not lines.height:
        return Unknown(FRAMES_REMEDY)
    line = lines.row(0, named=True)
    at_least = line["low"] * step_stats.step_ms - max(0.0, step_stats.step_ms - spent)
    if at_least < least:
        return Unknown(FRAMES_REMEDY)
    share, cure = at_least / step_stats.step_ms, _CURE_ELSEWHERE
    kept = 1.0 - at_least / spent
    return Finding(
        title=(
            f"A line takes {whole_percent_text(share)} of the step or more in Python, outside of "
            "operators"
        ),
        where=Where(line["file"], line["line"], line["function"], "stack"),
        claim=RemovalClaim(
            (CutHostTime(python, kept + (1.0 - kept) * cure.remaining_share),),
            largest_changes=(CutHostTime(python, kept),),
            interval=cure.interval,
            noise_ms=step_stats.noise_ms,
        ),
        confidence=cure.confidence,
        evidence=(
            Evidence("samples of steps without recording", float(line["samples"]), "count"),
            Evidence("of all samples", line["share"], "ratio"),
            Evidence("time between operators", spent, "ms"),
        ),
        fix=Fix(cure.text, cure.code),
    )


def _median_ms(trace: Trace, step_stats: StepStatistics, function: PythonFunctionTime) -> float:
    """Returns the time of a typical step, in ms, that a function takes outside of operators.

    That is its median share of the steps: a pause in one of them, such as another program's turn,
    is left out.
    """
    windows = counted_step_windows(trace)
    start, end = windows["start"].to_numpy(), windows["end"].to_numpy()
    spent = covered_time_before(function.times, end) - covered_time_before(function.times, start)
    shares = spent / np.maximum(end - start, 1)
    return step_stats.step_ms * min(1.0, float(median(shares.tolist()))) if shares.size else 0.0


def _finding(
    trace: Trace, step_stats: StepStatistics, function: PythonFunctionTime, median_ms: float
) -> Finding:
    steps = counted_step_count(trace)
    slowest, name = _slowest_code(trace, function), _function_name(trace, function)
    calls = _calls_with_most_time(trace, function)
    draws = _drawing_share(trace, function) >= MIN_DRAWING_SHARE_OF_FUNCTION
    cure = _cure_of_code(slowest)
    if calls and not slowest.is_loop:
        cure = _CURE_OF_LIBRARY
        slowest = replace(slowest, where=calls[0].where or slowest.where)
    cure = _CURE_OF_DRAWING if draws else cure
    own = significance_limits_for_cause(trace, step_stats, function.times)
    share = whole_percent_text(median_ms / step_stats.step_ms)
    libraries = " and ".join(f"`{call.name}`" for call in calls)
    within = f", most of it in {libraries}" if calls else ""
    return Finding(
        title=f"`{name}` takes {share} of the step in Python, outside of operators{within}",
        where=slowest.where,
        count_per_step=function.calls / steps,
        claim=RemovalClaim(
            (CutHostTime(function.times, cure.remaining_share),),
            largest_changes=(CutHostTime(function.times),),
            interval=cure.interval,
            noise_ms=own.noise_ms,
        ),
        confidence=cure.confidence,
        evidence=(
            Evidence("host time outside of operators", median_ms, "ms", (function.frame,)),
            *(_evidence_of_call(call, median_ms) for call in calls),
            Evidence("calls a step", function.calls / steps, "count"),
        ),
        fix=Fix(cure.text, cure.code),
    )


def _calls_with_most_time(trace: Trace, function: PythonFunctionTime) -> tuple[LibraryCall, ...]:
    """Returns the fewest calls of libraries with most of a function's time; () without such."""
    calls = library_calls_of(trace, function)[:MAX_NAMED_LIBRARY_CALLS]
    for count in range(1, len(calls) + 1):
        if sum(call.share for call in calls[:count]) >= MIN_LIBRARY_SHARE_OF_FUNCTION:
            return calls[:count]
    return ()


def _evidence_of_call(call: LibraryCall, median_ms: float) -> Evidence:
    """Returns the time in a function of a library, with the line that calls it, if known."""
    line = "" if call.where is None else f", called at {call.where}"
    return Evidence(f"in `{call.name}`{line}", call.share * median_ms, "ms", (call.frame,))


def _slowest_code(trace: Trace, function: PythonFunctionTime) -> SlowestCode:
    """Returns the slowest line or loop of the innermost function that has most of the time."""
    segments = function.segments
    of_owner = segments.with_columns(
        own=trace.slices["name"].gather(segments["owner"].cast(pl.UInt32)).cast(pl.String),
        time=pl.col("end") - pl.col("start"),
    )
    by_name = of_owner.group_by("own", maintain_order=True).agg(pl.col("time").sum())
    first = by_name.sort("time", descending=True, maintain_order=True)["own"][0]
    within = of_owner.filter(pl.col("own") == first)
    frame = within.sort("time", descending=True, maintain_order=True)["owner"].head(1)
    site = source_sites_of_slices(trace, frame.cast(pl.UInt32)).row(0, named=True)
    steps = counted_step_count(trace)
    return slowest_code_of_function(trace, within, where_from_row(site), steps=steps)


def _cure_of_code(slowest: SlowestCode) -> _Cure:
    return _CURE_OF_LOOP if slowest.is_loop else _CURE_ELSEWHERE


def _function_name(trace: Trace, function: PythonFunctionTime) -> str:
    text = str(trace.slices["name"][function.frame])
    known = names.parse_frame(text)
    return text if known is None else known.function


def _drawing_share(trace: Trace, function: PythonFunctionTime) -> float:
    """Returns the share of a function's time in Python frames of a library that draws."""
    segments = function.segments
    frames = trace.slices["name"].gather(segments["frame"].cast(pl.UInt32)).cast(pl.String)
    is_drawing = np.zeros(segments.height, bool)
    for library in _DRAWING_LIBRARIES:
        is_drawing |= frames.str.contains(library, literal=True).to_numpy()
    time = (segments["end"] - segments["start"]).to_numpy()
    return float(time[is_drawing].sum() / max(time.sum(), 1))
