"""Each forward pass is searched for parameters that it did not use.

## What it means
With `find_unused_parameters=True` a replicated module walks through the graph of every forward
pass, to find the parameters that will get no gradient, and all ranks communicate the result.

In the trace: the Python frames of the search, and of the reducer that uses its result.

## Why it costs
The walk visits every node of the graph on the host, and the communication is one more collective,
with its latency. Both are useless if every step uses every parameter.

## What to do
Leave the argument out if each step uses all parameters: PyTorch says so in its log, once. If the
unused parameters never change, pass `static_graph=True` instead, which searches once.

The estimate removes the time of these frames.

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
from selftime.advice.detectors.counted_steps import counted_step_count, slices_in_counted_steps
from selftime.advice.detectors.gradient_communication import ddp_forward_passes
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.replay import CutHostTime
from selftime.advice.rule_definition import Argument, Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.intervals import length
from selftime.trace import Trace


@rule(covers=("I5",), needs=("steps", "stacks"))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats, forward_passes = step_statistics(trace), ddp_forward_passes(trace)
    search_frames = _unused_parameter_search_frames(trace)
    if step_stats is None or not forward_passes.height or not search_frames.height:
        yield Checked("no forward pass is searched for unused parameters", is_absent=True)
        return
    yield _finding(trace, step_stats, forward_passes, LineSlices.as_one_group(search_frames))


def _unused_parameter_search_frames(trace: Trace) -> pl.DataFrame:
    """Returns Python frames in which DDP searches for unused parameters or prepares its reducer."""
    frames = slices_in_counted_steps(trace, slices_on(trace, "python"))
    search_frames = filter_by_name(frames, names.finds_unused_parameters)
    if not search_frames.height:
        return search_frames
    return pl.concat([search_frames, filter_by_name(frames, names.prepares_reducer)]).sort(
        "start", "id"
    )


def _finding(
    trace: Trace,
    step_stats: StepStatistics,
    forward_passes: pl.DataFrame,
    search_frames: LineSlices,
) -> Finding:
    changes = (CutHostTime(search_frames.times),)
    spent = step_stats.scaled_to_typical_step(
        length(search_frames.times) / counted_step_count(trace) / 1e6
    )
    return Finding(
        title="Each forward pass searches for unused parameters",
        where=next(
            slices_by_line(trace, forward_passes), LineSlices.as_one_group(forward_passes)
        ).where,
        count_per_step=forward_passes.height / counted_step_count(trace),
        claim=RemovalClaim(changes),
        confidence="low",
        evidence=(
            Evidence(
                "host time of the search", spent, "ms", search_frames.events(), search_frames.ids
            ),
        ),
        fix=Fix(
            "Do not search if each step uses all parameters.",
            "DistributedDataParallel(model)   # without find_unused_parameters=True",
            Argument("loop", "unused_parameters", "False"),
        ),
    )
