"""Each forward pass is searched for parameters that it did not use.

## What it means
With `find_unused_parameters=True` a replicated module walks through the graph of every forward
pass, to tell which parameters will get no gradient, and all ranks exchange what they found.

## Why it costs
The walk visits every node of the graph on the host, and the exchange is one more, with its latency.
Where every parameter is used in every step both are for nothing.

## What to do
Leave the argument out if each step uses all parameters: PyTorch says so in its log, once. If what
is unused never changes, pass `static_graph=True` instead, which looks once.

## Fires on
A search after each forward pass.

    column = 1 ms
    mark 1   | sssssssssstttttttttt
    mark 1   | ffff      ffff
    cpu 1    | aa  bbbb  aa  bbbb
    python 1 |   up        up
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = DistributedDataParallel.forward; line = train.py:21 train
    a = aten::linear
    b = aten::mm
    u = torch/nn/parallel/distributed.py(282): _find_tensors
    p = <built-in method prepare_for_backward of Reducer object at 0x7f>

## Silent on
A module that does not search.

    column = 1 ms
    mark 1   | sssssssssstttttttttt
    mark 1   | ffff      ffff
    cpu 1    | aa  bbbb  aa  bbbb
    python 1 |    p         p
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = DistributedDataParallel.forward; line = train.py:21 train
    a = aten::linear
    b = aten::mm
    p = <built-in method prepare_for_backward of Reducer object at 0x7f>
"""

from collections.abc import Iterator

import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.detectors.communication import replica_forwards
from selftime.advice.detectors.counted_steps import counted, steps_counted
from selftime.advice.detectors.places import Place, places
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Cut
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.intervals import length
from selftime.trace import Trace


@rule(covers=("I5",), needs=("steps", "stacks"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits, forwards = gate(trace), replica_forwards(trace)
    search = _frames(trace)
    if limits is None or not forwards.height or not search.height:
        yield Checked("no forward pass is searched for unused parameters", is_absent=True)
        return
    yield limits.judge(_finding(trace, limits, forwards, Place.of(search)))


def _frames(trace: Trace) -> pl.DataFrame:
    """The search, and what the reducer makes of it; nothing where there is no search."""
    frames = counted(trace, slices_on(trace, "python"))
    search = filter_by_name(frames, names.finds_unused_parameters)
    if not search.height:
        return search
    return pl.concat([search, filter_by_name(frames, names.prepares_reducer)]).sort("start", "id")


def _finding(trace: Trace, limits: Gate, forwards: pl.DataFrame, search: Place) -> Finding:
    changes = (Cut(search.times),)
    spent = limits.typical(length(search.times) / steps_counted(trace) / 1e6)
    return Finding(
        title="Each forward pass is searched for unused parameters",
        where=next(places(trace, forwards), Place.of(forwards)).where,
        count_per_step=forwards.height / steps_counted(trace),
        saving=priced(trace, limits, *changes),
        confidence="low",
        evidence=(Evidence("host time of the search", spent, "ms", search.events()),),
        fix=Fix(
            "Do not search if each step uses all parameters.",
            "DistributedDataParallel(model)   # without find_unused_parameters=True",
        ),
        changes=changes,
    )
