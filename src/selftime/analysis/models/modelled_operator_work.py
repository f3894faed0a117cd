"""Computes the modelled FLOPs and bytes of each operator, and the peak rate that limits it.

Operations and bytes belong to the operator that computes. Where an operator only delegates to
others of its kind, such as `linear` to `addmm`, the others count
(`models.COMPONENT_FAMILIES_BY_OPERATOR_FAMILY`). So sums over a trace count everything once.
"""

from dataclasses import dataclass
from typing import Any, Final, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.call_tree.parent_array_forests import (
    is_marked_or_has_marked_ancestor,
    subtree_totals,
)
from selftime.analysis.call_tree.self_times import SelfTimes, self_times
from selftime.analysis.device.device_work import device_work, slice_durations_without_impossible
from selftime.analysis.models import (
    COMPONENT_FAMILIES_BY_OPERATOR_FAMILY,
    MATRIX_UNIT_OPERATOR_FAMILIES,
    OperatorFamily,
    OperatorWork,
    RecordedOperatorCall,
    work_model_of_operator,
    work_of_operator_call,
)
from selftime.analysis.models.indexed_results import operators_that_tell_sizes
from selftime.analysis.models.stopped_recomputation import calls_stopped_by_checkpointing
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_filters import filter_by_name, matches_name
from selftime.array_types import Flags, Ints
from selftime.devices import DevicePeakRates, peak_rates
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

OPERATOR_FAMILIES: Final[tuple[OperatorFamily, ...]] = get_args(OperatorFamily)
"""The families of operators, such as attention; an index in this tuple is the family's code."""
MODELLED_DTYPES: Final = (*names.DTYPE_SIZES_IN_BYTES, "tf32")
"""Dtypes of computation; an index in this tuple is the dtype's code. `tf32` is float32 on tensor
cores.
"""

_OPERATOR_ARGUMENT_COLUMNS: Final = (
    "input_shapes",
    "input_types",
    "concrete_inputs",
    "input_strides",
)
_PICOSECONDS_PER_SECOND: Final = 10**12


@dataclass(frozen=True, slots=True)
class TensorCoreTimesByOperator:
    """Each operator's time (ns) in kernels that use tensor cores, and in kernels that may do so."""

    used: Ints
    unknown: Ints


@dataclass(frozen=True, slots=True)
class ModelledOperatorWork:
    """The modelled FLOPs and bytes of operators; arrays with one element per row of `SelfTimes`."""

    is_counted: Flags
    """Whether the operator's FLOPs and bytes are counted: they are known, and no operator that it
    calls counts them.
    """
    is_modelled: Flags
    """Whether the operator's FLOPs and bytes count, or it runs within an operator for which they
    count.
    """
    dtype: Ints
    """The operator's dtype of computation, as an index in `MODELLED_DTYPES`, or -1 if unknown; also
    known where `is_counted` is false.
    """
    flops: Ints
    bytes: Ints
    """Bytes that the operator must at least move; 0 if unknown or if `is_counted` is false."""
    time_at_peak: Ints
    """Time in ps that the operations take at the device's peak rate; 0 if the peak rate is unknown.
    """
    lacks_peak_rate: Flags
    """Whether the operator computes on matrix units whose peak rate is unknown."""
    peak: NDArray[np.float64]
    """The device's peak rate in the operator's dtype, in operations per second; NaN if unknown."""
    family: Ints
    """The operator's family, as an index in `OPERATOR_FAMILIES`, or -1 without a model."""


def tensor_core_times_by_operator(trace: Trace, host_times: SelfTimes) -> TensorCoreTimesByOperator:
    """Returns each operator's ns in kernels that use tensor cores, and in kernels that may."""
    told = trace.device_args.select("id", "operator").drop_nulls()
    slices = trace.slices.select("name", "category")[told["id"]]
    unique = slices["name"].unique()
    uses = [names.uses_tensor_cores(name) for name in unique.cast(pl.String).to_list()]
    kernels = slices["category"].is_in(names.COPY_CATEGORIES).not_()
    time = slice_durations_without_impossible(trace).gather(told["id"]).fill_null(0)
    parts = []
    for answer in (True, None):
        named = unique.filter(pl.Series([use is answer for use in uses], dtype=pl.Boolean))
        mine = kernels & slices["name"].is_in(named.implode())
        parts.append(
            host_times.sum_by_entry(
                told["operator"].filter(mine).to_numpy(), time.filter(mine).to_numpy()
            )
        )
    return TensorCoreTimesByOperator(*parts)


