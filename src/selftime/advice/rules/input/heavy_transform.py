"""A function of the user makes samples slowly, and workers cannot hide it.

## What it means
The main thread loads the data, one function of the user's data set takes much of that, computing
and not waiting, and the machine has no core for workers that would do it meanwhile. Where workers
help, `slow_input` says so and names the function. In worker processes a trace of the main process
shows no function.

In the trace: a Python function of the data set that computes for 30 % of the loading on the main
thread or more; the model of the loader with workers saves nothing significant.

## Why it costs
The function runs once a sample. In Python each element of a sample costs a microsecond, and an
operator on a single sample little less than one on a whole batch.

## What to do
Transform whole batches, in `__getitems__` or after the copy to the device; do what is the same in
every epoch once, and store it; replace loops in Python by operators.

The estimate leaves a tenth of the function's time in Python; where it is mostly in operators, only
an upper bound is known.

## Fires on
One core, and a transform in Python.

    column = 1 ms
    facts = {"cores": {"effective": 1}, "threads": 1}
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1   | dddddddd    dddddddd    dddddddd
    python 1 | ffffffff    ffffffff    ffffffff
    python 1 | lllllll     lllllll     lllllll
    python 1 | ggggggg     ggggggg     ggggggg
    cpu 1    |         aaaa        aaaa        aaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    f = torch/utils/data/_utils/fetch.py(47): fetch
    l = torch/utils/data/_utils/fetch.py(54): <listcomp>
    g = data.py(12): __getitem__

## Silent on
Many cores: workers hide it.

    column = 1 ms
    facts = {"cores": {"effective": 16}, "threads": 16}
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1   | dddddddd    dddddddd    dddddddd
    python 1 | ffffffff    ffffffff    ffffffff
    python 1 | lllllll     lllllll     lllllll
    python 1 | ggggggg     ggggggg     ggggggg
    cpu 1    |         aaaa        aaaa        aaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    f = torch/utils/data/_utils/fetch.py(47): fetch
    l = torch/utils/data/_utils/fetch.py(54): <listcomp>
    g = data.py(12): __getitem__

A data set that waits for storage: it computes nothing.

    column = 1 ms
    facts = {"cores": {"effective": 1}, "threads": 1}
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1   | dddddddd    dddddddd    dddddddd
    python 1 | ffffffff    ffffffff    ffffffff
    python 1 | ggggggg     ggggggg     ggggggg
    python 1 | wwwwwww     wwwwwww     wwwwwww
    cpu 1    |         aaaa        aaaa        aaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    f = torch/utils/data/_utils/fetch.py(47): fetch
    g = data.py(12): __getitem__
    w = <built-in function sleep>
"""

from collections.abc import Iterator
from typing import Final

from selftime.advice.detectors.batch_fetching import (
    LoadingFunction,
    outcome_without_loading_function,
    share_of_loading_time,
    transform_function,
)
from selftime.advice.detectors.exposed_loading import DataLoadingTimes, data_loading_times_of
from selftime.advice.detectors.loader_workers import predict_step_with_workers
from selftime.advice.replay import CutHostTime
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import RemovalClaim, UpperBoundClaim
from selftime.advice.savings.estimates import estimated_saving_of_recorded_step
from selftime.advice.step_statistics import step_statistics
from selftime.intervals import length
from selftime.trace import Trace
from selftime.units import whole_percent_text

MIN_FUNCTION_SHARE_OF_LOADING: Final = 0.3
"""Smallest share of the data loading time in one function for the rule to name it."""

VECTORISED_PYTHON_TIME_SHARE: Final = 0.1
"""Assumed share of the time of Python loops that operators on whole batches take instead."""

MIN_PYTHON_SHARE_OF_FUNCTION: Final = 0.5
"""Smallest share of a function's time in Python for which the rule can estimate a saving."""

FIX_CODE: Final = """def __getitems__(self, indices):            # a whole batch at once
    return list(self.transform(self.raw[indices]))"""
"""Example code of the fix: PyTorch calls a data set's `__getitems__` once for a whole batch."""


@rule(covers=("A4",), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats, loading, loading_function = (
        step_statistics(trace),
        data_loading_times_of(trace),
        transform_function(trace),
    )
    if step_stats is None or loading is None:
        yield Checked("no data loader is in this trace", is_absent=True)
        return
    if loading.has_workers:
        yield Checked("the data set's functions run in worker processes", is_absent=True)
        return
    if loading_function is None:
        yield outcome_without_loading_function(trace)
        return
    loading_share = share_of_loading_time(trace, loading_function.computing_times)
    told = (
        f"`{loading_function.function}` computes for {whole_percent_text(loading_share)} of the "
        "data loading time"
    )
    if loading.is_small or loading_share < MIN_FUNCTION_SHARE_OF_LOADING:
        yield Checked(told, loading_share * loading.exposed_ms)
        return
    saved = loading.step_ms - predict_step_with_workers(loading, trace.facts).likely_ms
    if step_stats.with_noise(loading.noise_ms).is_saving_worth_reporting(saved):
        yield Checked(f"{told}; workers would hide it, see `slow_input`")
        return
    yield _finding(trace, loading, loading_function, loading_share)


def _finding(
    trace: Trace, loading: DataLoadingTimes, loading_function: LoadingFunction, loading_share: float
) -> Finding:
    is_python = length(loading_function.python_times) > MIN_PYTHON_SHARE_OF_FUNCTION * length(
        loading_function.computing_times
    )
    better, most = (
        CutHostTime(loading_function.python_times, VECTORISED_PYTHON_TIME_SHARE),
        CutHostTime(loading_function.computing_times),
    )
    claim = RemovalClaim((better,), largest_changes=(most,), noise_ms=loading.noise_ms)
    bound = UpperBoundClaim(estimated_saving_of_recorded_step(trace, claim).upper_ms)
    return Finding(
        title=(
            f"`{loading_function.function}` takes {whole_percent_text(loading_share)} of the data "
            "loading, and no core is free"
        ),
        where=loading_function.where,
        claim=claim if is_python else bound,
        confidence="medium",
        evidence=(
            Evidence(
                "share of data loading time", loading_share, "ratio", (loading_function.event,)
            ),
            Evidence("exposed data loading time", loading.exposed_ms, "ms"),
        ),
        fix=Fix("Transform whole batches, or once for all epochs, or on the device.", FIX_CODE),
    )
