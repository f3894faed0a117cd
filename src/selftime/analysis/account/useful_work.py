"""Tells of computing time how near it comes to what the machine can do, by the models of operators.

On a device an operator's least time is that of its operations at the peak rate of their dtype, or
that of the bytes that it must move at the peak bandwidth, whichever is longer. A CPU's rates are
those that `selftime run` measured after the program's end. Where it did not, products of matrices
count as useful whose rate for each thread is high.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_tree.parent_array_forests import (
    nearest_marked_of_every_node,
    subtree_totals,
)
from selftime.analysis.call_tree.self_times import SelfTimes, self_times
from selftime.analysis.models.modelled_operator_work import (
    MODELLED_DTYPES,
    ModelledOperatorWork,
    common_peak_rates_of_devices,
    modelled_work_of_calls,
    outermost_modelled_operators,
)
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import arguments_of_slices, has_input_shapes
from selftime.analysis.slice_filters import matches_name
from selftime.array_types import Floats, Ints
from selftime.devices import CpuPeakRates
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

FAST_PRODUCT_GFLOPS_PER_THREAD: Final = 30.0
"""Smallest rate of a matrix product on a CPU, in GFLOP/s per thread, to count as fast: a third of
the peak of one server core with AVX2."""
MIN_PEAK_SHARE_OF_NEEDED_WORK: Final = 0.5
"""Smallest share of the device's peak at which work counts as needed: no other implementation of
the same work can be twice as fast."""
MIN_FAST_RATE_SHARE_OF_NEEDED_WORK: Final = 1.0
"""Smallest share of the rate of a fast product of matrices on a CPU at which one counts as
needed."""

_NS_PER_SECOND: Final = 1e9
_PICOSECONDS_PER_NS: Final = 1e3


_MAX_PEAK_FACTOR_OF_PRODUCTS: Final = 4.0
"""Largest rate of a product or convolution, in times of the peak, at which its model holds:
Winograd does a fourth of the multiplications. Beyond it an operand is sparse, or not what its size
says."""

_MAX_FAST_RATE_FACTOR_OF_PRODUCTS: Final = 20.0
"""The same for a CPU whose peak is unknown, in times of the rate of a fast product: AVX-512 and AMX
reach five times that rate."""

_MIN_MODELLED_SHARE_ON_CPU: Final = 0.5
"""Smallest share of an operator's time in products of matrices for their rate to tell its own."""

_COLUMNS: Final = (
    "efficiency",
    "least_time",
    "by_memory",
    "in_products",
    "flops_rate",
    "bytes_rate",
)


@dataclass(frozen=True, slots=True)
class OperatorEfficiencies:
    """The columns of `operator_efficiencies`, and whose value each slice has."""

    columns: dict[str, Floats]
    """Each column's values by modelled operator, with NaN as the last for none."""
    modelled_operator: Ints
    """For each operator the row in `columns` of the operator around it whose work is modelled, or
    -1; with -1 as the last for none."""
    operator_of_slice: Ints

    def of_slices(self, slices: pl.Series) -> pl.DataFrame:
        """Returns the rows of slices, given by their ids; that of null is null."""
        ids = slices.cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
        operator = np.where(ids == NO_SLICE, NO_SLICE, self.operator_of_slice[ids])
        at = self.modelled_operator[operator]
        values = {name: column[at] for name, column in self.columns.items()}
        return pl.DataFrame(values).with_columns(pl.all().fill_nan(None))


