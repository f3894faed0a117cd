"""The step waits for communication between ranks.

## What it means
While gradients or parameters are sent between ranks nothing else computes: this communication is
exposed.

In the trace: the time of communication in which no kernel runs, or on hosts no operator: a tenth of
the step or more.

## Why it costs
Communication that runs beside computation is free. Its exposed part is lost, on every rank. It is
either too large for the link, or begins too late, or waits for a slower rank. The trace of a single
rank distinguishes these only if some collectives were much quicker than others of the same size.

## What to do
All-reduce in half precision (`bf16_compress_hook`), or less often, by larger batches a step. With
gloo and tensors on devices all communication goes through the host: use nccl. A trace does not show
how fast a link is or which one was used; nor does it show which other rank is slow.

The estimate halves the transfer, as half precision halves the bytes; waits for other ranks stay.
Where the trace of one rank does not tell a transfer from a wait, or what is sent is no gradient,
only the exposed time is known, which is the most that a change can save: begin an exchange when its
data are ready, compute meanwhile, and wait where the result is needed; exchange less often or fewer
bytes.

## Fires on
Collectives that each take as long as the quickest, while the device is idle.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    mark 2 | f         f
    cpu 2  | a c c     a c c
    cpu 2  |   r r       r r
    call 2 | k n m wwwwk n m wwww
    gpu 7  | kkkk      kkkk
    gpu 8  |     nnn       nnn
    gpu 8  |        mmm       mmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = DistributedDataParallel.forward; line = train.py:21 train
    a = aten::linear
    c = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
    r = c10d::allreduce_; input_shapes = [[[4000000]]]
    n = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    m = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    w = cudaDeviceSynchronize

An exchange that is no gradient's, in the trace of one rank.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | a r a     a r a
    call 1 | k nwwwwwk k nwwwwwk
    gpu 7  | kk      kkkk      kk
    gpu 8  |   nnnnnn    nnnnnn
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::linear
    r = c10d::alltoall_; line = model.py:30 exchange
    n = ncclDevKernel_SendRecv
    w = cudaStreamSynchronize

## Silent on
The same collective while the device computes.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    mark 2 | f         f
    cpu 2  | a c c     a c c
    cpu 2  |   r r       r r
    call 2 | k n m wwwwk n m wwww
    gpu 7  | kkkkkkkkkkkkkkkkkkkk
    gpu 8  |     nnn       nnn
    gpu 8  |        mmm       mmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = DistributedDataParallel.forward; line = train.py:21 train
    a = aten::linear
    c = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
    r = c10d::allreduce_; input_shapes = [[[4000000]]]
    n = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    m = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    w = cudaDeviceSynchronize
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import polars as pl

from selftime.advice.detectors.counted_steps import counted_step_count, slices_in_counted_steps
from selftime.advice.detectors.gradient_communication import (
    changes_shortening_communication,
    communicates_on_host,
    communication_transfers,
    ddp_forward_passes,
    exposed_communication_times,
    gradient_collectives,
)
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.replay import replay_of
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Where,
    rule,
)
from selftime.advice.savings.claims import RemovalClaim, UpperBoundClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.device.device_work import device_work
from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock
from selftime.analysis.ranks.rank_and_process_groups import rank_and_size
from selftime.analysis.steps.steady_steps import counted_step_windows
from selftime.intervals import Intervals, intersect, length, union
from selftime.trace import Trace
from selftime.units import rate_text, whole_percent_text

MIN_EXPOSED_COMMUNICATION_SHARE_OF_STEP: Final = 0.1
"""Smallest share of the step with communication but no computation to report."""

MIN_LARGE_COLLECTIVE_BYTES: Final = 1 << 20
"""Smallest collective, in bytes, from which a link's bandwidth is computed; latency dominates
smaller ones."""

SLOWEST_LOCAL_LINK_BYTES_PER_S: Final = 5e9
"""Bytes per second of the slowest usual link between devices of one machine: PCIe 3, both
directions."""

SLOWEST_NETWORK_BYTES_PER_S: Final = 1e8
"""Bytes per second of the slowest network usual for training: gigabit Ethernet."""

MIN_TRANSFER_SHARE_OF_COMMUNICATION_TIME: Final = 0.5
"""Smallest share of the collectives' time in which data moves to report; else they wait for a
rank."""

HALF_PRECISION_BYTES_SHARE: Final = 0.5
"""Bytes of a collective in half precision as a share of its bytes in float32."""

FIX_CODE: Final = """from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