def common_peak_rates_of_devices(trace: Trace) -> DevicePeakRates | None:
    """Returns the peak rates of the devices that did work; None if unknown or not all the same."""
    devices = trace.devices
    used = trace.device_args["properties"].drop_nulls().unique()
    mine = devices.filter(pl.col("id").is_in(used.implode())) if used.len() else devices
    found = [
        peak_rates(*row) for row in mine.select("name", "multiprocessors").unique().iter_rows()
    ]
    if not found or not trace.device_args.height or any(peaks != found[0] for peaks in found):
        return None
    return found[0]


@cached_per_trace
def modelled_work_of_calls(trace: Trace) -> ModelledOperatorWork:
    """Returns the modelled work of the operators of `self_times`; the arrays are read-only."""
    host_times = self_times(trace)
    core_times = tensor_core_times_by_operator(trace, host_times)
    work = modelled_work_of_operators(trace, host_times, core_times)
    for name in ModelledOperatorWork.__slots__:
        getattr(work, name).flags.writeable = False
    return work


def modelled_work_of_operators(
    trace: Trace, host_times: SelfTimes, core_times: TensorCoreTimesByOperator
) -> ModelledOperatorWork:
    """Returns the modelled FLOPs and bytes of each operator, and its peak rate."""
    size = host_times.id.size
    at, kind, table = _modelled_operator_calls(trace, host_times)
    family, dtype = np.full(size, NO_SLICE, np.int64), np.full(size, NO_SLICE, np.int64)
    family[at], dtype[at] = table["family"].to_numpy()[kind], table["dtype"].to_numpy()[kind]
    is_counted = family != NO_SLICE
    is_counted[_delegating_operators(host_times.parent, family, at)] = False
    is_counted[_operators_copying_over_bus(trace, host_times, family)] = False
    is_counted[_operators_on_sparse_tensors(host_times)] = False
    is_counted[at[calls_stopped_by_checkpointing(trace, host_times, at, kind)]] = False
    single = MODELLED_DTYPES.index("float32")
    dtype[(dtype == single) & (core_times.used > 0) & _is_matrix_unit_family(family)] = (
        MODELLED_DTYPES.index("tf32")
    )
    flops, size_moved = np.zeros(size, np.int64), np.zeros(size, np.int64)
    flops[at], size_moved[at] = table["flops"].to_numpy()[kind], table["bytes"].to_numpy()[kind]
    untyped = table["elements_of_unknown_dtype"].to_numpy()[kind]
    if untyped.any():
        size_moved[at] += untyped * _element_sizes_of_tensor_lists(trace, host_times)[at]
    flops[~is_counted], size_moved[~is_counted] = 0, 0
    peak = _peak_rates_of_operators(common_peak_rates_of_devices(trace), dtype, family, core_times)
    known = ~np.isnan(peak) & is_counted
    least = np.zeros(size, np.int64)
    least[known] = np.rint(flops[known] / peak[known] * _PICOSECONDS_PER_SECOND).astype(np.int64)
    return ModelledOperatorWork(
        is_counted,
        is_marked_or_has_marked_ancestor(host_times.parent, is_counted),
        dtype,
        flops,
        size_moved,
        least,
        is_counted & _is_matrix_unit_family(family) & (flops > 0) & np.isnan(peak),
        peak,
        family,
    )


def _operators_on_sparse_tensors(host_times: SelfTimes) -> Flags:
    """Flags operators that run within one for sparse tensors, or call one.

    Their sizes count elements that are not stored.
    """
    is_sparse = matches_name(pl.DataFrame({"name": host_times.name}), names.is_sparse_operator)
    calls_one = subtree_totals(host_times.parent, is_sparse.astype(np.int64)) > 0
    return calls_one | is_marked_or_has_marked_ancestor(host_times.parent, is_sparse)


