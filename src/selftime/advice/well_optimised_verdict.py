"""Gives the verdict that a program, in which nothing was found, uses its hardware well.

It stands where no finding does, and only if the step is seen to be spent on work of the right kind:
that nothing was found is no praise. Ceilings tell what even a perfect change would give.
"""

from collections.abc import Iterable
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import outermost_operators
from selftime.advice.rule_definition import Checked, Finding
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.account.useful_work import (
    FAST_PRODUCT_GFLOPS_PER_THREAD,
    intra_op_thread_count,
)
from selftime.analysis.slice_filters import covered_time, filter_by_name
from selftime.analysis.steps.bound_by import MIN_BUSY_SHARE_WHEN_DEVICE_BOUND, step_bounds
from selftime.analysis.steps.steady_steps import counted_step_windows
from selftime.intervals import Intervals, intersect, length, union
from selftime.trace import Trace
from selftime.units import share_text

WELL_OPTIMISED_VERDICT_NAME: Final = "well_optimised"
"""Name of this verdict in the advice; its code in the bottleneck catalogue is L4."""

MIN_PEAK_SHARE_OF_EFFICIENT_KERNEL: Final = 0.6
"""Smallest share of the device's peak FLOPs or bytes per second that an efficient kernel
reaches."""

MIN_EFFICIENT_TIME_SHARE: Final = 0.6
"""Smallest share of device time in efficient kernels or tensor cores for the verdict; on a CPU, of
the step in fast matrix products."""

MIN_OPERATOR_SHARE_OF_CPU_STEP: Final = 0.9
"""Smallest share of a step on a CPU in computing operators for the verdict; the rest is
dispatch."""

MIN_COMPUTING_OPERATOR_NS: Final = 12_000
"""Shortest CPU operator that counts as computing, in ns; dispatch alone takes 1 to 10 us."""


def well_optimised_verdict(trace: Trace, findings: Iterable[Finding]) -> Checked | None:
    """Returns the verdict `well_optimised`; None if the program has findings or idle hardware."""
    step_stats = step_statistics(trace)
    if step_stats is None or any(True for _ in findings):
        return None
    return (
        _well_optimised_verdict_on_device(trace, step_stats)
        if trace.device_args.height
        else _well_optimised_verdict_on_cpu(trace, step_stats)
    )


def _well_optimised_verdict_on_device(trace: Trace, step_stats: StepStatistics) -> Checked | None:
    busy = step_bounds(trace).busy_share
    if busy is None or busy < MIN_BUSY_SHARE_WHEN_DEVICE_BOUND:
        return None
    good = _efficient_device_time_share(trace)
    if good is None or good < MIN_EFFICIENT_TIME_SHARE:
        return None
    reason = (
        f"the device works {share_text(busy)} of the step, {share_text(good)} of that in kernels "
        f"on tensor cores or near its peak: removing all host overhead saves at most "
        f"{share_text(1 - busy)} of the step, and faster other kernels at most "
        f"{share_text(1 - good)} of device time"
    )
    return Checked(
        reason,
        (1 - busy) * step_stats.step_ms,
        rule=WELL_OPTIMISED_VERDICT_NAME,
    )


def _efficient_device_time_share(trace: Trace) -> float | None:
    """Returns the share of device time near the device's peak rates or on tensor cores."""
    table = trace.view("operators").filter(pl.col("kind") == "operator")
    time = table["self_device_time_total"].fill_null(0)
    near = (
        pl.max_horizontal("flops_share", "bytes_share").fill_null(0.0)
        >= MIN_PEAK_SHARE_OF_EFFICIENT_KERNEL
    )
    cores = pl.col("tensor_core_share").fill_null(0.0).clip(0.0, 1.0)
    share = table.select(share=pl.when(near).then(1.0).otherwise(cores))["share"]
    whole: int = sum(time.to_list())
    return float(sum((time * share).to_list()) / whole) if whole else None


def _well_optimised_verdict_on_cpu(trace: Trace, step_stats: StepStatistics) -> Checked | None:
    windows = counted_step_windows(trace)
    steps = union(windows["start"].to_numpy(), windows["end"].to_numpy())
    working = outermost_operators(trace).filter(pl.col("duration") >= MIN_COMPUTING_OPERATOR_NS)
    work = _share_of_step_time(covered_time(working), steps)
    products = work * _fast_matmul_time_share(trace)
    if work < MIN_OPERATOR_SHARE_OF_CPU_STEP or products < MIN_EFFICIENT_TIME_SHARE:
        return None
    reason = (
        f"operators work {share_text(work)} of the step, {share_text(products)} of it in fast "
        f"products of matrices: without any Python and dispatch it takes {share_text(1 - work)} "
        f"less, and with nothing but those products {share_text(1 - products)}"
    )
    return Checked(
        reason,
        (1 - work) * step_stats.step_ms,
        rule=WELL_OPTIMISED_VERDICT_NAME,
    )


def _fast_matmul_time_share(trace: Trace) -> float:
    """Returns the share of CPU operator time in matmuls with at least 30 GFLOP/s per thread."""
    table = trace.view("operators", by="shape").filter(pl.col("kind") == "operator")
    whole: int = sum(table["self_cpu_time_total"].to_list())
    products = filter_by_name(table, names.is_matrix_operator)
    rate = pl.col("self_model_flops") / pl.col("self_cpu_time_total")
    fast = products.filter(
        (rate >= FAST_PRODUCT_GFLOPS_PER_THREAD * intra_op_thread_count(trace)).fill_null(
            value=False
        )
    )
    return sum(fast["self_cpu_time_total"].to_list()) / whole if whole else 0.0


def _share_of_step_time(times: Intervals, step_times: Intervals) -> float:
    whole = length(step_times)
    return length(intersect(times, step_times)) / whole if whole else 0.0