model.register_comm_hook(None, default_hooks.bf16_compress_hook)"""
"""Example code of the fix: all-reduce gradients in bfloat16, and add them up in float32."""

OVERLAP_FIX_CODE: Final = """work = torch.distributed.all_reduce(tensor, async_op=True)
...  # compute what does not need the result
work.wait()"""
"""Example code of the fix: computes while ranks communicate."""


@dataclass(frozen=True, slots=True)
class CommunicationTotals:
    """Totals of the collectives in the measured steps: bytes and seconds."""

    bytes: float
    spent_s: float
    fastest_bytes_per_s: float
    """Bytes per second of the fastest large collective; 0 if there is none."""
    transfer_s: float | None = None
    """Seconds in which collectives move data and do not wait for ranks; None if only one rank's
    trace is known."""

    @property
    def transfer_share(self) -> float:
        """Share of the collectives' time in which data moves; with a single rank, an estimate."""
        if self.transfer_s is not None:
            return self.transfer_s / self.spent_s
        if not self.fastest_bytes_per_s or not self.spent_s:
            return 0.0
        return self.bytes / self.fastest_bytes_per_s / self.spent_s


@rule(covers=("I3", "I8"), needs=("steps",), broad=True)
def check(trace: Trace, ranks: Ranks | None) -> Iterator[Outcome]:
    step_stats, forward_passes = step_statistics(trace), ddp_forward_passes(trace)
    if step_stats is None or not communication_transfers(trace).height:
        yield Checked("ranks do not communicate in this trace", is_absent=True)
        return
    exposed_ms = step_stats.scaled_to_typical_step(
        length(_exposed_times_in_steps(trace)) / counted_step_count(trace) / 1e6
    )
    if exposed_ms < MIN_EXPOSED_COMMUNICATION_SHARE_OF_STEP * step_stats.step_ms:
        least = whole_percent_text(MIN_EXPOSED_COMMUNICATION_SHARE_OF_STEP)
        yield Checked(
            f"less than {least} of the step is exposed communication between ranks",
            exposed_ms,
            is_slowed=False,
        )
        return
    if communicates_on_host(trace) and device_work(trace).height:
        yield _host_communication_finding(trace, forward_passes, exposed_ms)
        return
    totals = None if ranks is None else _communication_totals_from_all_ranks(trace, ranks)
    if totals is not None:
        yield _outcome_from_all_ranks(trace, step_stats, forward_passes, exposed_ms, totals)
        return
    totals = _communication_totals_of_one_rank(trace)
    is_transfer_known = (
        totals is not None
        and forward_passes.height > 0
        and totals.fastest_bytes_per_s >= _slowest_link_bytes_per_s(trace)
        and totals.transfer_share >= MIN_TRANSFER_SHARE_OF_COMMUNICATION_TIME
    )
    if totals is not None and is_transfer_known:
        yield _finding(trace, step_stats, forward_passes, exposed_ms, totals)
    else:
        yield _outcome_of_exposed_time(trace, step_stats, forward_passes, exposed_ms)


