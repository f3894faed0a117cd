"""A function of the user makes samples slowly, and workers cannot hide it.

## What it means
The main thread loads the data, one function of the user's data set takes much of that, computing
and not waiting, and the machine has no core for workers that would do it meanwhile. Where workers
help, `slow_input` says so and names the function. In worker processes a trace of the main process
shows no function.

## Why it costs
The function runs once a sample. In Python each element of a sample costs a microsecond, and an
operator on a single sample little less than one on a whole batch.

## What to do
Transform whole batches, in `__getitems__` or after the copy to the device; do what is the same in
every epoch once, and store it; replace loops in Python by operators.

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

from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, rule
from selftime.advice.detectors.batch_fetching import Part, share_of_loading, transforming, untold
from selftime.advice.detectors.loader_workers import without_waiting
from selftime.advice.detectors.loading import Loading, loading_of
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Cut
from selftime.intervals import length
from selftime.trace import Trace

HEAVY: Final = 0.3
"""A function with less of the loading is not what is slow: the next one takes as much."""

VECTORISED: Final = 0.1
"""What operators on whole batches leave of loops in Python: a microsecond an element becomes less
than a tenth of one."""

IN_PYTHON: Final = 0.5
"""With more of its time in Python, a function gains what operators gain; else nobody knows."""

CODE: Final = """def __getitems__(self, indices):            # a whole batch at once
    return list(self.transform(self.raw[indices]))"""
"""PyTorch calls it with the indices of a batch, where a data set has it."""


@rule(covers=("A4",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits, loading, part = gate(trace), loading_of(trace), transforming(trace)
    if limits is None or loading is None or loading.has_workers:
        yield Checked("no function of a data set runs on the main thread", is_absent=True)
        return
    if part is None:
        yield untold(trace)
        return
    share = share_of_loading(trace, part.computing)
    told = f"`{part.function}` computes for {share:.0%} of the data loading"
    if loading.is_small or share < HEAVY:
        yield Checked(told, limits.unrecorded(share * loading.exposed))
        return
    saved = loading.step - without_waiting(loading, trace.facts).likely
    if limits.of_cause(loading.noise).passes(saved):
        yield Checked(f"{told}; workers would hide it, see `slow_input`")
        return
    yield limits.of_cause(loading.noise).judge(_finding(trace, limits, loading, part, share))


def _finding(trace: Trace, limits: Gate, loading: Loading, part: Part, share: float) -> Finding:
    is_python = length(part.python) > IN_PYTHON * length(part.computing)
    better, most = Cut(part.python, VECTORISED), Cut(part.computing)
    saving = priced(trace, limits, better, most=(most,))
    return Finding(
        title=f"`{part.function}` takes {share:.0%} of the data loading, and no core is free",
        where=part.where,
        saving=saving if is_python else Saving(upper_ms=saving.upper_ms),
        confidence="medium",
        evidence=(
            Evidence("share of data loading time", share, "ratio", (part.event,)),
            Evidence("exposed data loading time", loading.exposed, "ms"),
        ),
        fix=Fix("Transform whole batches, or once for all epochs, or on the device.", CODE),
        changes=(better,) if is_python else (),
    )