@cached_per_trace
def operator_efficiencies(trace: Trace) -> OperatorEfficiencies:
    """Returns how near each host slice's modelled work comes to the machine's peak.

    Columns: efficiency, the work's rate as a share of the
    machine's peak, or of the rate of a fast product on a CPU whose peak is unknown; null where the
    work of the operator around the slice is not modelled, or no peak is known; least_time, that of
    the work at the peak or the fast rate, in ns; by_memory, whether memory bandwidth limits the
    work; in_products, the share of the time in products on a CPU; flops_rate and bytes_rate, the
    modelled FLOPs and bytes by the time, both per ns; null without a model.

    Caches and Winograd's algorithm let a share exceed 1; of a known peak it is then 1.
    """
    if trace.device_args.height and not has_input_shapes(trace):
        none = np.full(trace.slices.height, NO_SLICE, np.int64)
        nothing = {name: np.array([np.nan]) for name in _COLUMNS}
        return OperatorEfficiencies(nothing, none[:1], none)
    host = self_times(trace)
    work = modelled_work_of_calls(trace)
    peaks, modelled = cpu_peaks_of_trace(trace), np.arange(host.id.size)
    if trace.device_args.height:
        counted = np.flatnonzero(work.is_counted)
        values = _efficiencies_on_device(trace, host, work, counted)
        row = np.full(host.id.size + 1, NO_SLICE, np.int64)
        row[counted] = np.arange(counted.size)
        modelled = row[nearest_marked_of_every_node(host.parent, work.is_counted)]
    elif peaks is not None:
        values, modelled = _efficiencies_at_cpu_peaks(peaks, host, work)
    else:
        values = _efficiencies_on_cpu(trace, host, work)
    return OperatorEfficiencies(
        {name: np.append(values[name], np.nan) for name in _COLUMNS},
        np.append(modelled, NO_SLICE),
        host.owner,
    )


def _efficiencies_on_device(
    trace: Trace, host: SelfTimes, work: ModelledOperatorWork, operators: Ints
) -> dict[str, Floats]:
    """Returns the columns for operators that count, by the device time of what they launched."""
    peaks = common_peak_rates_of_devices(trace)
    flops, moved = work.flops[operators], work.bytes[operators]
    computing = work.time_at_peak[operators] / _PICOSECONDS_PER_NS
    moving = np.zeros(operators.size)
    if peaks is not None:
        moving = moved / peaks.bytes * _NS_PER_SECOND
    least, time = np.maximum(computing, moving), np.maximum(host.device[operators], 1)
    known = ~work.lacks_peak_rate[operators] & (least > 0)
    known &= (computing <= moving) | (computing <= _MAX_PEAK_FACTOR_OF_PRODUCTS * time)
    return {
        "efficiency": np.where(known, np.minimum(least / time, 1.0), np.nan),
        "least_time": least,
        "by_memory": (moving > computing).astype(np.float64),
        "in_products": np.zeros(operators.size),
        "flops_rate": np.where(flops > 0, flops / time, np.nan),
        "bytes_rate": np.where(moved > 0, moved / time, np.nan),
    }


def intra_op_thread_count(trace: Trace) -> int:
    """Returns the number of threads that operators on the CPU use; 1 if that is unknown."""
    told = trace.facts.get("threads")
    return told if isinstance(told, int) and told > 0 else 1


def cpu_peaks_of_trace(trace: Trace) -> CpuPeakRates | None:
    """Returns what the CPU can do with the threads of the recorded steps; None if unknown."""
    peaks = trace.run.cpu_peaks
    if trace.device_args.height or peaks is None:
        return None
    return peaks if peaks.threads == intra_op_thread_count(trace) else None


def least_efficiency_of_needed_work(trace: Trace) -> pl.Expr:
    """Returns, for each segment of the account, the smallest efficiency at which it is needed."""
    if cpu_peaks_of_trace(trace) is not None:
        return pl.lit(MIN_PEAK_SHARE_OF_NEEDED_WORK)
    return (
        pl.when("on_device")
        .then(MIN_PEAK_SHARE_OF_NEEDED_WORK)
        .otherwise(MIN_FAST_RATE_SHARE_OF_NEEDED_WORK)
    )