def _outcome_of_exposed_time(
    trace: Trace, step_stats: StepStatistics, forward_passes: pl.DataFrame, exposed_ms: float
) -> Outcome:
    """Returns the outcome where one rank's trace does not tell a transfer from a wait."""
    whole = union([0], [_latest_slice_end_ns(trace)])
    without = changes_shortening_communication(trace, whole, 0.0)
    saved_ns = replay_of(trace).saving(*without)
    most_ms = min(exposed_ms, step_stats.scaled_to_typical_step(saved_ns / 1e6))
    if most_ms < MIN_EXPOSED_COMMUNICATION_SHARE_OF_STEP * step_stats.step_ms:
        reason = "without communication that no computation hides the step would be hardly shorter"
        return Checked(f"{reason}: something else bounds it", most_ms, is_slowed=False)
    carried = slices_in_counted_steps(trace, communication_transfers(trace))
    every = LineSlices.as_one_group(carried)
    most = next(slices_by_line(trace, carried), every)
    per_step_ms = length(every.times) / counted_step_count(trace) / 1e6
    every_ms = step_stats.scaled_to_typical_step(per_step_ms)
    share = whole_percent_text(exposed_ms / step_stats.step_ms)
    return Finding(
        covers=("I3",),
        title=f"{share} of the step is communication between ranks that no computation hides",
        where=most.where if most.where.file else _line_of_forward_pass(trace, forward_passes),
        count_per_step=carried.height / counted_step_count(trace),
        claim=UpperBoundClaim(most_ms, is_slowed=False, removing_changes=without),
        confidence="medium",
        evidence=(
            Evidence("exposed communication time", exposed_ms, "ms", most.events(), every.ids),
            Evidence("hidden communication time", max(0.0, every_ms - exposed_ms), "ms"),
        ),
        fix=Fix(
            "Begin an exchange as soon as its data are ready, compute meanwhile, and wait only "
            "where the result is needed; exchange less often, or fewer bytes. Whether the ranks "
            "wait for the transfer or for a slower rank, only the traces of all ranks tell.",
            FIX_CODE if forward_passes.height else OVERLAP_FIX_CODE,
        ),
    )


def _exposed_times_in_steps(trace: Trace) -> Intervals:
    """Returns the intervals of measured steps in which a rank communicates and computes nothing."""
    windows = counted_step_windows(trace)
    return intersect(
        exposed_communication_times(trace),
        union(windows["start"].to_numpy(), windows["end"].to_numpy()),
    )


def _communication_totals_of_one_rank(trace: Trace) -> CommunicationTotals | None:
    """Returns one rank's totals of gradient collectives; None if their bytes are unknown."""
    issued = gradient_collectives(trace)
    carried = slices_in_counted_steps(
        trace, communication_transfers(trace).filter(pl.col("duration") > 0)
    )
    if not issued.height or issued["bytes"].null_count():
        return None
    longest = carried.sort("duration", descending=True).head(issued.height).sort("start")
    if longest.height < issued.height:
        return None
    seconds = longest["duration"].to_numpy() / 1e9
    sizes = issued["bytes"].to_numpy()
    rates = (sizes / seconds)[sizes >= MIN_LARGE_COLLECTIVE_BYTES]
    fastest_bytes_per_s = float(rates.max()) if rates.size else 0.0
    return CommunicationTotals(float(sizes.sum()), float(seconds.sum()), fastest_bytes_per_s)


def _communication_totals_from_all_ranks(trace: Trace, ranks: Ranks) -> CommunicationTotals | None:
    """Returns one rank's totals of collectives, from the traces of all ranks; None if unknown."""
    key, rows = ranks.key_of(trace), collectives_on_one_clock(ranks).rows
    if key is None or not rows.height:
        return None
    rows = rows.filter((pl.col("rank") == key) & pl.col("match").is_not_null() & pl.col("counted"))
    spent = float((rows["end"] - rows["start"]).sum()) / 1e9
    moved = float(rows["transfer"].sum()) / 1e9
    if not spent or not moved or rows["bytes"].null_count():
        return None
    large = rows.filter((pl.col("bytes") >= MIN_LARGE_COLLECTIVE_BYTES) & (pl.col("transfer") > 0))
    rates = large["bytes"] / large["transfer"] * 1e9
    fastest_bytes_per_s = float(rates.max()) if rates.len() else 0.0  # type: ignore[arg-type]  # a number
    return CommunicationTotals(float(rows["bytes"].sum()), spent, fastest_bytes_per_s, moved)


def _outcome_from_all_ranks(
    trace: Trace,
    step_stats: StepStatistics,
    forward_passes: pl.DataFrame,
    exposed_ms: float,
    totals: CommunicationTotals,
) -> Outcome:
    """Returns the outcome that all ranks' traces show: late ranks, a slow link, or many bytes."""
    if totals.transfer_share < MIN_TRANSFER_SHARE_OF_COMMUNICATION_TIME:
        waits = f"{whole_percent_text(1 - totals.transfer_share)} of the communication time"
        reason = (
            f"{waits} is a wait for ranks that come later, and transfers nothing: see `slow_rank`"
        )
        return Checked(reason, exposed_ms, is_slowed=False)
    if totals.fastest_bytes_per_s and totals.fastest_bytes_per_s < _slowest_link_bytes_per_s(trace):
        return _slow_link_finding(trace, forward_passes, exposed_ms, totals)
    return _finding(trace, step_stats, forward_passes, exposed_ms, totals)


