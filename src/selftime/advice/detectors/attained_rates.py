"""Estimates how long the recorded machine takes to move bytes, or to multiply matrices.

By what `selftime run` measured of the CPU, or by the device's peak; else by assumed rates.
"""

from typing import Final

from selftime.advice.detectors.elementwise_operators import ATTAINED_PEAK_BANDWIDTH_SHARE
from selftime.analysis.account.useful_work import (
    FAST_PRODUCT_GFLOPS_PER_THREAD,
    cpu_peaks_of_trace,
    intra_op_thread_count,
)
from selftime.analysis.models.modelled_operator_work import common_peak_rates_of_devices
from selftime.trace import Trace

ASSUMED_CPU_BYTES_PER_NS: Final = 4.0
"""Assumed bytes per ns of operators on a CPU whose rates nothing measured: those of new results,
whose pages the system gives first, are at half of what a copy reaches."""

ASSUMED_DEVICE_BYTES_PER_NS: Final = 500.0
"""Assumed bytes per ns of a device whose peak is unknown."""

ASSUMED_DEVICE_FLOPS_PER_NS: Final = 10_000.0
"""Assumed operations per ns of float32 products on a device."""

LEAST_OPERATOR_NS: Final = 5_000
"""Least time of an operator's call, in ns, however little it moves."""


def moving_ns(trace: Trace, moved_bytes: float) -> float:
    """Returns about how many ns one operator takes that moves so many bytes."""
    if trace.device_args.height:
        device = common_peak_rates_of_devices(trace)
        rate = (
            ASSUMED_DEVICE_BYTES_PER_NS
            if device is None
            else ATTAINED_PEAK_BANDWIDTH_SHARE * device.bytes / 1e9
        )
    else:
        peaks = cpu_peaks_of_trace(trace)
        measured = None if peaks is None else peaks.bytes_per_second(moved_bytes)
        rate = ASSUMED_CPU_BYTES_PER_NS if measured is None else measured / 1e9
    return max(moved_bytes / rate, LEAST_OPERATOR_NS)


def multiplying_ns(trace: Trace, flops: float) -> float:
    """Returns about how many ns a product in float32 takes that computes so many operations."""
    peaks = cpu_peaks_of_trace(trace)
    if trace.device_args.height:
        rate = ASSUMED_DEVICE_FLOPS_PER_NS
    elif peaks is not None and "float32" in peaks.operations:
        rate = peaks.operations["float32"] / 1e9
    else:
        rate = FAST_PRODUCT_GFLOPS_PER_THREAD * intra_op_thread_count(trace)
    return max(flops / rate, LEAST_OPERATOR_NS)
