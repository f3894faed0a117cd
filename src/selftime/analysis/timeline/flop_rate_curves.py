"""Computes the FLOP/s that each device achieves over time, or the CPU where there is no device.

The modelled FLOPs of an operator are spread evenly over the time of the kernels that it launched,
with those of the operators that it called without FLOPs of their own; on a CPU over the time that
these operators took. Where work runs whose FLOPs are unknown, the rate is unknown. Copies, fills
and collectives move data: they have no FLOPs.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from selftime.analysis.account.useful_work import cpu_peaks_of_trace
from selftime.analysis.call_tree.call_tree import call_tree
from selftime.analysis.call_tree.parent_array_forests import (
    is_marked_or_has_marked_ancestor,
    nearest_marked_of_every_node,
    nodes_by_level,
)
from selftime.analysis.call_tree.self_times import SelfTimes, self_times
from selftime.analysis.device.device_work import device_work, is_device_unrecorded
from selftime.analysis.models.modelled_operator_work import (
    MODELLED_DTYPES,
    ModelledOperatorWork,
    modelled_work_of_calls,
)
from selftime.array_types import Flags, Floats, Ints
from selftime.nesting import NO_SLICE
from selftime.trace import Trace
from selftime.units import rate_text, share_text

_NS_PER_SECOND: Final = 10**9
_MAX_RATE_IN_PEAKS: Final = 4.0
"""Largest rate of an operator, in times of its peak, at which its FLOPs hold: Winograd does a
fourth of the multiplications. Beyond it an operand is sparse, or not what its size says."""
_MAX_RATE_WITHOUT_PEAK: Final = 10**17
"""The same in FLOP/s where the peak is unknown: more than any device does."""


class FlopRateCurve(NamedTuple):
    """The FLOP/s of a device, or of the CPU, from each instant to the next."""

    device: int | None
    """The number of the device; None for the CPU, and for one without a number."""
    is_cpu: bool
    time: Ints
    value: Floats
    """FLOP/s; 0 while nothing runs, NaN where they are unknown."""
    peak: float | None
    """The peak rate in the dtype of most of the FLOPs; None if unknown."""
    note: str
    """For how much of the time they are known, and what the peak is: a sentence."""


class _Limit(NamedTuple):
    """What the rate cannot exceed, but for algorithms with fewer operations than the textbook's."""

    name: str
    dtype: str
    peak: float | None


def flop_rate_curves(trace: Trace) -> Iterator[FlopRateCurve]:
    """Yields the achieved FLOP/s of each device, or of the CPU; none where no FLOPs are known."""
    if trace.op_args["input_shapes"].null_count() == trace.op_args.height:
        return  # without shapes no FLOPs are known
    host = self_times(trace)
    work = modelled_work_of_calls(trace)
    if not work.flops.any():
        return
    if trace.device_args.height or device_work(trace).height:
        yield from _curves_of_devices(trace, host, work)
    elif not is_device_unrecorded(trace):
        yield from _curves_of_cpu(trace, host, work)


def _curves_of_devices(
    trace: Trace, host: SelfTimes, work: ModelledOperatorWork
) -> Iterator[FlopRateCurve]:
    done = device_work(trace)
    launcher = done["operator"].fill_null(NO_SLICE).cast(pl.Int64).to_numpy()
    entry = np.append(host.owner, NO_SLICE)[launcher]  # NO_SLICE is -1
    operator = _nearest_counted_operators(host, work)[entry]
    is_kernel = (done["kind"] == "kernel").to_numpy()
    operator[~is_kernel] = NO_SLICE
    start, end = done["start"].to_numpy(), done["end"].to_numpy()
    rates = _rates_of_operators(work, operator, end - start)
    rate, is_known = rates[operator], ~is_kernel | (rates[operator] > NO_SLICE)
    rate = np.where(is_kernel & is_known, rate, 0)
    for (device,), mine in done.with_row_index("at").group_by("device", maintain_order=True):
        at = mine["at"].to_numpy()
        if not rate[at].any():
            continue
        time, value, share = _rate_over_time(start[at], end[at], rate[at], is_known[at])
        number = None if device is None else int(str(device))
        counted = operator[at][operator[at] != NO_SLICE]
        limit = _device_limit(work, np.unique(counted))
        note = _note(share, "the device worked", limit, float(np.nanmax(value)))
        yield FlopRateCurve(number, False, time, value, limit.peak, note)


def _curves_of_cpu(
    trace: Trace, host: SelfTimes, work: ModelledOperatorWork
) -> Iterator[FlopRateCurve]:
    start, end = _nested_intervals(trace, host)
    is_operator = is_marked_or_has_marked_ancestor(
        host.parent, (host.category == "cpu_op").to_numpy()
    )
    operator = _nearest_counted_operators(host, work)[:-1]
    own = end - start
    inner = np.flatnonzero(host.parent != NO_SLICE)
    np.subtract.at(own, host.parent[inner], (end - start)[inner])
    rates = _rates_of_operators(work, operator, own)
    is_known = ~is_operator | (rates[operator] > NO_SLICE)
    rate = np.where(is_operator & is_known, rates[operator], 0)
    if not rate.any():
        return

    # Within an operator that another one called it alone is at work.
    above = np.append(rate, 0)[host.parent], np.append(~is_known, False)[host.parent]
    runs = is_operator & ~np.append(is_operator, False)[host.parent]
    time, value, share = _sum_of_changes(
        start, end, rate - above[0], (~is_known).astype(np.int64) - above[1], runs.astype(np.int64)
    )
    limit = _cpu_limit(trace, work)
    note = _note(share, "operators ran", limit, float(np.nanmax(value)))
    yield FlopRateCurve(None, True, time, value, limit.peak, note)


