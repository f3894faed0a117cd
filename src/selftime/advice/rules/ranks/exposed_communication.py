"""The step waits for what the ranks exchange.

## What it means
While gradients or parameters are exchanged between ranks nothing else computes: the exchange is
exposed.

## Why it costs
An exchange that runs beside computation is free. What of it stands alone is lost, on every rank. It
is either too much for the link, or begins too late, or waits for a slower rank: which of these, a
single rank's trace tells only where some of its exchanges were much quicker than others of the same
size.

## What to do
Exchange in half precision (`bf16_compress_hook`), or less often, by larger batches a step. With
gloo and tensors on devices every exchange goes through the host: use nccl. How fast a link is, and
which one was taken, is not visible in a trace; neither is which rank is slow, without its trace.

## Fires on
Exchanges of which each takes as long as the quickest, and the device idle meanwhile.

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

## Silent on
The same exchange while the device computes.

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

from selftime.advice.base import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Saving,
    Unknown,
    Where,
    rule,
)
from selftime.advice.detectors.communication import (
    exposed,
    gradients,
    is_on_host,
    less_exchange,
    replica_forwards,
    transfers,
)
from selftime.advice.detectors.counted_steps import counted, steps_counted
from selftime.advice.detectors.places import Place, places
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.analysis.device.work import device_work
from selftime.analysis.ranks.membership import place
from selftime.analysis.ranks.ranks import Ranks, joined_ranks
from selftime.analysis.steps.steady_steps import counted_windows
from selftime.intervals import Intervals, intersect, length, union
from selftime.trace import Trace

EXPOSED_SHARE: Final = 0.1
"""Of the step, as in the TensorBoard plugin: below, the last bucket alone explains it."""

LARGE: Final = 1 << 20
"""Exchanges of a mebibyte and more show what the link can carry; smaller ones show its latency."""

WITHIN_A_MACHINE: Final = 5e9
"""Bytes a second of the slowest link between devices of one machine, PCIe 3, both ways at once."""

BETWEEN_MACHINES: Final = 1e8
"""Bytes a second of the slowest network that anyone trains on, gigabit Ethernet."""

TRANSFER_SHARE: Final = 0.5
"""With less of the time than this, at the best rate seen, exchanges are waits for a slow rank."""

HALVED: Final = 0.5
"""Half precision exchanges half of the bytes."""

CODE: Final = """from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

