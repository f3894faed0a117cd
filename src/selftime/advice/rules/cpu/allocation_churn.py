"""Each step returns host memory to the system and requests it again.

## What it means
Large tensors on the CPU are made and released in every step. The C library returns large blocks to
the system at once, and asks for others for the next tensors: pages that the system must clear and
map when they are first written (page faults).

In the trace: blocks of 128 KiB and more that the steps make and release. The page faults of the
process, and the system's time for them, are facts of a recording by selftime: 16 MiB of new pages
or more a step must cost a quarter of it.

## Why it costs
A fault takes a quarter of a microsecond to several (most in virtual machines) for 4 KiB, often more
than computing what is written there. The time is part of the operators that write the new tensors,
and a trace does not separate it from theirs.

## What to do
Let the C library keep released memory: set glibc's `MALLOC_MMAP_THRESHOLD_` and
`MALLOC_TRIM_THRESHOLD_` before the program starts, or preload jemalloc or tcmalloc. Or write into
existing tensors, in place or with `out=`.

The estimate removes the system's time for these pages from the operators that write the blocks.

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
from dataclasses import dataclass
from statistics import median
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.detectors.counted_steps import operator_intervals
from selftime.advice.replay import CutHostTime
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
    Where,
    rule,
    where_from_row,
)
from selftime.advice.savings.claims import REPLAYED_SAVING_RANGE, RemovalClaim, SavingRange
from selftime.advice.savings.estimates import estimated_saving_of_recorded_step
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.memory.block_holders import source_sites_of_memory_records
from selftime.analysis.memory.blocks import memory_blocks_from_records
from selftime.analysis.memory.memory_records import memory_records_of_device_type
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.source_sites import EVIDENCE_OF_EXECUTING_LINE, SOURCE_SITE_COLUMNS
from selftime.analysis.steps.steady_steps import is_instant_in_windows, steps_with_counted_flags
from selftime.intervals import length
from selftime.trace import Trace
from selftime.units import bytes_text

MIN_LARGE_BLOCK_BYTES: Final = 128 << 10
"""Smallest block in bytes that glibc requests from the system separately (M_MMAP_THRESHOLD)."""

MIN_NEW_PAGE_SHARE_OF_ALLOCATED_BYTES: Final = 0.5
"""Smallest share of allocated bytes in new pages to report; fewer pages may be the profiler's."""

MIN_MS_PER_PAGE_FAULT: Final = 250e-6
"""Smallest time for a page fault (a new page is cleared and mapped), in ms. If all pages together
matter too little at this time each, the rule does not ask for missing page counts."""

MAX_MS_PER_PAGE_FAULT: Final = 5e-3
"""Largest time for a page fault in ms, twice what a virtual machine took; longer system time has
other reasons, such as waiting threads."""

MISSING_PAGE_COUNTS_MESSAGE: Final = (
    "how many memory pages the system gave: record with `selftime run` or `selftime.profile`, on "
    "Linux or macOS"
)
"""Message that says how to record the number of page faults, if the recording lacks it."""

MIN_NEW_PAGE_BYTES_PER_STEP: Final = 16 << 20
"""Smallest number of bytes in new pages per step to report; they cost a millisecond or more."""

MIN_SAVED_SHARE_OF_STEP: Final = 0.25
"""Smallest share of the step that the fix must save; page fault times vary with the machine's
load."""

MAX_SAVING_TO_ESTIMATE_RATIO: Final = 2.0
"""Largest ratio of the true saving to the estimate; a virtual machine hides its host's share of the
page fault time."""

KEEP_LARGE_BLOCKS_FIX_CODE: Final = """\
export MALLOC_MMAP_THRESHOLD_=1073741824  # before the program starts
export MALLOC_TRIM_THRESHOLD_=8589934592"""
"""Environment variables by which glibc keeps large blocks; both are needed."""


@dataclass(frozen=True, slots=True)
class _RecordedPageFaults:
    """The recorded process's page faults: number, bytes per page, and system CPU time in ns.

    The CPU time is that of the operating system for the page faults.
    """

    count: int
    page_bytes: int
    system_ns: int


