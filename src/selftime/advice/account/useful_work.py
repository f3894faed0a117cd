"""Tells of computing time how near it comes to what the machine can do, by the models of operators.

On a device an operator's least time is that of its operations at the peak rate of their dtype, or
that of the bytes that it must move at the peak bandwidth, whichever is longer. On a CPU the peak is
not known: there products of matrices count as useful whose rate for each thread is high.
"""

from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.well_optimised_verdict import (
    FAST_PRODUCT_GFLOPS_PER_THREAD,
    intra_op_thread_count,
)
from selftime.analysis.call_tree.self_times import self_times
from selftime.analysis.models.modelled_operator_work import (
    common_peak_rates_of_devices,
    modelled_work_of_operators,
    tensor_core_times_by_operator,
)
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import arguments_of_slices
from selftime.analysis.slice_filters import matches_name
from selftime.array_types import Floats, Ints
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace

MIN_PEAK_SHARE_OF_NEEDED_WORK: Final = 0.5
"""Smallest share of the device's peak at which work counts as needed: no other implementation of
the same work can be twice as fast."""
MIN_FAST_RATE_SHARE_OF_NEEDED_WORK: Final = 1.0
"""Smallest share of the rate of a fast product of matrices on a CPU at which one counts as
needed."""

_NS_PER_SECOND: Final = 1e9
_PICOSECONDS_PER_NS: Final = 1e3


@cached_per_trace
def operator_efficiencies(trace: Trace) -> pl.DataFrame:
    """Returns how near each host slice's modelled work comes to the machine's peak.

    One row for each slice of the trace. Columns: efficiency, the work's rate as a share of the
    device's peak, or on a CPU of the rate of a fast product; null where the work of the operator
    around the slice is not modelled, or no peak is known; least_time, that of the work at the peak
    or the fast rate, in ns; by_memory, whether memory bandwidth limits the work.

    Caches and Winograd's algorithm let a share exceed 1; on a device it is then 1.
    """
    host = self_times(trace)
    work = modelled_work_of_operators(trace, host, tensor_core_times_by_operator(trace, host))
    if trace.device_args.height:
        peaks = common_peak_rates_of_devices(trace)
        computing = work.time_at_peak / _PICOSECONDS_PER_NS
        moving = np.zeros(host.id.size)
        if peaks is not None:
            moving = work.bytes / peaks.bytes * _NS_PER_SECOND
        least, time = np.maximum(computing, moving), host.device
        known = work.is_counted & ~work.lacks_peak_rate & (least > 0)
    else:
        computing = _least_product_times_on_cpu(trace, host.name, work.flops)
        moving, least, time = np.zeros(host.id.size), computing, host.cpu
        known = work.is_counted & (least > 0)
    found = least / np.maximum(time, 1)
    if trace.device_args.height:
        found = np.minimum(found, 1.0)
    modelled = nearest_ancestor(host.parent, work.is_counted, np.arange(host.id.size))
    values = {
        "efficiency": np.where(known, found, np.nan),
        "least_time": least,
        "by_memory": moving > computing,
    }
    at = np.where(host.owner == NO_SLICE, NO_SLICE, np.append(modelled, NO_SLICE)[host.owner])
    columns = {name: np.append(value, np.nan)[at] for name, value in values.items()}
    return pl.DataFrame(columns).with_columns(
        pl.col("efficiency", "least_time").fill_nan(None), pl.col("by_memory") == 1.0
    )


def _least_product_times_on_cpu(trace: Trace, name: pl.Series, flops: Ints) -> Floats:
    """Returns the ns that products of matrices take at a fast rate; 0 for other operators."""
    is_product = matches_name(pl.DataFrame({"name": name}), names.is_matrix_operator)
    rate = FAST_PRODUCT_GFLOPS_PER_THREAD * intra_op_thread_count(trace)
    return np.where(is_product, flops / rate, 0.0)


def efficiencies_of_segments(trace: Trace, segments: pl.DataFrame) -> pl.DataFrame:
    """Returns columns efficiency and by_memory of segments of the account; null if unknown.

    Those of a device have the values of the operator that launched them. The same work at the same
    line has the mean of its efficiencies.
    """
    known = operator_efficiencies(trace)
    launcher = arguments_of_slices(trace, "device_args", segments["slice"], "operator")["operator"]
    at = pl.select(
        pl.when(segments["on_device"]).then(launcher).otherwise(segments["slice"])
    ).to_series()
    is_computing = (segments["class"] == "compute") & at.is_not_null()
    at = at.set(~is_computing, None)
    name = trace.slices["name"].gather(segments["slice"])
    time = (segments["end"] - segments["start"]).cast(pl.Float64)
    table = known.select(pl.all().gather(at)).with_columns(
        segments.select("file", "line", "what"), name=name, time=time
    )
    same = ("file", "line", "what", "name", "least_time")
    is_known = pl.col("efficiency").is_not_null()
    weight = pl.col("time").filter(is_known).sum().over(same)
    mean = (pl.col("efficiency") * pl.col("time")).sum().over(same) / weight
    return table.select(
        efficiency=pl.when(is_known & (weight > 0)).then(mean), by_memory="by_memory"
    )