def outermost_modelled_operators(parent_of_operator: Ints, work: ModelledOperatorWork) -> Flags:
    """Flags the operators whose work counts, within no other operator whose work counts."""
    is_within = np.append(work.is_modelled, np.False_)[parent_of_operator]  # NO_SLICE is -1
    return work.is_counted & ~is_within


def modelled_share_of_operator_time(trace: Trace) -> float | None:
    """Returns the share (0 to 1) of operator time in operators whose FLOPs or bytes are modelled.

    None without any such time. Device work that no operator launched is not covered.
    """
    host = self_times(trace)
    device = trace.device_args.height > 0
    is_modelled = modelled_work_of_calls(trace).is_modelled
    own = host.self_device if device else host.self_cpu
    whole = device_work(trace)["duration"].sum() if device else host.self_cpu.sum()
    return float(own[is_modelled].sum() / whole) if whole else None


def _modelled_operator_calls(
    trace: Trace, host_times: SelfTimes
) -> tuple[Ints, Ints, pl.DataFrame]:
    """Returns the operators with a model, their rows in a table of distinct calls, and the table.

    The table has columns family and dtype (indexes), flops and bytes (0 if unknown), and
    elements_of_unknown_dtype, the number of moved elements whose dtype is unknown.
    """
    unique = host_times.name.unique()
    has_model = [
        work_model_of_operator(name) is not None for name in unique.cast(pl.String).to_list()
    ]
    named = host_times.name.is_in(unique.filter(pl.Series(has_model, dtype=pl.Boolean)).implode())
    at = named.arg_true().to_numpy().astype(np.int64)
    shaped = trace.op_args["input_shapes"].is_not_null().arg_true().to_numpy()
    row = np.full(trace.slices.height, NO_SLICE, np.int64)
    row[trace.op_args["id"].to_numpy()[shaped]] = shaped
    at = at[row[host_times.id[at]] != NO_SLICE]
    calls = trace.op_args.select(_OPERATOR_ARGUMENT_COLUMNS)[row[host_times.id[at]]]
    told_by = operators_that_tell_sizes(trace)[host_times.id[at]]
    calls = calls.with_columns(
        trace.op_args["concrete_inputs"][row[told_by]], name=host_times.name.gather(at)
    )
    distinct = calls.unique(maintain_order=True)
    found = [
        _work_of_call_as_numbers(*texts)
        for texts in distinct.select("name", *_OPERATOR_ARGUMENT_COLUMNS)
        .cast(pl.String)
        .iter_rows()
    ]
    table = pl.DataFrame(found, schema=_OPERATOR_WORK_SCHEMA, orient="row")
    codes = pl.all().to_physical()
    numbered = distinct.select(codes).with_row_index("kind")
    kind = (
        calls.select(codes)
        .join(numbered, on=calls.columns, nulls_equal=True, how="left", maintain_order="left")[
            "kind"
        ]
        .to_numpy()
        .astype(np.int64)
    )
    told = table["family"].to_numpy()[kind] != NO_SLICE if kind.size else np.zeros(0, bool)
    return at[told], kind[told], table


_OPERATOR_WORK_SCHEMA: Final = {
    "family": pl.Int64,
    "dtype": pl.Int64,
    "flops": pl.Int64,
    "bytes": pl.Int64,
    "elements_of_unknown_dtype": pl.Int64,
}
_MAX_PLAUSIBLE_OPERATIONS_OR_BYTES: Final = 1 << 58
"""Largest plausible number of operations or bytes of one call; larger numbers would overflow."""


def _work_of_call_as_numbers(
    operator_name: str, shapes: str, *argument_texts: str | None
) -> tuple[int, int, int, int, int]:
    """Returns a call's family code, dtype code, FLOPs, bytes, and elements of unknown dtype."""
    found = work_of_operator_call(operator_name, RecordedOperatorCall(shapes, *argument_texts))
    if found is None or not _is_plausible_operator_work(found):
        return NO_SLICE, NO_SLICE, 0, 0, 0
    dtype = NO_SLICE if found.dtype is None else MODELLED_DTYPES.index(found.dtype)
    return (
        OPERATOR_FAMILIES.index(found.family),
        dtype,
        found.flops,
        found.bytes or 0,
        found.elements_of_unknown_dtype,
    )


