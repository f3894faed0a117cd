"""Python works between the tokens of a language model.

## What it means
Once a token the program turns it into text, looks for words to stop at, or draws the next one with
its own code on the host. Until that is done the next token is not begun.

## Why it costs
A token takes some milliseconds. Work on the host beside it is of the same order, and it often grows
with the text: who decodes all tokens so far to show one more word does so n times. Meanwhile the
device stands idle.

## What to do
Draw tokens on the device. Turn them into text in a thread or a process of its own, or every so many
tokens, and only what is new of them.

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
    f = aten::softmax

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
    f = aten::softmax

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
    f = aten::softmax
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.detectors.counted_steps import (
    both,
    counted,
    is_during,
    regions_of,
    steps_counted,
)
from selftime.advice.detectors.decoding import decoding
from selftime.advice.detectors.places import Place, logging_frames, places
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Cut
from selftime.analysis.parents import parents
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.intervals import length
from selftime.nesting import NONE
from selftime.trace import Trace

LONG_NS: Final = 100_000
"""A function that takes as long as the dispatch of twenty operators works; shorter ones lead on."""

LEAST_SHARE: Final = 0.1
"""Of the step: below it stands what any loop in Python costs that calls a network."""

KEPT: Final = 0.2
"""Of the time that stays on the token's way, to hand it on: a starting value."""

CODE: Final = """texts = queue.Queue()                                  # filled once a token
threading.Thread(target=detokenize_from, args=(texts,), daemon=True).start()
probabilities = logits.softmax(dim=-1)                 # and drawn on the device:
token = (probabilities / torch.empty_like(probabilities).exponential_()).argmax(dim=-1)"""
"""Off the token's way."""


@rule(covers=("K9",), needs=("operators", "shapes", "stacks"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    if limits is None or decoding(trace) is None:
        yield Checked(
            "the steps are not those of a model that makes one token after the other",
            is_absent=True,
        )
        return
    found = _idle_functions(trace)
    spent = _spent(trace, limits, found)
    if spent < LEAST_SHARE * limits.step_ms:
        upper = limits.unrecorded(spent)
        yield Checked(f"functions without an operator take {upper:.2f} ms of a token", upper)
        return
    for place in places(trace, found):
        yield limits.judge(_finding(trace, limits, place))


def _idle_functions(trace: Trace) -> pl.DataFrame:
    """Functions of the steps that count that issue nothing, and are in no other that does not.

    Those of PyTorch, those that log, load or compile, and the garbage collector are left out.
    """
    frames = slices_on(trace, "python").filter(pl.col("duration") >= LONG_NS)
    frames = counted(trace, filter_by_name(frames, names.is_program_work))
    host = slices_on(trace, "host")
    issuing = host["category"].is_in([*names.OPERATORS, *names.CALLS])
    work = np.sort(host.filter(issuing)["start"].to_numpy())
    begin = frames["start"].to_numpy()
    end = begin + frames["duration"].to_numpy()
    alone = np.searchsorted(work, begin) == np.searchsorted(work, end)
    frames = frames.filter(pl.Series(alone, dtype=pl.Boolean))
    explained = both(
        regions_of(trace, names.is_data_loading, names.is_garbage_collection, names.is_compilation),
        covered_time(logging_frames(trace)),
    )
    return _outermost(trace, frames.filter(~is_during(frames, explained)))


def _outermost(trace: Trace, frames: pl.DataFrame) -> pl.DataFrame:
    chosen = np.zeros(trace.slices.height, bool)
    chosen[frames["id"].to_numpy()] = True
    parent = parents(trace)
    at = parent[frames["id"].to_numpy()]
    within = np.zeros(at.size, bool)
    while (open_ := (at != NONE) & ~within).any():
        within[open_] = chosen[at[open_]]
        at = np.where(open_, parent[at], NONE)
    return frames.filter(~pl.Series(within, dtype=pl.Boolean))


def _spent(trace: Trace, limits: Gate, frames: pl.DataFrame) -> float:
    return limits.typical(length(covered_time(frames)) / steps_counted(trace) / 1e6)


def _finding(trace: Trace, limits: Gate, place: Place) -> Finding:
    first: str = place.slices.sort("duration", descending=True)["name"].cast(pl.String)[0]
    change = Cut(place.times, KEPT)
    return Finding(
        title=f"Each token waits for `{names.without_address(first)}` on the host",
        where=place.where,
        count_per_step=place.slices.height / steps_counted(trace),
        saving=priced(trace, limits, change, most=(Cut(place.times),)),
        confidence="medium",
        evidence=(
            Evidence(
                "host time in functions that issue no operator",
                _spent(trace, limits, place.slices),
                "ms",
                place.events(),
            ),
        ),
        fix=Fix("Draw on the device; make text in a thread of its own, of what is new.", CODE),
        changes=(change,),
    )