@rule(covers=("J10",), needs=("memory", "steps"), broad=True)
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    blocks = _large_released_cpu_blocks(trace)
    steps = max(steps_with_counted_flags(trace).height, 1)
    if limits is None or not blocks.height:
        yield Checked("no step allocates and releases large tensors on the CPU", is_absent=True)
        return
    if filter_by_name(trace.slices, _is_loading_with_worker_processes).height:
        yield Unknown(
            "a recording in which no worker processes start, as their start copies pages too"
        )
        return
    page_faults = _recorded_page_faults(trace)
    volume = int(blocks["size"].sum())
    if page_faults is None:
        least = volume / 4096 * MIN_MS_PER_PAGE_FAULT / steps
        if limits.is_saving_worth_reporting(least):
            yield Unknown(MISSING_PAGE_COUNTS_MESSAGE)
        else:
            yield Checked(
                f"steps allocate and release tensors of {bytes_text(volume // steps)} on the CPU"
            )
        return
    pages = min(
        page_faults.count,
        volume // page_faults.page_bytes,
        steps * _page_faults_per_unrecorded_step(trace, page_faults.count),
    )
    if pages < MIN_NEW_PAGE_SHARE_OF_ALLOCATED_BYTES * volume / page_faults.page_bytes:
        yield Checked("the process keeps the memory of the large tensors that steps release")
        return
    fault_ms = min(page_faults.system_ns / max(page_faults.count, 1) / 1e6, MAX_MS_PER_PAGE_FAULT)
    spent_ms = pages * fault_ms * _assumed_awaited_system_time_share(trace)
    for blocks_of_function in blocks.partition_by("file", "function", maintain_order=True):
        share = int(blocks_of_function["size"].sum()) / volume
        yield _outcome_for_blocks_of_function(
            trace, limits, blocks_of_function, spent_ms * share, pages * share / steps
        )


def _is_loading_with_worker_processes(slice_name: str) -> bool:
    return names.is_data_loading(slice_name) and not names.loads_on_main_thread(slice_name)


def _recorded_page_faults(trace: Trace) -> _RecordedPageFaults | None:
    allocator = trace.facts.get("allocator")
    keys = ("page_faults", "page_size", "system_ns")
    values = [allocator.get(key) for key in keys] if isinstance(allocator, dict) else []
    whole = [value for value in values if isinstance(value, int) and value >= 0]
    return _RecordedPageFaults(*whole) if len(whole) == len(keys) and whole[1] else None


def _page_faults_per_unrecorded_step(trace: Trace, default_count: int) -> int:
    """Returns the median page fault count of unrecorded steps; `default_count` if unknown.

    A recorder allocates between the program's blocks, and the C library gives back what it else
    would have kept.
    """
    step_facts = trace.facts.get("steps")
    counts = step_facts.get("unprofiled_page_faults") if isinstance(step_facts, dict) else None
    pages = [n for n in counts if isinstance(n, int) and n >= 0] if isinstance(counts, list) else []
    return round(median(pages)) if pages else default_count


def _assumed_awaited_system_time_share(trace: Trace) -> float:
    """Returns the assumed share of the operating system's CPU time that delays the program.

    It is the mean of all, as if one thread caused it, and one thread's share.
    """
    threads = trace.facts.get("threads")
    return (1 + 1 / threads) / 2 if isinstance(threads, int) and threads > 0 else 1.0


def _large_released_cpu_blocks(trace: Trace) -> pl.DataFrame:
    """Returns the large blocks of CPU memory that steps allocated and later released.

    Columns: those of `memory_blocks_from_records` and of a site; start and end of the operator that
    writes the block.
    """
    every = memory_blocks_from_records(
        memory_records_of_device_type(trace).filter(pl.col("device_type") == "CPU")
    )
    large = every.filter(
        (pl.col("state") == "released") & (pl.col("size") >= MIN_LARGE_BLOCK_BYTES)
    )
    begun = large["allocated"].fill_null(-1).to_numpy()
    large = large.filter(
        pl.Series(is_instant_in_windows(begun, steps_with_counted_flags(trace)), dtype=pl.Boolean)
    )
    placed = large.with_columns(
        source_sites_of_memory_records(trace, large["allocation"]),
        id=_operator_ids_writing_blocks(trace, large["allocation"]),
    )
    operators = trace.slices.select("id", "start", end=pl.col("start") + pl.col("duration"))
    return placed.join(operators, on="id", how="inner", maintain_order="left")


