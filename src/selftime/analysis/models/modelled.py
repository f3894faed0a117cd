"""What each operator of a trace has to do by its model, and which device could do how much.

Operations and bytes belong to the operator that computes: where one only hands on to others of its
kind, such as `linear` to `addmm`, the others count (`models.BUILT_FROM`). So totals over a trace
count everything once.
"""

from dataclasses import dataclass
from typing import Any, Final, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.call_tree.self_times import SelfTimes, marked_above, self_times
from selftime.analysis.device.work import device_durations, device_work
from selftime.analysis.models import BUILT_FROM, MATRIX_FAMILIES, Call, Family, Work, model_of, work
from selftime.analysis.slice_filters import filter_by_name
from selftime.arrays import Flags, Ints
from selftime.devices import Peaks, peaks_of
from selftime.nesting import NONE
from selftime.trace import Trace

FAMILIES: Final[tuple[Family, ...]] = get_args(Family)
DTYPES: Final = (*names.DTYPE_SIZES, "tf32")
"""What operators compute in; `tf32` is float32 on tensor cores."""

_ARGUMENTS: Final = ("input_shapes", "input_types", "concrete_inputs", "input_strides")
_PICOSECONDS: Final = 10**12


@dataclass(frozen=True, slots=True)
class TensorCores:
    """Device time that each operator launched itself, by what the kernels' names tell; in ns."""

    used: Ints
    unknown: Ints


@dataclass(frozen=True, slots=True)
class Modelled:
    """One entry for each entry of the charges."""

    counts: Flags
    """Whether its own work counts: it has a model, all is told, and none within does its work."""
    covered: Flags
    """Whether it counts or lies in one that does."""
    dtype: Ints
    """What it computes in, as a place in `DTYPES`, or NONE; also where those within count."""
    flops: Ints
    bytes: Ints
    """Of those that count; 0 where not told."""
    least: Ints
    """Least time of the operations at the device's peak, in ps; 0 without a peak."""
    unlimited: Flags
    """Whether it has operations for matrix units, but no peak is known for them."""
    peak: NDArray[np.float64]
    """The device's peak in the dtype, in operations a second; NaN if not known."""


def tensor_cores(trace: Trace, host: SelfTimes) -> TensorCores:
    """Charge the time of kernels on tensor cores, and of those that do not tell."""
    told = trace.device_args.select("id", "operator").drop_nulls()
    slices = trace.slices.select("name", "category")[told["id"]]
    unique = slices["name"].unique()
    uses = [names.uses_tensor_cores(name) for name in unique.cast(pl.String).to_list()]
    kernels = slices["category"].is_in(names.COPIES).not_()
    time = device_durations(trace).gather(told["id"]).fill_null(0)
    parts = []
    for answer in (True, None):
        named = unique.filter(pl.Series([use is answer for use in uses], dtype=pl.Boolean))
        mine = kernels & slices["name"].is_in(named.implode())
        parts.append(
            host.own(told["operator"].filter(mine).to_numpy(), time.filter(mine).to_numpy())
        )
    return TensorCores(*parts)


def peaks_in(trace: Trace) -> Peaks | None:
    """The limits of the devices that did work, if they are known and the same for all."""
    devices = trace.devices
    used = trace.device_args["properties"].drop_nulls().unique()
    mine = devices.filter(pl.col("id").is_in(used.implode())) if used.len() else devices
    found = [peaks_of(*row) for row in mine.select("name", "multiprocessors").unique().iter_rows()]
    if not found or not trace.device_args.height or any(peaks != found[0] for peaks in found):
        return None
    return found[0]


def modelled(trace: Trace, host: SelfTimes, cores: TensorCores) -> Modelled:
    """Find what each operator has to do."""
    size = host.id.size
    at, kind, table = _works(trace, host)
    family, dtype = np.full(size, NONE, np.int64), np.full(size, NONE, np.int64)
    family[at], dtype[at] = table["family"].to_numpy()[kind], table["dtype"].to_numpy()[kind]
    counts = family != NONE
    counts[_hand_on(host.parent, family, at)] = False
    counts[_across_the_bus(trace, host, family)] = False
    single = DTYPES.index("float32")
    dtype[(dtype == single) & (cores.used > 0) & _is_matrix(family)] = DTYPES.index("tf32")
    flops, size_moved = np.zeros(size, np.int64), np.zeros(size, np.int64)
    flops[at], size_moved[at] = table["flops"].to_numpy()[kind], table["bytes"].to_numpy()[kind]
    size_moved[at] += table["numbers"].to_numpy()[kind] * _element_sizes(trace, host)[at]
    flops[~counts], size_moved[~counts] = 0, 0
    peak = _peak(peaks_in(trace), dtype, family, cores)
    known = ~np.isnan(peak) & counts
    least = np.zeros(size, np.int64)
    least[known] = np.rint(flops[known] / peak[known] * _PICOSECONDS).astype(np.int64)
    return Modelled(
        counts,
        marked_above(host.parent, counts),
        dtype,
        flops,
        size_moved,
        least,
        counts & _is_matrix(family) & (flops > 0) & np.isnan(peak),
        peak,
    )


def coverage(trace: Trace) -> float | None:
    """The share of device time whose operators have a model; of host time without a device.

    None if there is no such time. Device work that no operator launched is not covered.
    """
    host = self_times(trace)
    device = trace.device_args.height > 0
    covered = modelled(trace, host, tensor_cores(trace, host)).covered
    own = host.self_device if device else host.self_cpu
    whole = device_work(trace)["duration"].sum() if device else host.self_cpu.sum()
    return float(own[covered].sum() / whole) if whole else None


