"""Samples are joined to a batch by slow Python.

## What it means
On the main thread, the loader's `collate_fn` takes most of the time of a batch, in Python or in
operators so short that their dispatch is what costs. Joining large tensors takes as long as memory
does, and is not meant. With workers it runs in them, where a trace of the main process shows no
function; `selftime run --workers` records what they do.

## Why it costs
It runs once a batch and touches each sample, or each element, one by one: lists of numbers that
become a tensor, a copy for every row, a dictionary of many small tensors.

## What to do
Keep samples as tensors and join them by one operator: `torch.stack`, or
`torch.nn.utils.rnn.pad_sequence` for samples of several lengths; make fewer tensors a sample.
Workers hide what is left.

## Fires on
The loader's `collate_fn` in Python.

    column = 1 ms
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1   | dddddddd    dddddddd    dddddddd
    python 1 | ffffffff    ffffffff    ffffffff
    python 1 | lcccccc     lcccccc     lcccccc
    cpu 1    |         aaaa        aaaa        aaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    f = torch/utils/data/_utils/fetch.py(47): fetch
    l = torch/utils/data/_utils/fetch.py(54): <listcomp>
    c = train.py(20): collate

## Silent on
Making the samples is what takes the time.

    column = 1 ms
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1   | dddddddd    dddddddd    dddddddd
    python 1 | ffffffff    ffffffff    ffffffff
    python 1 | llllllc     llllllc     llllllc
    cpu 1    |         aaaa        aaaa        aaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    f = torch/utils/data/_utils/fetch.py(47): fetch
    l = torch/utils/data/_utils/fetch.py(54): <listcomp>
    c = train.py(20): collate

One operator joins large tensors: that is the memory's time.

    column = 1 ms
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1   | dddddddd    dddddddd    dddddddd
    python 1 | ffffffff    ffffffff    ffffffff
    python 1 | lcccccc     lcccccc     lcccccc
    cpu 1    |  kkkkkk aaaa kkkkkk aaaa kkkkkk aaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    f = torch/utils/data/_utils/fetch.py(47): fetch
    l = torch/utils/data/_utils/fetch.py(54): <listcomp>
    c = torch/utils/data/_utils/collate.py(336): default_collate
    k = aten::stack
"""

from collections.abc import Iterator
from typing import Final

from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, rule, where
from selftime.advice.detectors.batch_fetching import (
    collating,
    share_of_loading,
    untold,
    waits_for_workers,
)
from selftime.advice.detectors.loader_workers import Inside, inside
from selftime.advice.detectors.loading import Loading, loading_of, regions_of_loading
from selftime.advice.detectors.recorded_facts import Workers
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Cut
from selftime.trace import Trace

MOSTLY: Final = 0.5
"""Below this share of the loading, samples cost more than joining them."""

VECTORISED: Final = 0.1
"""What one operator leaves of a loop in Python: a microsecond an element becomes less than a tenth
of one."""

CODE: Final = """def collate(samples):
    x, y = zip(*samples)
    return torch.nn.utils.rnn.pad_sequence(x, batch_first=True), torch.stack(y)"""
"""Tensors of several lengths, joined by two operators."""


@rule(covers=("A5",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits, loading, part = gate(trace), loading_of(trace), collating(trace)
    told = inside(trace)
    if limits is not None and loading is not None and loading.has_workers and told is not None:
        yield _in_workers(trace, limits, loading, told)
        return
    if limits is None or loading is None or loading.has_workers:
        yield Checked("no batch is joined on the main thread", is_absent=True)
        return
    if part is None:
        yield untold(trace)
        return
    share = share_of_loading(trace, part.python)
    if loading.is_small or share < MOSTLY:
        reason = f"`{part.function}` takes {share:.0%} of the data loading in Python"
        yield Checked(reason, limits.unrecorded(share * loading.exposed))
        return
    row = max(regions_of_loading(trace), key=lambda row: row["exposed_time"])
    better = Cut(part.python, VECTORISED)
    finding = Finding(
        title=f"`{part.function}` joins samples in Python for {share:.0%} of the data loading",
        where=part.where if part.is_own else where(row),
        count_per_step=row["count_per_step"],
        saving=priced(trace, limits, better, most=(Cut(part.whole),)),
        confidence="high" if part.is_own else "medium",
        evidence=(
            Evidence("share of data loading time", share, "ratio", (part.event,)),
            Evidence("exposed data loading time", loading.exposed, "ms"),
        ),
        fix=Fix("Join tensors by one operator, and make fewer of them a sample.", CODE),
        changes=(better,),
    )
    yield limits.of_cause(loading.noise).judge(finding)


def _in_workers(trace: Trace, limits: Gate, loading: Loading, told: Inside) -> Outcome:
    """Workers that are too slow, and do hardly anything but join samples."""
    place, steady = told.collation, loading.is_steady(Workers.of(trace.facts))
    if loading.is_small or not steady or told.rest or told.collating < MOSTLY or place is None:
        reason = f"workers join samples for {told.collating:.0%} of their work"
        return Checked(reason, limits.unrecorded(told.collating * loading.exposed))
    waits = waits_for_workers(trace)
    # They end a batch every `step`; with the rest of their work they would end it so much sooner.
    faster = loading.step * (1 - (1 - VECTORISED) * place.share)
    gained = min(loading.exposed, loading.step - max(faster, loading.rest))
    change = Cut(waits, 1 - gained / loading.exposed)
    finding = Finding(
        title=f"`{place.where.function}` joins samples for {place.share:.0%} of the workers' work",
        where=place.where,
        count_per_step=1.0,
        saving=priced(trace, limits, change, most=(Cut(waits),)),
        confidence="medium",
        evidence=(
            Evidence("wait for workers", loading.exposed, "ms"),
            Evidence("worker time for a batch", told.batch_ms, "ms"),
            *told.evidence(),
        ),
        fix=Fix("Join tensors by one operator, and make fewer of them a sample.", CODE),
        changes=(change,),
    )
    return limits.of_cause(loading.noise).judge(finding)