def _nearest_counted_operators(host: SelfTimes, work: ModelledOperatorWork) -> Ints:
    """Returns the operator whose FLOPs each entry's time is for, or -1; one more -1 at the end."""
    return np.append(nearest_marked_of_every_node(host.parent, work.is_counted), NO_SLICE)


def _rates_of_operators(work: ModelledOperatorWork, operator: Ints, time: Ints) -> Ints:
    """Returns the FLOP/s of each operator over its time; -1 if unknown, and in one more at the end.

    Args:
        work: The modelled work of operators.
        operator: The operator to which each time belongs, or -1.
        time: The times in ns.
    """
    size = work.flops.size
    has_one = operator != NO_SLICE
    taken = np.bincount(operator[has_one], weights=time[has_one], minlength=size)
    rate = work.flops / np.maximum(taken, 1) * _NS_PER_SECOND
    most = np.where(np.isnan(work.peak), _MAX_RATE_WITHOUT_PEAK, _MAX_RATE_IN_PEAKS * work.peak)
    is_known = work.is_counted & (taken > 0) & (rate <= most)
    return np.append(
        np.where(is_known, np.rint(np.minimum(rate, most)), NO_SLICE), NO_SLICE
    ).astype(np.int64)


def _nested_intervals(trace: Trace, host: SelfTimes) -> tuple[Ints, Ints]:
    """Returns begin and end of each entry, within the one around it.

    An operator that ended on another thread than it began on has no length.
    """
    tree = call_tree(trace, frames=False)
    start, end = tree.start[tree.place[host.id]], tree.end[tree.place[host.id]]
    end = np.where(tree.is_cross_thread[tree.place[host.id]], start, end)
    for level in nodes_by_level(host.parent)[1:]:
        above = host.parent[level]
        start[level] = np.clip(start[level], start[above], end[above])
        end[level] = np.clip(end[level], start[above], end[above])
    return start, end


def _rate_over_time(
    start: Ints, end: Ints, rate: Ints, is_known: Flags
) -> tuple[Ints, Floats, float]:
    """Returns instants, the rate of all work from each on, and the share of known time."""
    one = np.ones(start.size, np.int64)
    return _sum_of_changes(start, end, rate, (~is_known).astype(np.int64), one)


def _sum_of_changes(
    start: Ints, end: Ints, rate: Ints, unknown: Ints, running: Ints
) -> tuple[Ints, Floats, float]:
    """Adds up what each interval adds at its start and takes away at its end, in whole numbers."""
    at = np.append(start, end)
    order = np.argsort(at, kind="stable")
    at = at[order]
    is_last = np.append(at[1:] != at[:-1], True)
    sums = [
        np.cumsum(np.append(change, -change)[order])[is_last] for change in (rate, unknown, running)
    ]
    time = at[is_last]
    value = np.where(sums[1] > 0, np.nan, np.maximum(sums[0], 0)).astype(np.float64)
    value[sums[2] <= 0] = 0
    long = np.append(np.diff(time), 0) * (sums[2] > 0)
    share = float(long[~np.isnan(value)].sum() / max(int(long.sum()), 1))
    return time, value, share


def _device_limit(work: ModelledOperatorWork, operators: Ints) -> _Limit:
    """Returns the peak rate that applies to most of the operators' FLOPs."""
    limited = operators[~np.isnan(work.peak[operators])]
    if not limited.size:
        return _Limit("the device's peak", "", None)
    flops = np.bincount(work.dtype[limited], weights=work.flops[limited])
    dtype = int(flops.argmax())
    peak = work.peak[limited][work.dtype[limited] == dtype][0]
    return _Limit("the device's peak", MODELLED_DTYPES[dtype], float(peak))


def _cpu_limit(trace: Trace, work: ModelledOperatorWork) -> _Limit:
    """Returns what the CPU was measured to do in the dtype of most of the FLOPs."""
    flops = np.bincount(work.dtype + 1, weights=work.flops, minlength=len(MODELLED_DTYPES) + 1)
    dtype = MODELLED_DTYPES[int(flops[1:].argmax())]
    peaks = cpu_peaks_of_trace(trace)
    peak = None if peaks is None or not flops[1:].any() else peaks.operations.get(dtype)
    return _Limit("what this CPU was measured to do", dtype, peak)


def _note(share: float, when: str, limit: _Limit, highest: float) -> str:
    known = f"FLOPs are known for {share_text(share)} of the time in which {when}"
    if limit.peak is None:
        return f"{known}; the peak is unknown, so the scale ends at the highest rate."
    peak = f"{limit.name} in {limit.dtype}, {rate_text(limit.peak, 'FLOP')}"
    if highest > limit.peak:
        return f"{known}; the scale ends at the highest rate, above {peak}."
    return f"{known}; the scale ends at {peak}."