def _efficiencies_at_cpu_peaks(
    peaks: CpuPeakRates, host: SelfTimes, work: ModelledOperatorWork
) -> tuple[dict[str, Floats], Ints]:
    """Returns the columns for each operator, and the operator whose values tell of each.

    That is the outermost operator around it whose work is modelled. An operator that only calls
    such ones has the sum of their work.
    """
    is_outermost = outermost_modelled_operators(host.parent, work)
    is_product = is_outermost & work.lacks_peak_rate
    rates = np.array([peaks.operations.get(name, np.nan) for name in (*MODELLED_DTYPES, "")])
    computing = np.where(is_product, work.flops / rates[work.dtype] * _NS_PER_SECOND, 0.0)
    sizes, inverse = np.unique(work.bytes, return_inverse=True)
    bandwidths = np.array([peaks.bytes_per_second(size) or np.nan for size in sizes.tolist()])
    moving = np.where(is_outermost, work.bytes / bandwidths[inverse] * _NS_PER_SECOND, 0.0)
    has_rates = ~(np.isnan(computing) | np.isnan(moving))
    least = np.where(has_rates, np.maximum(computing, moving), 0.0)
    has_known_work = is_outermost & (least > 0)
    own = np.where(has_known_work, host.cpu, 0)
    known_time = subtree_totals(host.parent, own)
    least_sum, moving_sum = (
        subtree_totals(host.parent, np.rint(values).astype(np.int64)).astype(np.float64)
        for values in (least, np.where(has_known_work & (moving > computing), least, 0.0))
    )
    time = np.maximum(host.cpu, 1)
    known = (least_sum > 0) & (known_time >= _MIN_MODELLED_SHARE_ON_CPU * time)
    known &= least_sum - moving_sum <= _MAX_PEAK_FACTOR_OF_PRODUCTS * time
    values = {
        "efficiency": np.where(known, np.minimum(least_sum / time, 1.0), np.nan),
        "least_time": least_sum,
        "by_memory": (2 * moving_sum > least_sum).astype(np.float64),
        "in_products": subtree_totals(host.parent, np.where(is_product, host.cpu, 0)) / time,
        **_modelled_rates(host, work, time),
    }
    around = nearest_marked_of_every_node(host.parent, is_outermost)
    return values, np.where(around == NO_SLICE, np.arange(around.size), around)


def _modelled_rates(host: SelfTimes, work: ModelledOperatorWork, time: Ints) -> dict[str, Floats]:
    """Returns each operator's FLOPs and bytes per ns, with those of all that it called."""
    flops, moved = subtree_totals(host.parent, work.flops), subtree_totals(host.parent, work.bytes)
    return {
        "flops_rate": np.where(flops > 0, flops / time, np.nan),
        "bytes_rate": np.where(moved > 0, moved / time, np.nan),
    }


def _efficiencies_on_cpu(
    trace: Trace, host: SelfTimes, work: ModelledOperatorWork
) -> dict[str, Floats]:
    """Returns the columns for each operator, with the work of all operators that it called."""
    is_product = work.is_counted & matches_name(
        pl.DataFrame({"name": host.name}), names.is_matrix_operator
    )
    rate = FAST_PRODUCT_GFLOPS_PER_THREAD * intra_op_thread_count(trace)
    least = subtree_totals(
        host.parent, np.where(is_product, work.flops / rate, 0.0).astype(np.int64)
    )
    in_products = subtree_totals(host.parent, np.where(is_product, host.cpu, 0))
    time = np.maximum(host.cpu, 1)
    known = (least > 0) & (in_products >= _MIN_MODELLED_SHARE_ON_CPU * time)
    known &= least <= _MAX_FAST_RATE_FACTOR_OF_PRODUCTS * time
    return {
        "efficiency": np.where(known, least / time, np.nan),
        "least_time": least.astype(np.float64),
        "by_memory": np.zeros(host.id.size),
        "in_products": in_products / time,
        **_modelled_rates(host, work, time),
    }


def efficiencies_of_segments(trace: Trace, segments: pl.DataFrame) -> pl.DataFrame:
    """Returns the columns of `operator_efficiencies` for segments of the account.

    Those of a device have the values of the operator that launched them. The same work at the same
    line has the mean of its efficiencies.
    """
    launcher = arguments_of_slices(trace, "device_args", segments["slice"], "operator")["operator"]
    at = pl.select(
        pl.when(segments["on_device"]).then(launcher).otherwise(segments["slice"])
    ).to_series()
    is_computing = (segments["class"] == "compute") & at.is_not_null()
    at = at.set(~is_computing, None)
    name = trace.slices["name"].gather(segments["slice"])
    time = (segments["end"] - segments["start"]).cast(pl.Float64)
    table = (
        operator_efficiencies(trace)
        .of_slices(at)
        .with_columns(segments.select("file", "line", "what"), name=name, time=time)
    )
    same = ("file", "line", "what", "name", "least_time")
    is_known = pl.col("efficiency").is_not_null()
    weight = pl.col("time").filter(is_known).sum().over(same)
    mean = (pl.col("efficiency") * pl.col("time")).sum().over(same) / weight
    return table.select(
        "in_products",
        "flops_rate",
        "bytes_rate",
        efficiency=pl.when(is_known & (weight > 0)).then(mean),
        by_memory=pl.col("by_memory") == 1.0,
    )