def _is_plausible_operator_work(work: OperatorWork) -> bool:
    return (
        max(work.flops, work.bytes or 0, work.elements_of_unknown_dtype)
        < _MAX_PLAUSIBLE_OPERATIONS_OR_BYTES
    )


def _element_sizes_of_tensor_lists(trace: Trace, host_times: SelfTimes) -> Ints:
    """Returns the element size (bytes) of each operator's tensor lists, by kernel name; else 0."""
    told = trace.device_args.select("id", "operator").drop_nulls()
    name = trace.slices["name"].gather(told["id"])
    unique = name.unique()
    least = np.full(host_times.id.size, _MAX_PLAUSIBLE_OPERATIONS_OR_BYTES, np.int64)
    most = np.zeros(host_times.id.size, np.int64)
    by_size: dict[int, list[bool]] = {}
    for at, text in enumerate(unique.cast(pl.String).to_list()):
        if size := names.kernel_element_size(text):
            by_size.setdefault(size, [False] * unique.len())[at] = True
    for size, which in by_size.items():
        mine = told["operator"].filter(name.is_in(unique.filter(pl.Series(which)).implode()))
        place = host_times.owner[mine.to_numpy().astype(np.int64)]
        place = place[place != NO_SLICE]
        least[place], most[place] = np.minimum(least[place], size), np.maximum(most[place], size)
    return np.where(least == most, most, 0)


def _delegating_operators(
    parent_of_operator: Ints, family_of_operator: Ints, modelled: Ints
) -> Ints:
    """Returns the indexes of operators whose FLOPs are counted for operators that they call."""
    built = np.zeros(
        (len(OPERATOR_FAMILIES) + 1, len(OPERATOR_FAMILIES) + 1), bool
    )  # the last element is for no family
    for outer, inner in COMPONENT_FAMILIES_BY_OPERATOR_FAMILY.items():
        built[OPERATOR_FAMILIES.index(outer), [OPERATOR_FAMILIES.index(one) for one in inner]] = (
            True
        )
    mine, above = modelled, parent_of_operator[modelled]
    found = [np.zeros(0, np.int64)]
    while mine.size:
        mine, above = mine[above != NO_SLICE], above[above != NO_SLICE]
        does = built[family_of_operator[above], family_of_operator[mine]]
        found.append(above[does])
        mine, above = mine[~does], parent_of_operator[above[~does]]
    return np.concatenate(found)


def _operators_copying_over_bus(
    trace: Trace, host_times: SelfTimes, family_of_operator: Ints
) -> Ints:
    """Returns the indexes of operators that copied between host and device over a bus."""
    told = trace.device_args.select("id", "operator").drop_nulls()
    copies = filter_by_name(
        trace.slices[told["id"]].select("id", "name"),
        lambda name: names.is_host_to_device_copy(name) or names.is_device_to_host_copy(name),
    )
    launchers = told.filter(pl.col("id").is_in(copies["id"].implode()))["operator"].to_numpy()
    place = host_times.owner[launchers.astype(np.int64)]
    place = place[place != NO_SLICE]
    return np.asarray(place[family_of_operator[place] == OPERATOR_FAMILIES.index("movement")])


def _is_matrix_unit_family(family_codes: Ints) -> Flags:
    return np.isin(
        family_codes, [OPERATOR_FAMILIES.index(one) for one in MATRIX_UNIT_OPERATOR_FAMILIES]
    )


def _peak_rates_of_operators(
    peaks: DevicePeakRates | None,
    dtype_of_operator: Ints,
    family_of_operator: Ints,
    core_times: TensorCoreTimesByOperator,
) -> NDArray[Any]:
    """Returns each matrix operator's peak FLOP/s for its dtype; NaN for other operators."""
    rates = np.full(len(MODELLED_DTYPES) + 1, np.nan)  # the last element is for no dtype
    for place, name in enumerate(MODELLED_DTYPES):
        rates[place] = np.nan if peaks is None else peaks.operations.get(name, np.nan)
    peak = np.where(_is_matrix_unit_family(family_of_operator), rates[dtype_of_operator], np.nan)
    if peaks is not None and "tf32" in peaks.operations:
        peak[(dtype_of_operator == MODELLED_DTYPES.index("float32")) & (core_times.unknown > 0)] = (
            np.nan
        )
    return np.asarray(peak)
