"""Python code runs between the tokens that a language model generates.

## What it means
Once a token the program turns it into text, looks for words to stop at, or draws the next one with
its own code on the host. Until that is done the next token is not begun.

In the trace: Python functions of 100 us and more in which no operator and no call of the device
begins, together a tenth of the step or more.

## Why it costs
A token takes some milliseconds. Work on the host beside it is of the same order, and it often grows
with the text: who decodes all tokens so far to show one more word does so n times. Meanwhile the
device stands idle.

## What to do
Draw tokens on the device. Turn them into text in a thread or a process of its own, or every so many
tokens, and only what is new of them.

The estimate leaves a fifth of their time.

## Fires on
A tokenizer runs after each token.

    column = 200 us
    mark 1   | ssssssssssttttttttttuuuuuuuuuu
    python 1 | gggggggggggggggggggggggggggggg
    python 1 |      ddddd     ddddd     ddddd
    cpu 1    | afafh     afafh     afafh
    g = serve.py(3): generate
    d = serve.py(30): detokenize
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::linear; input_shapes = [[1,1,64],[64,64],[64]]
    h = aten::linear; input_shapes = [[1,1,64],[1000,64]]
    f = aten::scaled_dot_product_attention

## Silent on
What the function calls is the network.

    column = 200 us
    mark 1   | ssssssssssttttttttttuuuuuuuuuu
    python 1 | gggggggggggggggggggggggggggggg
    python 1 |      ddddd     ddddd     ddddd
    cpu 1    | afafhafafhafafhafafhafafhafafh
    g = serve.py(3): generate
    d = net.py(30): forward
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::linear; input_shapes = [[1,1,64],[64,64],[64]]
    h = aten::linear; input_shapes = [[1,1,64],[1000,64]]
    f = aten::scaled_dot_product_attention

Steps of many rows, such as training: what Python does there is another matter.

    column = 200 us
    mark 1   | ssssssssssttttttttttuuuuuuuuuu
    python 1 | gggggggggggggggggggggggggggggg
    python 1 |      ddddd     ddddd     ddddd
    cpu 1    | afafh     afafh     afafh
    g = serve.py(3): generate
    d = serve.py(30): detokenize
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::linear; input_shapes = [[1,512,64],[64,64],[64]]
    h = aten::linear; input_shapes = [[1,512,64],[1000,64]]
    f = aten::scaled_dot_product_attention
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_steps import (
    begins_during_intervals,
    counted_step_count,
    slices_in_counted_steps,
    times_of_slices_named,
    union_of_interval_sets,
)
from selftime.advice.detectors.source_lines import LineSlices, logging_frames, slices_by_line
from selftime.advice.detectors.token_decoding import token_decoding_of
from selftime.advice.replay import CutHostTime
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.slice_arguments import parent_of_every_slice
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.intervals import length
from selftime.nesting import NO_SLICE
from selftime.trace import Trace
from selftime.units import whole_percent_text

MIN_PYTHON_FUNCTION_NS: Final = 100_000
"""Shortest Python function that counts, in ns; it takes as long as dispatching 20 operators."""

MIN_PYTHON_SHARE_OF_STEP: Final = 0.1
"""Smallest share of the step in Python functions without operators to report."""

REMAINING_PYTHON_TIME_SHARE: Final = 0.2
"""Assumed share of the functions' time that remains, to hand each token to another thread."""

FIX_CODE: Final = """texts = queue.Queue()  # filled once a token
threading.Thread(target=detokenize_from, args=(texts,)).start()
# and draw the token on the device:
probabilities = logits.softmax(dim=-1)
noise = torch.empty_like(probabilities).exponential_()
token = (probabilities / noise).argmax(dim=-1)"""
"""Example code of the fix: decode text in another thread, and sample tokens on the device."""


@rule(covers=("K9",), needs=("operators", "shapes", "stacks"))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    if step_stats is None or token_decoding_of(trace) is None:
        yield Checked(
            "the steps are not those of a model that makes one token after the other",
            is_absent=True,
        )
        return
    found = _python_frames_without_operators(trace)
    spent = _python_ms_per_step(trace, step_stats, found)
    if spent < MIN_PYTHON_SHARE_OF_STEP * step_stats.step_ms:
        least = whole_percent_text(MIN_PYTHON_SHARE_OF_STEP)
        yield Checked(f"Python functions without operators take less than {least} of a step", spent)
        return
    for functions in slices_by_line(trace, found):
        yield _finding(trace, step_stats, functions)


def _python_frames_without_operators(trace: Trace) -> pl.DataFrame:
    """Returns the outermost Python frames in the measured steps that call no operator.

    Those of PyTorch, those that log, load or compile, and the garbage collector are left out.
    """
    frames = slices_on(trace, "python").filter(pl.col("duration") >= MIN_PYTHON_FUNCTION_NS)
    frames = slices_in_counted_steps(trace, filter_by_name(frames, names.is_program_work))
    host = slices_on(trace, "host")
    issuing = host["category"].is_in([*names.OPERATOR_CATEGORIES, *names.RUNTIME_CALL_CATEGORIES])
    work = np.sort(host.filter(issuing)["start"].to_numpy())
    begin = frames["start"].to_numpy()
    end = begin + frames["duration"].to_numpy()
    alone = np.searchsorted(work, begin) == np.searchsorted(work, end)
    frames = frames.filter(pl.Series(alone, dtype=pl.Boolean))
    explained = union_of_interval_sets(
        times_of_slices_named(
            trace, names.is_data_loading, names.is_garbage_collection, names.is_compilation
        ),
        covered_time(logging_frames(trace)),
    )
    return _outermost_python_frames(
        trace, frames.filter(~begins_during_intervals(frames, explained))
    )


def _outermost_python_frames(trace: Trace, frames: pl.DataFrame) -> pl.DataFrame:
    chosen = np.zeros(trace.slices.height, bool)
    chosen[frames["id"].to_numpy()] = True
    parent = parent_of_every_slice(trace)
    at = parent[frames["id"].to_numpy()]
    within = np.zeros(at.size, bool)
    while (open_ := (at != NO_SLICE) & ~within).any():
        within[open_] = chosen[at[open_]]
        at = np.where(open_, parent[at], NO_SLICE)
    return frames.filter(~pl.Series(within, dtype=pl.Boolean))


def _python_ms_per_step(trace: Trace, step_stats: StepStatistics, frames: pl.DataFrame) -> float:
    return step_stats.scaled_to_typical_step(
        length(covered_time(frames)) / counted_step_count(trace) / 1e6
    )


def _finding(trace: Trace, step_stats: StepStatistics, functions: LineSlices) -> Finding:
    first: str = functions.slices.sort("duration", descending=True)["name"].cast(pl.String)[0]
    change = CutHostTime(functions.times, REMAINING_PYTHON_TIME_SHARE)
    return Finding(
        title=f"Each token waits for `{names.without_object_address(first)}` on the host",
        where=functions.where,
        count_per_step=functions.slices.height / counted_step_count(trace),
        claim=RemovalClaim((change,), largest_changes=(CutHostTime(functions.times),)),
        confidence="medium",
        evidence=(
            Evidence(
                "host time in Python functions without operators",
                _python_ms_per_step(trace, step_stats, functions.slices),
                "ms",
                functions.events(),
                functions.ids,
            ),
        ),
        fix=Fix(
            "Sample tokens on the device; in a thread of its own, decode only new tokens to text.",
            FIX_CODE,
        ),
    )