def _operator_ids_writing_blocks(trace: Trace, allocation_rows: pl.Series) -> pl.Series:
    """Returns for each memory allocation the id of the operator that first writes to the memory.

    It is the operator that allocates, or, if that only allocates, the operator that called it.
    """
    operators = trace.memory["operator"].gather(allocation_rows)
    own = trace.slices[operators.drop_nulls().unique()].select(
        "id", "parent", name=pl.col("name").cast(pl.String)
    )
    bare = [names.is_bare_allocation(name) for name in own["name"].to_list()]
    caller = trace.slices["category"].gather(own["parent"]).cast(pl.String)
    called = pl.Series(bare, dtype=pl.Boolean) & caller.is_in(list(names.OPERATOR_CATEGORIES))
    writer = own.select(
        "id", writer=pl.when(called.fill_null(value=False)).then("parent").otherwise("id")
    )
    wanted = operators.alias("id").to_frame()
    return wanted.join(writer, on="id", how="left", maintain_order="left")["writer"]


def _outcome_for_blocks_of_function(
    trace: Trace,
    statistics: StepStatistics,
    released_blocks: pl.DataFrame,
    page_fault_ms: float,
    pages_per_step: float,
) -> Finding | Checked:
    """Returns the rule's outcome for the memory blocks that one function's lines allocate.

    `page_fault_ms` is the time of the whole recording, not of one step.
    """
    times = operator_intervals(released_blocks)
    whole_ms = length(times) / 1e6
    keep = 1 - min(page_fault_ms / whole_ms, 1.0) if whole_ms else 1.0
    change = CutHostTime(times, keep)
    claim = RemovalClaim(
        (change,),
        largest_changes=(CutHostTime(times),),
        interval=SavingRange(REPLAYED_SAVING_RANGE.low, MAX_SAVING_TO_ESTIMATE_RATIO),
    )
    recorded = estimated_saving_of_recorded_step(trace, claim)
    steps = max(steps_with_counted_flags(trace).height, 1)
    volume = int(released_blocks["size"].sum()) // steps
    amount = bytes_text(pages_per_step * 4096)
    if (
        pages_per_step * 4096 < MIN_NEW_PAGE_BYTES_PER_STEP
        or recorded.estimate_ms < MIN_SAVED_SHARE_OF_STEP * statistics.step_ms
    ):
        return Checked(f"large tensors need few new pages: {amount} a step", recorded.upper_ms)
    return Finding(
        title=f"Each step requests {amount} of memory from the operating system and returns it",
        where=_line_allocating_most_bytes(released_blocks),
        count_per_step=released_blocks.height / steps,
        claim=claim,
        confidence="medium",
        evidence=(
            Evidence("memory allocated and freed, a step", float(volume), "bytes"),
            Evidence("pages requested from the operating system, a step", pages_per_step, "count"),
            Evidence(
                "CPU time in the operating system for these pages, a step",
                page_fault_ms / steps,
                "ms",
            ),
        ),
        fix=Fix(
            "Let the C library keep large blocks, or write in place or into tensors created once.",
            KEEP_LARGE_BLOCKS_FIX_CODE,
        ),
    )


def _line_allocating_most_bytes(released_blocks: pl.DataFrame) -> Where:
    """Returns the source line that allocates most bytes; the function's first line if unknown."""
    exact = released_blocks.filter(pl.col("how").is_in(EVIDENCE_OF_EXECUTING_LINE))
    candidates = exact if exact.height else released_blocks
    sums = candidates.group_by(*SOURCE_SITE_COLUMNS, maintain_order=True).agg(pl.col("size").sum())
    return where_from_row(
        sums.sort("size", descending=True, maintain_order=True).row(0, named=True)
    )