model.register_comm_hook(None, default_hooks.bf16_compress_hook)"""
"""Gradients are exchanged in bfloat16, and added to in single precision."""

OTHER_RANKS: Final = "traces of the other ranks, to tell a slow rank from a slow link"
"""What one rank cannot show."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """What the exchanges of the steps that count carried, and how fast."""

    bytes: float
    spent_s: float
    best: float
    """Bytes a second of the quickest large exchange; 0 without one."""
    moved_s: float | None = None
    """How long the transfers took without waits, where the traces of other ranks tell it."""

    @property
    def share(self) -> float:
        """Of the time, what was transfer: else what the bytes take at the best rate seen."""
        if self.moved_s is not None:
            return self.moved_s / self.spent_s
        return self.bytes / self.best / self.spent_s if self.best and self.spent_s else 0.0


@rule(covers=("I3", "I8"), needs=("steps",), broad=True)
def check(trace: Trace, ranks: Ranks | None) -> Iterator[Outcome]:
    limits, forwards = gate(trace), replica_forwards(trace)
    if limits is None or not transfers(trace).height:
        yield Checked("ranks exchange nothing in this trace", is_absent=True)
        return
    alone = limits.typical(length(_counted(trace)) / steps_counted(trace) / 1e6)
    if alone < EXPOSED_SHARE * limits.step_ms:
        upper = limits.unrecorded(alone)
        yield Checked(f"{upper:.2f} ms a step are spent exchanging and nothing else", upper)
        return
    if is_on_host(trace) and device_work(trace).height:
        yield _on_host(trace, limits, forwards, alone)
        return
    seen = None if ranks is None else _seen(trace, ranks)
    if seen is not None:
        yield _of_job(trace, limits, forwards, alone, seen)
        return
    found = _transfer(trace)
    if found is None or not forwards.height:
        yield Unknown(f"the sizes of exchanges: `record_shapes=True`; and {OTHER_RANKS}")
    elif found.best < _slowest(trace) or found.share < TRANSFER_SHARE:
        yield Unknown(OTHER_RANKS)
    else:
        yield limits.judge(_finding(trace, limits, forwards, alone, found))


def _counted(trace: Trace) -> Intervals:
    """The exposed exchange of the steps that count."""
    windows = counted_windows(trace)
    return intersect(exposed(trace), union(windows["start"].to_numpy(), windows["end"].to_numpy()))


def _transfer(trace: Trace) -> Transfer | None:
    """Exchanges of gradients, paired in order with what carried them; None if sizes are unknown."""
    issued = gradients(trace)
    carried = counted(trace, transfers(trace).filter(pl.col("duration") > 0))
    if not issued.height or issued["bytes"].null_count():
        return None
    longest = carried.sort("duration", descending=True).head(issued.height).sort("start")
    if longest.height < issued.height:
        return None
    seconds = longest["duration"].to_numpy() / 1e9
    sizes = issued["bytes"].to_numpy()
    rates = (sizes / seconds)[sizes >= LARGE]
    best = float(rates.max()) if rates.size else 0.0
    return Transfer(float(sizes.sum()), float(seconds.sum()), best)


def _seen(trace: Trace, ranks: Ranks) -> Transfer | None:
    """As `_transfer`, by the traces of all ranks, which tell transfers from waits for a rank."""
    key, rows = ranks.key_of(trace), joined_ranks(ranks).rows
    if key is None or not rows.height:
        return None
    rows = rows.filter((pl.col("rank") == key) & pl.col("match").is_not_null() & pl.col("counted"))
    spent = float((rows["end"] - rows["start"]).sum()) / 1e9
    moved = float(rows["transfer"].sum()) / 1e9
    if not spent or not moved or rows["bytes"].null_count():
        return None
    large = rows.filter((pl.col("bytes") >= LARGE) & (pl.col("transfer") > 0))
    rates = large["bytes"] / large["transfer"] * 1e9
    best = float(rates.max()) if rates.len() else 0.0  # type: ignore[arg-type]  # a number
    return Transfer(float(rows["bytes"].sum()), spent, best, moved)


def _of_job(
    trace: Trace, limits: Gate, forwards: pl.DataFrame, alone: float, seen: Transfer
) -> Outcome:
    """What all ranks together tell: that one is late, that the link is slow, or much is moved."""
    if seen.share < TRANSFER_SHARE:
        waits = f"{1 - seen.share:.0%} of the exchanges' time"
        reason = f"{waits} is a wait for ranks that come later, and no transfer: see `slow_rank`"
        return Checked(reason, limits.unrecorded(alone))
    if seen.best and seen.best < _slowest(trace):
        return _slow_link(trace, limits, forwards, alone, seen)
    return limits.judge(_finding(trace, limits, forwards, alone, seen))


def _slow_link(
    trace: Trace, limits: Gate, forwards: pl.DataFrame, alone: float, seen: Transfer
) -> Finding:
    least = _slowest(trace)
    return Finding(
        covers=("I8",),
        title=f"Exchanges move {seen.best / 1e6:,.0f} MB/s, less than any link between the ranks",
        where=_where(trace, forwards),
        count_per_step=1.0,
        saving=Saving(upper_ms=limits.unrecorded(alone)),
        confidence="medium",
        evidence=(
            Evidence("exposed communication time", alone, "ms"),
            Evidence("best measured bandwidth", seen.best, "count"),
            Evidence("bandwidth of the slowest expected link", least, "count"),
        ),
        fix=Fix(
            "See which way they take (`NCCL_DEBUG=INFO`), and name the fast interface.",
            "export NCCL_SOCKET_IFNAME=eth0  # or GLOO_SOCKET_IFNAME",
        ),
    )


def _slowest(trace: Trace) -> float:
    """Bytes a second that the slowest plausible link between these ranks carries."""
    ranks = place(trace).size
    here = ranks is not None and ranks <= trace.devices.height
    return WITHIN_A_MACHINE if here else BETWEEN_MACHINES


def _finding(
    trace: Trace, limits: Gate, forwards: pl.DataFrame, alone: float, found: Transfer
) -> Finding:
    every = union([0], [_end(trace)])
    changes = less_exchange(trace, every, 1 - (1 - HALVED) * min(found.share, 1.0))
    return Finding(
        covers=("I3",),
        title=f"{alone / limits.step_ms:.0%} of the step are spent exchanging gradients alone",
        where=_where(trace, forwards),
        count_per_step=1.0,
        saving=priced(trace, limits, *changes, most=less_exchange(trace, every, 0.0)),
        confidence="low",
        semantics="numerics",
        evidence=(
            Evidence("exposed communication time", alone, "ms"),
            Evidence("bytes a step", found.bytes / steps_counted(trace), "bytes"),
            Evidence("best measured bandwidth", found.best, "count"),
        ),
        fix=Fix("Exchange gradients in half precision, or take larger batches a step.", CODE),
        changes=changes,
    )


def _on_host(trace: Trace, limits: Gate, forwards: pl.DataFrame, alone: float) -> Finding:
    return Finding(
        covers=("I8",),
        title="Tensors of a device are exchanged through the host",
        where=_where(trace, forwards),
        saving=Saving(upper_ms=limits.unrecorded(alone)),
        confidence="medium",
        evidence=(Evidence("exposed communication time", alone, "ms"),),
        fix=Fix(
            "Exchange tensors of devices with nccl.", 'dist.init_process_group(backend="nccl")'
        ),
    )


def _where(trace: Trace, forwards: pl.DataFrame) -> Where:
    return next(places(trace, forwards), Place.of(forwards)).where if forwards.height else Where()


def _end(trace: Trace) -> int:
    known = trace.slices.select(pl.col("start") + pl.col("duration")).to_series().max()
    return int(known) + 1 if isinstance(known, int) else 1
