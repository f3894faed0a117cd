"""The host's memory is returned to the system and taken anew.

## What it means
Large tensors on the CPU are made and released in every step. The C library returns large blocks to
the system at once, and asks for others for the next tensors: pages that the system must clear and
map when they are first written (page faults).

## Why it costs
A fault takes a quarter of a microsecond to several (most in virtual machines) for 4 KiB, often more
than computing what is written there. The time lies within the operators that write the new tensors,
and nothing in a trace tells it from their own.

## What to do
Let the C library keep what it has: set glibc's `MALLOC_MMAP_THRESHOLD_` and
`MALLOC_TRIM_THRESHOLD_` before the program starts, or preload jemalloc or tcmalloc. Or write into
tensors that are there, in place or with `out=`.

## Fires on
Many pages given by the system while tensors are made and released.

    column = 1 ms
    mark 1   | sssssssssstttttttttt
    cpu 1    |  mmmmmmmm  mmmmmmmm
    memory 1 |  B      b  B      b
    s = ProfilerStep#1
    t = ProfilerStep#2
    m = aten::mul; line = train.py:12 step
    B = block; bytes = 40960000
    facts = {"allocator": {"page_faults": 20000, "page_size": 4096, "system_ns": 10000000}}

## Silent on
The same, with memory that the process keeps.

    column = 1 ms
    mark 1   | sssssssssstttttttttt
    cpu 1    |  mmmmmmmm  mmmmmmmm
    memory 1 |  B      b  B      b
    s = ProfilerStep#1
    t = ProfilerStep#2
    m = aten::mul; line = train.py:12 step
    B = block; bytes = 40960000
    facts = {"allocator": {"page_faults": 30, "page_size": 4096, "system_ns": 10000}}

Small tensors, which the C library keeps: the pages went elsewhere.

    column = 1 ms
    mark 1   | sssssssssstttttttttt
    cpu 1    |  mmmmmmmm  mmmmmmmm
    memory 1 |  B      b  B      b
    s = ProfilerStep#1
    t = ProfilerStep#2
    m = aten::mul
    B = block; bytes = 4096
    facts = {"allocator": {"page_faults": 20000, "page_size": 4096, "system_ns": 10000000}}
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.base import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
    Where,
    rule,
    where,
)
from selftime.advice.detectors.counted_steps import covered
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Cut
from selftime.analysis.memory.allocations import records
from selftime.analysis.memory.blocks import blocks
from selftime.analysis.memory.holders import record_sites
from selftime.analysis.sites import EXECUTING, SITE
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.steps.steady_steps import assessed_steps, is_within
from selftime.intervals import length
from selftime.trace import Trace
from selftime.units import bytes_text

LEAST_SIZE: Final = 128 << 10
"""Blocks from this size on glibc takes from the system one by one (M_MMAP_THRESHOLD, mallopt(3)),
until it has learnt otherwise."""

LEAST_NEW: Final = 0.5
"""Of the memory made: fewer new pages may be the recorder's, or of whatever else grows."""

LEAST_FAULT: Final = 250e-6
"""Milliseconds that a page costs at least, cleared and mapped: to tell what is not worth asking."""

MOST_FAULT: Final = 5e-3
"""Milliseconds that a page costs at most, twice what was measured in a virtual machine: what the
process spent beyond that in the system was for something else, such as threads that wait."""

NEEDS: Final = (
    "how many pages the system gave: record with `selftime run` or `selftime.profile`, on Linux or "
    "macOS"
)
"""The counts stand beside the trace, in the recording's facts."""

LEAST_VOLUME: Final = 16 << 20
"""Bytes of new pages in a step, from which on they cost it a millisecond and more; what is below
may be another's: the recorder's, a library's, a thread's."""

WORTH_IT: Final = 0.25
"""Of the step: the system's time for pages varies with what else the machine does, so that a
smaller share is found on one day and not on the other."""

TIMES_HIGHER: Final = 2.0
"""The saving may be this many times as high: what a virtual machine's host does for a page is in no
count of the guest's, and the caches keep what is not given back."""

CODE: Final = """export MALLOC_MMAP_THRESHOLD_=1073741824    # bytes; before the program starts
export MALLOC_TRIM_THRESHOLD_=8589934592"""
"""How glibc is told to keep large blocks; both must be set."""


@dataclass(frozen=True, slots=True)
class _Pages:
    """What the system did for the process while the recording ran."""

    faults: int
    size: int
    system_ns: int