def _slow_link_finding(
    trace: Trace, forward_passes: pl.DataFrame, exposed_ms: float, totals: CommunicationTotals
) -> Finding:
    least = _slowest_link_bytes_per_s(trace)
    return Finding(
        covers=("I8",),
        title=(
            f"Collectives move {rate_text(totals.fastest_bytes_per_s, 'B')}, less than any link "
            "between the ranks"
        ),
        where=_line_of_forward_pass(trace, forward_passes),
        count_per_step=1.0,
        claim=UpperBoundClaim(exposed_ms, is_slowed=False),
        confidence="medium",
        evidence=(
            Evidence("exposed communication time", exposed_ms, "ms"),
            Evidence("best measured bandwidth", totals.fastest_bytes_per_s, "count"),
            Evidence("bandwidth of the slowest expected link", least, "count"),
        ),
        fix=Fix(
            "See which network interface they use (`NCCL_DEBUG=INFO`), and name the fast one.",
            "export NCCL_SOCKET_IFNAME=eth0  # or GLOO_SOCKET_IFNAME",
        ),
    )


def _slowest_link_bytes_per_s(trace: Trace) -> float:
    """Returns the bytes per second of the slowest link that is usual between these ranks."""
    ranks = rank_and_size(trace).size
    here = ranks is not None and ranks <= trace.devices.height
    return SLOWEST_LOCAL_LINK_BYTES_PER_S if here else SLOWEST_NETWORK_BYTES_PER_S


def _finding(
    trace: Trace,
    step_stats: StepStatistics,
    forward_passes: pl.DataFrame,
    exposed_ms: float,
    totals: CommunicationTotals,
) -> Finding:
    every = union([0], [_latest_slice_end_ns(trace)])
    changes = changes_shortening_communication(
        trace, every, 1 - (1 - HALF_PRECISION_BYTES_SHARE) * min(totals.transfer_share, 1.0)
    )
    share = whole_percent_text(exposed_ms / step_stats.step_ms)
    return Finding(
        covers=("I3",),
        title=f"{share} of the step is exposed gradient communication",
        where=_line_of_forward_pass(trace, forward_passes),
        count_per_step=1.0,
        claim=RemovalClaim(
            changes, largest_changes=changes_shortening_communication(trace, every, 0.0)
        ),
        confidence="low",
        semantics="numerics",
        evidence=(
            Evidence("exposed communication time", exposed_ms, "ms"),
            Evidence("bytes a step", totals.bytes / counted_step_count(trace), "bytes"),
            Evidence("best measured bandwidth", totals.fastest_bytes_per_s, "count"),
        ),
        fix=Fix("All-reduce gradients in half precision, or take larger batches a step.", FIX_CODE),
    )


def _host_communication_finding(
    trace: Trace, forward_passes: pl.DataFrame, exposed_ms: float
) -> Finding:
    return Finding(
        covers=("I8",),
        title="Device tensors are sent to other ranks through host memory",
        where=_line_of_forward_pass(trace, forward_passes),
        claim=UpperBoundClaim(exposed_ms, is_slowed=False),
        confidence="medium",
        evidence=(Evidence("exposed communication time", exposed_ms, "ms"),),
        fix=Fix("Send tensors of devices with nccl.", 'dist.init_process_group(backend="nccl")'),
    )


def _line_of_forward_pass(trace: Trace, forward_passes: pl.DataFrame) -> Where:
    return (
        next(slices_by_line(trace, forward_passes), LineSlices.as_one_group(forward_passes)).where
        if forward_passes.height
        else Where()
    )


def _latest_slice_end_ns(trace: Trace) -> int:
    known = trace.slices.select(pl.col("start") + pl.col("duration")).to_series().max()
    return int(known) + 1 if isinstance(known, int) else 1
