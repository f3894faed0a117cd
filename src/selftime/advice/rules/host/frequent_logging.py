"""Each step prints, logs or draws a progress bar.

## What it means
Frames of `print`, `logging`, `tqdm`, `wandb`, TensorBoard, or the formatting of tensors lie in the
steps, and the step waits for them.

## Why it costs
A line of text costs 10 us to some ms; a tensor that is formatted costs dozens of operators, and on
a device a wait for its values. A mean over a list of all losses so far costs more in every step.

## What to do
Log once in many steps, and keep sums on the device until then. Give `tqdm` a `mininterval`.

## Fires on
A program that prints in each step.

    column = 100 us
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuu
    python 1 | ffffffffffffffffffffffffffffffffffff
    python 1 |         ppp         ppp         ppp
    cpu 1    | mmmmmmm     mmmmmmm     mmmmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    f = train.py(3): main
    p = <built-in function print>
    m = aten::mm

## Silent on
A program that prints quickly.

    column = 100 us
    mark 1   | ssssssssssssssssssssssssssssssssssssttttttttttttttttttttttttttttttttttt
    python 1 | ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff
    cpu 1    | mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = train.py(3): main
    m = aten::mm

Printing while the device works on what it has.

    column = 100 us
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuu
    python 1 | ffffffffffffffffffffffffffffffffffff
    python 1 |         ppp         ppp         ppp
    call 1   | k           k           k
    gpu 7    | kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    f = train.py(3): main
    p = <built-in function print>
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.detectors.counted_steps import (
    counted,
    gate_of,
    is_during,
    regions_of,
    steps_counted,
)
from selftime.advice.detectors.places import Place, logging_frames, places
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Cut
from selftime.analysis.parents import parents
from selftime.analysis.slice_filters import filter_by_name
from selftime.intervals import length
from selftime.nesting import NONE, nearest
from selftime.trace import Trace

KEPT: Final = 0.02
"""Of the time that stays if the program logs in one of fifty steps."""

CODE: Final = """if step % 50 == 0:
    print(f"step {step}: {loss.item():.3f}")"""
"""Logging now and then."""


@rule(covers=("D5", "B3"), needs=("stacks",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    frames = _outermost(trace)
    if limits is None or not frames.height:
        yield Checked("no step prints or logs", is_absent=True)
        return
    for place in places(trace, frames):
        own = gate_of(trace, limits, place.times)
        yield own.judge(_finding(trace, limits, place))


def _outermost(trace: Trace) -> pl.DataFrame:
    """Frames that log, in the steps that count, and within no other that does.

    A progress bar around the loader spans the loading too; that has rules of its own.
    """
    every = logging_frames(trace)
    logs = np.zeros(trace.slices.height, bool)
    logs[every["id"].to_numpy()] = True
    parent = every["parent"].cast(pl.Int64).fill_null(NONE).to_numpy()
    within = nearest(parents(trace), logs, parent) != NONE
    own = counted(trace, every.filter(~pl.Series(within, dtype=pl.Boolean)))
    loading = regions_of(trace, names.is_data_loading, names.is_loading_frame)
    begun = np.searchsorted(loading.starts, own["start"].to_numpy())
    ended = np.searchsorted(loading.starts, (own["start"] + own["duration"]).to_numpy())
    spans = pl.Series(begun != ended, dtype=pl.Boolean)
    return own.filter(~spans & ~is_during(own, loading))


def _formats_tensors(trace: Trace, place: Place) -> bool:
    """Whether the values of a tensor are written there, for which a device would be waited for."""
    written = filter_by_name(logging_frames(trace), names.formats_tensor)["start"].sort().to_numpy()
    begin, last = place.slices["start"].to_numpy(), place.slices["duration"].to_numpy()
    return bool((np.searchsorted(written, begin) < np.searchsorted(written, begin + last)).any())


def _finding(trace: Trace, limits: Gate, place: Place) -> Finding:
    steps = steps_counted(trace)
    count = place.slices.height / steps
    change = Cut(place.times, KEPT)
    spent = limits.typical(length(place.times) / steps / 1e6)
    total = place.slices.group_by("name", maintain_order=True).agg(pl.col("duration").sum())
    most: str = total.sort("duration", descending=True)["name"].cast(pl.String)[0]
    often = "once" if round(count) == 1 else f"{count:.0f} times"
    return Finding(
        covers=("B3",) if _formats_tensors(trace, place) else ("D5",),
        title=f"The step logs {often}, with `{names.without_address(most)}`",
        where=place.where,
        count_per_step=count,
        saving=priced(trace, limits, change, most=(Cut(place.times),)),
        confidence="high",
        evidence=(Evidence("host time of logging", spent, "ms", place.events()),),
        fix=Fix("Log once in many steps.", CODE),
        changes=(change,),
    )
