"""How well operators use a device: operations and bytes by their models, and tensor cores.

A rate is what the models count by the time that it took: device time, or host time where the trace
has no device. What has no model takes time and counts nothing, so a rate is a lower bound where
`modelled_share` is below 1. Where there is a device, operators that launched nothing on it are in
no rate: they computed on the host, or were captured to be replayed.

A share of a peak may exceed 1: Winograd's convolution has fewer operations than the textbook's, and
what caches hold does not move from memory.
"""

from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.call_tree.self_times import SelfTimes, subtree
from selftime.analysis.models.modelled import DTYPES, Modelled, TensorCores
from selftime.arrays import Ints
from selftime.devices import Peaks
from selftime.schema import Column

EFFICIENCY: Final = (
    Column("model_flops", pl.Int64, "flops", "Operations by model, with those within.", True),
    Column("model_bytes", pl.Int64, "bytes", "Bytes to move at least, with those within.", True),
    Column("flops_rate", pl.Float64, "flops/s", "Operations by total time; at least.", True),
    Column(
        "flops_share",
        pl.Float64,
        "ratio",
        "Of the device's peak; Winograd's algorithm may exceed it.",
        True,
    ),
    Column("bytes_rate", pl.Float64, "bytes/s", "Bytes by total time; at least.", True),
    Column(
        "bytes_share",
        pl.Float64,
        "ratio",
        "Of the peak of its memory, which caches may exceed.",
        True,
    ),
    Column("intensity", pl.Float64, "flops/byte", "`model_flops` by `model_bytes`.", True),
    Column("modelled_share", pl.Float64, "ratio", "Share of total time that has a model.", True),
    Column("dtype", pl.String, "name", "What it computes in, if one; tf32 on tensor cores.", True),
    Column("peak_flops", pl.Float64, "flops/s", "The device's peak in that dtype.", True),
    Column("peak_bytes", pl.Float64, "bytes/s", "The peak of the device's memory.", True),
    Column("self_model_flops", pl.Int64, "flops", "Operations by model, its own.", True),
    Column("self_model_bytes", pl.Int64, "bytes", "Bytes to move at least, its own.", True),
    Column(
        "tensor_core_eligible", pl.Boolean, "flag", "It or one within multiplies matrices.", True
    ),
    Column("tensor_core_share", pl.Float64, "ratio", "Device time surely on tensor cores.", True),
    Column(
        "tensor_core_unknown",
        pl.Float64,
        "ratio",
        "Device time in kernels whose names do not tell of tensor cores.",
        True,
    ),
)
"""Columns about efficiency: totals are with what ran within, as other totals are."""

_PICOSECONDS: Final = 1000


def amounts(
    host: SelfTimes, work: Modelled, cores: TensorCores, outer: NDArray[np.bool_], *, device: bool
) -> dict[str, Any]:
    """What each entry adds to its row, by the names that `rates` reads.

    Args:
        host: The entries.
        work: Their work.
        cores: Their time on tensor cores.
        outer: Which entries totals take in: those in no other of their row.
        device: Whether time is the device's.
    """
    time, total = (host.self_device, host.device) if device else (host.self_cpu, host.cpu)

    def inclusive(own: Ints) -> Ints:
        return np.where(outer, subtree(host.parent, own), 0) if own.any() else own

    ran = total > 0
    dtype = pl.Series(work.dtype)
    peak = pl.Series(work.peak)
    matrix = subtree(host.parent, _eligible(host.name).astype(np.int64)) > 0
    return {
        "model_flops": inclusive(work.flops),
        "model_bytes": inclusive(work.bytes),
        "self_model_flops": work.flops,
        "self_model_bytes": work.bytes,
        "rated_flops": inclusive(work.flops * ran),
        "rated_bytes": inclusive(work.bytes * ran),
        "least": inclusive(work.least * ran),
        "models": inclusive(work.counts.astype(np.int64)),
        "own_models": work.counts.astype(np.int64),
        "covered": inclusive(np.where(work.covered, time, 0)),
        "time": np.where(outer, total, 0),
        "tensor": inclusive(cores.used),
        "untold": inclusive(cores.unknown),
        "matrix": matrix.astype(np.int64),
        "dtype_place": dtype.set(dtype < 0, None),
        "peak": peak.fill_nan(None),
    }


def _eligible(name: pl.Series) -> NDArray[np.bool_]:
    unique = name.unique()
    found = [names.is_matrix_operator(text) for text in unique.cast(pl.String).to_list()]
    wanted = unique.filter(pl.Series(found, dtype=pl.Boolean))
    return name.is_in(wanted.implode()).to_numpy()


def rates(rows: pl.DataFrame, peaks: Peaks | None, *, device: bool) -> pl.DataFrame:
    """The declared columns of rows that hold sums of `amounts`, one dtype and peak or null."""
    modelled, owned = pl.col("models") > 0, pl.col("own_models") > 0
    operator = pl.col("kind") == "operator"
    on_device = pl.col("device_time_total") > 0
    memory = None if peaks is None else peaks.bytes
    rows = rows.with_columns(
        pl.when(modelled).then("model_flops"),
        pl.when(modelled & (pl.col("model_bytes") > 0)).then("model_bytes"),
        pl.when(owned).then("self_model_flops"),
        pl.when(owned & (pl.col("self_model_bytes") > 0)).then("self_model_bytes"),
        modelled_share=pl.when(pl.col("time") > 0).then(pl.col("covered") / pl.col("time")),
        tensor_core_eligible=pl.when(operator).then(pl.col("matrix") > 0),
        tensor_core_share=pl.when(on_device).then(pl.col("tensor") / pl.col("device_time_total")),
        tensor_core_unknown=pl.when(on_device).then(pl.col("untold") / pl.col("device_time_total")),
        dtype=_dtypes(rows["dtype_place"]),
        peak_flops=pl.col("peak"),
        flops_share=pl.when(pl.col("least") > 0).then(
            pl.col("least") / (pl.col("time") * _PICOSECONDS)
        ),
    )
    return rows.with_columns(
        flops_rate=_rate("rated_flops"),
        bytes_rate=_rate("rated_bytes"),
        intensity=pl.col("model_flops") / pl.col("model_bytes"),
        peak_bytes=pl.when(pl.col("model_bytes").is_not_null()).then(
            pl.lit(memory if device else None, dtype=pl.Float64)
        ),
    ).with_columns(bytes_share=pl.col("bytes_rate") / pl.col("peak_bytes"))


def _rate(amount: str) -> pl.Expr:
    """So much a second; unknown where there is no time, or nothing that has a model in it."""
    known = (pl.col("time") > 0) & (pl.col(amount) > 0)
    return pl.when(known).then(pl.col(amount) * 1e9 / pl.col("time"))


def _dtypes(places: pl.Series) -> pl.Series:
    return places.replace_strict(dict(enumerate(DTYPES)), default=None, return_dtype=pl.String)