@rule(covers=("J10",), needs=("memory", "steps"), broad=True)
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    churn = _churn(trace)
    steps = max(assessed_steps(trace).height, 1)
    if limits is None or not churn.height:
        yield Checked("no step makes and releases large tensors on the CPU", is_absent=True)
        return
    if filter_by_name(trace.slices, _starts_workers).height:
        yield Unknown("a recording without worker processes: their start copies pages as well")
        return
    told = _pages(trace)
    volume = int(churn["size"].sum())
    if told is None:
        least = volume / 4096 * LEAST_FAULT / steps
        if limits.passes(least):
            yield Unknown(NEEDS)
        else:
            yield Checked(f"steps make and release {bytes_text(volume // steps)} on the CPU", least)
        return
    pages = min(told.faults, volume // told.size, steps * _unrecorded(trace, told.faults))
    if pages < LEAST_NEW * volume / told.size:
        yield Checked("the process keeps the memory of the large tensors that steps release")
        return
    fault = min(told.system_ns / max(told.faults, 1) / 1e6, MOST_FAULT)
    spent = pages * fault * _waiting(trace)
    for part in churn.partition_by("file", "function", maintain_order=True):
        share = int(part["size"].sum()) / volume
        yield _judged(trace, limits, part, spent * share, pages * share / steps)


def _starts_workers(name: str) -> bool:
    return names.is_data_loading(name) and not names.loads_on_main_thread(name)


def _pages(trace: Trace) -> _Pages | None:
    told = trace.facts.get("allocator")
    keys = ("page_faults", "page_size", "system_ns")
    values = [told.get(key) for key in keys] if isinstance(told, dict) else []
    whole = [value for value in values if isinstance(value, int) and value >= 0]
    return _Pages(*whole) if len(whole) == len(keys) and whole[1] else None


def _unrecorded(trace: Trace, most: int) -> int:
    """Pages that the system gave in the typical step that nobody recorded; `most` if not told.

    A recorder allocates between the program's blocks, and the C library gives back what it else
    would have kept.
    """
    told = trace.facts.get("steps")
    found = told.get("unprofiled_page_faults") if isinstance(told, dict) else None
    pages = [n for n in found if isinstance(n, int) and n >= 0] if isinstance(found, list) else []
    return round(median(pages)) if pages else most


def _waiting(trace: Trace) -> float:
    """Of the system's time: what the program waits for, between all and an equal part a thread."""
    threads = trace.facts.get("threads")
    return (1 + 1 / threads) / 2 if isinstance(threads, int) and threads > 0 else 1.0


def _churn(trace: Trace) -> pl.DataFrame:
    """Large blocks on the CPU that steps made and that were released again.

    Columns: those of `blocks` and of a site; start and end of the operator that writes the block.
    """
    every = blocks(records(trace).filter(pl.col("device_type") == "CPU"))
    large = every.filter((pl.col("state") == "released") & (pl.col("size") >= LEAST_SIZE))
    begun = large["allocated"].fill_null(-1).to_numpy()
    large = large.filter(pl.Series(is_within(begun, assessed_steps(trace)), dtype=pl.Boolean))
    placed = large.with_columns(
        record_sites(trace, large["allocation"]), id=_writers(trace, large["allocation"])
    )
    operators = trace.slices.select("id", "start", end=pl.col("start") + pl.col("duration"))
    return placed.join(operators, on="id", how="inner", maintain_order="left")


def _writers(trace: Trace, allocations: pl.Series) -> pl.Series:
    """The operator of each allocation; of one that only allocates, the operator that called it."""
    operators = trace.memory["operator"].gather(allocations)
    own = trace.slices[operators.drop_nulls().unique()].select(
        "id", "parent", name=pl.col("name").cast(pl.String)
    )
    bare = [names.is_bare_allocation(name) for name in own["name"].to_list()]
    caller = trace.slices["category"].gather(own["parent"]).cast(pl.String)
    called = pl.Series(bare, dtype=pl.Boolean) & caller.is_in(list(names.OPERATORS))
    writer = own.select(
        "id", writer=pl.when(called.fill_null(value=False)).then("parent").otherwise("id")
    )
    asked = operators.alias("id").to_frame()
    return asked.join(writer, on="id", how="left", maintain_order="left")["writer"]


def _judged(
    trace: Trace, limits: Gate, churn: pl.DataFrame, spent_ms: float, pages: float
) -> Finding | Checked:
    """One line: `spent_ms` in the whole recording, `pages` in a step."""
    times = covered(churn)
    whole_ms = length(times) / 1e6
    keep = 1 - min(spent_ms / whole_ms, 1.0) if whole_ms else 1.0
    change = Cut(times, keep)
    saving = priced(trace, limits, change, most=(Cut(times, 0.0),))
    high = None if saving.estimate_ms is None else TIMES_HIGHER * saving.estimate_ms
    saving = replace(saving, high_ms=_least(high, saving.upper_ms))
    steps = max(assessed_steps(trace).height, 1)
    volume = int(churn["size"].sum()) // steps
    upper = limits.unrecorded(saving.upper_ms or 0.0)
    if pages * 4096 < LEAST_VOLUME or (saving.estimate_ms or 0.0) < WORTH_IT * limits.step_ms:
        return Checked(
            f"new pages for large tensors are few: {bytes_text(pages * 4096)} a step", upper
        )
    finding = Finding(
        title=f"Each step takes {bytes_text(pages * 4096)} from the system and gives it back",
        where=_place(churn),
        count_per_step=churn.height / steps,
        saving=saving,
        confidence="medium",
        evidence=(
            Evidence("memory allocated and freed a step", float(volume), "bytes"),
            Evidence("pages requested from the operating system a step", pages, "count"),
            Evidence("CPU time in the operating system for them a step", spent_ms / steps, "ms"),
        ),
        fix=Fix(
            "Let the C library keep large blocks, or write in place or into tensors made once.",
            CODE,
        ),
        changes=(change,),
    )
    return limits.judge(finding)


def _place(churn: pl.DataFrame) -> Where:
    """The line of a function that makes most; a definition stands for any line of it."""
    exact = churn.filter(pl.col("how").is_in(EXECUTING))
    told = exact if exact.height else churn
    sums = told.group_by(*SITE, maintain_order=True).agg(pl.col("size").sum())
    return where(sums.sort("size", descending=True, maintain_order=True).row(0, named=True))


def _least(these: float | None, those: float | None) -> float | None:
    return min((value for value in (these, those) if value is not None), default=None)
