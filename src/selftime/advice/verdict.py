"""The verdict on a program in which nothing is left to do, and what bounds it still.

It stands where no finding does, and only if the step is seen to be spent on work of the right kind:
that nothing was found is no praise. Ceilings tell what even a perfect change would give.
"""

from collections.abc import Iterable
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.base import Checked, Finding
from selftime.advice.detectors.operators import outermost_operators
from selftime.advice.gate import Gate, gate
from selftime.analysis.slice_filters import covered_time, filter_by_name
from selftime.analysis.steps.bound_by import DEVICE_BOUND, bounds
from selftime.analysis.steps.steady_steps import counted_windows
from selftime.intervals import Intervals, intersect, length, union
from selftime.trace import Trace
from selftime.units import share_text

NAME: Final = "well_optimised"
"""The verdict's name among what was checked; it covers L4 of the catalogue."""

ROOFLINE: Final = 0.6
"""Of the device's peak in operations or bytes: more is rare even of libraries' kernels."""

GOOD: Final = 0.6
"""Of the device's time in kernels that reach that, or that run on tensor cores; on a CPU, of the
step in products of matrices that are as fast as libraries make them."""

FAST: Final = 30.0
"""GFLOP/s of a thread: a third of what one core of a server computes in float32 with AVX2, 8 lanes
of two fused operations at 3 GHz and two ports. Small or ill-shaped products stay far below."""

WORKED: Final = 0.9
"""Of a CPU's step in operators that work: a tenth is left for Python, dispatch and all else."""

WORK_NS: Final = 12_000
"""An operator below this on a CPU is mostly dispatch, which takes 1 to 10 us."""


def verdict(trace: Trace, findings: Iterable[Finding]) -> Checked | None:
    """What bounds a program without findings that uses its device well; None of any other."""
    limits = gate(trace)
    if limits is None or any(True for _ in findings):
        return None
    return _of_device(trace, limits) if trace.device_args.height else _of_cpu(trace, limits)


def _of_device(trace: Trace, limits: Gate) -> Checked | None:
    busy = bounds(trace).busy
    if busy is None or busy < DEVICE_BOUND:
        return None
    good = _good_share(trace)
    if good is None or good < GOOD:
        return None
    reason = (
        f"the device works {share_text(busy)} of the step, {share_text(good)} of that in kernels "
        f"on tensor cores or near its peak: removing all host overhead saves at most "
        f"{share_text(1 - busy)} of the step, and faster other kernels at most "
        f"{share_text(1 - good)} of device time"
    )
    return Checked(reason, limits.unrecorded((1 - busy) * limits.step_ms), rule=NAME)


def _good_share(trace: Trace) -> float | None:
    """Of the device's time, in operators near its peak, or in kernels on tensor cores."""
    table = trace.view("operators").filter(pl.col("kind") == "operator")
    time = table["self_device_time_total"].fill_null(0)
    near = pl.max_horizontal("flops_share", "bytes_share").fill_null(0.0) >= ROOFLINE
    cores = pl.col("tensor_core_share").fill_null(0.0).clip(0.0, 1.0)
    share = table.select(share=pl.when(near).then(1.0).otherwise(cores))["share"]
    whole: int = sum(time.to_list())
    return float(sum((time * share).to_list()) / whole) if whole else None


def _of_cpu(trace: Trace, limits: Gate) -> Checked | None:
    windows = counted_windows(trace)
    steps = union(windows["start"].to_numpy(), windows["end"].to_numpy())
    working = outermost_operators(trace).filter(pl.col("duration") >= WORK_NS)
    work = _share(covered_time(working), steps)
    products = work * _fast_share(trace)
    if work < WORKED or products < GOOD:
        return None
    reason = (
        f"operators work {share_text(work)} of the step, {share_text(products)} of it in fast "
        f"products of matrices: without any Python and dispatch it takes {share_text(1 - work)} "
        f"less, and with nothing but those products {share_text(1 - products)}"
    )
    return Checked(reason, limits.unrecorded((1 - work) * limits.step_ms), rule=NAME)


def _fast_share(trace: Trace) -> float:
    """Of the time of operators, in products of matrices that compute as fast as libraries do."""
    table = trace.view("operators", by="shape").filter(pl.col("kind") == "operator")
    whole: int = sum(table["self_cpu_time_total"].to_list())
    products = filter_by_name(table, names.is_matrix_operator)
    rate = pl.col("self_model_flops") / pl.col("self_cpu_time_total")
    fast = products.filter((rate >= FAST * _threads(trace)).fill_null(value=False))
    return sum(fast["self_cpu_time_total"].to_list()) / whole if whole else 0.0


def _threads(trace: Trace) -> int:
    told = trace.facts.get("threads")
    return told if isinstance(told, int) and told > 0 else 1


def _share(time: Intervals, steps: Intervals) -> float:
    whole = length(steps)
    return length(intersect(time, steps)) / whole if whole else 0.0