def _works(trace: Trace, host: SelfTimes) -> tuple[Ints, Ints, pl.DataFrame]:
    """Entries that have work, which distinct call each is, and the work of each distinct call.

    The table has columns family and dtype (places in the lists), flops and bytes (0 if not told),
    and numbers, those moved whose dtype is not told.
    """
    unique = host.name.unique()
    has_model = [model_of(name) is not None for name in unique.cast(pl.String).to_list()]
    named = host.name.is_in(unique.filter(pl.Series(has_model, dtype=pl.Boolean)).implode())
    at = named.arg_true().to_numpy().astype(np.int64)
    shaped = trace.op_args["input_shapes"].is_not_null().arg_true().to_numpy()
    row = np.full(trace.slices.height, NONE, np.int64)
    row[trace.op_args["id"].to_numpy()[shaped]] = shaped
    at = at[row[host.id[at]] != NONE]
    calls = trace.op_args.select(_ARGUMENTS)[row[host.id[at]]]
    calls = calls.with_columns(name=host.name.gather(at))
    distinct = calls.unique(maintain_order=True)
    found = [
        _work(*texts) for texts in distinct.select("name", *_ARGUMENTS).cast(pl.String).iter_rows()
    ]
    table = pl.DataFrame(found, schema=_WORK, orient="row")
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
    told = table["family"].to_numpy()[kind] != NONE if kind.size else np.zeros(0, bool)
    return at[told], kind[told], table


_WORK: Final = {
    "family": pl.Int64,
    "dtype": pl.Int64,
    "flops": pl.Int64,
    "bytes": pl.Int64,
    "numbers": pl.Int64,
}
_LARGEST: Final = 1 << 58
"""Sizes beyond are no sizes of this world, and would not fit."""


def _work(name: str, shapes: str, *texts: str | None) -> tuple[int, int, int, int, int]:
    found = work(name, Call(shapes, *texts))
    if found is None or not _fits(found):
        return NONE, NONE, 0, 0, 0
    dtype = NONE if found.dtype is None else DTYPES.index(found.dtype)
    return FAMILIES.index(found.family), dtype, found.flops, found.bytes or 0, found.numbers


def _fits(found: Work) -> bool:
    return max(found.flops, found.bytes or 0, found.numbers) < _LARGEST


def _element_sizes(trace: Trace, host: SelfTimes) -> Ints:
    """Bytes of an element of the lists that an operator works on, by its kernels' names, else 0."""
    told = trace.device_args.select("id", "operator").drop_nulls()
    name = trace.slices["name"].gather(told["id"])
    unique = name.unique()
    least = np.full(host.id.size, _LARGEST, np.int64)
    most = np.zeros(host.id.size, np.int64)
    by_size: dict[int, list[bool]] = {}
    for at, text in enumerate(unique.cast(pl.String).to_list()):
        if size := names.element_size(text):
            by_size.setdefault(size, [False] * unique.len())[at] = True
    for size, which in by_size.items():
        mine = told["operator"].filter(name.is_in(unique.filter(pl.Series(which)).implode()))
        place = host.owner[mine.to_numpy().astype(np.int64)]
        place = place[place != NONE]
        least[place], most[place] = np.minimum(least[place], size), np.maximum(most[place], size)
    return np.where(least == most, most, 0)


def _hand_on(parent: Ints, family: Ints, at: Ints) -> Ints:
    """Operators within which others do their work."""
    built = np.zeros((len(FAMILIES) + 1, len(FAMILIES) + 1), bool)  # the last: no family
    for outer, inner in BUILT_FROM.items():
        built[FAMILIES.index(outer), [FAMILIES.index(one) for one in inner]] = True
    mine, above = at, parent[at]
    found = [np.zeros(0, np.int64)]
    while mine.size:
        mine, above = mine[above != NONE], above[above != NONE]
        does = built[family[above], family[mine]]
        found.append(above[does])
        mine, above = mine[~does], parent[above[~does]]
    return np.concatenate(found)


def _across_the_bus(trace: Trace, host: SelfTimes, family: Ints) -> Ints:
    """Operators that copied between host and device: no memory of one device limits them."""
    told = trace.device_args.select("id", "operator").drop_nulls()
    copies = filter_by_name(
        trace.slices[told["id"]].select("id", "name"),
        lambda name: names.is_upload(name) or names.is_download(name),
    )
    launchers = told.filter(pl.col("id").is_in(copies["id"].implode()))["operator"].to_numpy()
    place = host.owner[launchers.astype(np.int64)]
    place = place[place != NONE]
    return np.asarray(place[family[place] == FAMILIES.index("movement")])


def _is_matrix(family: Ints) -> Flags:
    return np.isin(family, [FAMILIES.index(one) for one in MATRIX_FAMILIES])


def _peak(peaks: Peaks | None, dtype: Ints, family: Ints, cores: TensorCores) -> NDArray[Any]:
    """The peak of matrix operators in their dtype; of float32 only if it is told where it ran."""
    rates = np.full(len(DTYPES) + 1, np.nan)  # the last: no dtype
    for place, name in enumerate(DTYPES):
        rates[place] = np.nan if peaks is None else peaks.operations.get(name, np.nan)
    peak = np.where(_is_matrix(family), rates[dtype], np.nan)
    if peaks is not None and "tf32" in peaks.operations:
        peak[(dtype == DTYPES.index("float32")) & (cores.unknown > 0)] = np.nan
    return np.asarray(peak)
