"""Computes how efficiently operators use a device: modelled FLOPs, bytes, use of tensor cores.

A rate is the modelled amount divided by the time it took: device time, or host time where the trace
has no device. Operators without a model take time and add no amount, so a rate is a lower bound
where `modelled_share` is below 1. Where there is a device, operators that launched nothing on it
are excluded: they computed on the host, or were captured to be replayed.

A share of a peak may exceed 1: Winograd's convolution needs fewer operations than the textbook
formula, and cached data does not move from memory.
"""

from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.call_tree.parent_array_forests import subtree_totals
from selftime.analysis.call_tree.self_times import SelfTimes
from selftime.analysis.models.modelled_operator_work import (
    MODELLED_DTYPES,
    ModelledOperatorWork,
    TensorCoreTimesByOperator,
)
from selftime.array_types import Ints
from selftime.devices import DevicePeakRates
from selftime.schema import Column

FLOPS_SHARE_COLUMN: Final = Column(
    "flops_share",
    pl.Float64,
    "ratio",
    "FLOP/s as a share of the device's peak; Winograd's algorithm may exceed 1.",
    True,
)
BYTES_SHARE_COLUMN: Final = Column(
    "bytes_share",
    pl.Float64,
    "ratio",
    "Bandwidth as a share of the device memory's peak; caches may make it exceed 1.",
    True,
)
OPERATOR_EFFICIENCY_COLUMNS: Final = (
    Column(
        "model_flops",
        pl.Int64,
        "flops",
        "Modelled FLOPs of the row's operators and all that they called; null without a model.",
        True,
    ),
    Column(
        "model_bytes",
        pl.Int64,
        "bytes",
        "Least bytes that the operators and all that they called must move; null without a model.",
        True,
    ),
    Column(
        "flops_rate",
        pl.Float64,
        "flops/s",
        "Modelled FLOPs divided by total time: a lower bound of the achieved rate.",
        True,
    ),
    FLOPS_SHARE_COLUMN,
    Column(
        "bytes_rate",
        pl.Float64,
        "bytes/s",
        "Modelled bytes divided by total time: a lower bound of the achieved bandwidth.",
        True,
    ),
    BYTES_SHARE_COLUMN,
    Column("intensity", pl.Float64, "flops/byte", "`model_flops` divided by `model_bytes`.", True),
    Column(
        "modelled_share",
        pl.Float64,
        "ratio",
        "Share of the row's total time in operators whose FLOPs are modelled.",
        True,
    ),
    Column(
        "dtype",
        pl.String,
        "name",
        "The dtype of computation; tf32 is float32 on tensor cores; null if several.",
        True,
    ),
    Column("peak_flops", pl.Float64, "flops/s", "The device's peak FLOP/s in that dtype.", True),
    Column("peak_bytes", pl.Float64, "bytes/s", "The peak bandwidth of the device's memory.", True),
    Column(
        "self_model_flops",
        pl.Int64,
        "flops",
        "Modelled FLOPs without those of called operators; null without a model.",
        True,
    ),
    Column(
        "self_model_bytes",
        pl.Int64,
        "bytes",
        "Least bytes to move, without those of called operators; null without a model.",
        True,
    ),
    Column(
        "tensor_core_eligible",
        pl.Boolean,
        "flag",
        "Whether the operator, or an operator that it called, multiplies matrices.",
        True,
    ),
    Column(
        "tensor_core_share",
        pl.Float64,
        "ratio",
        "Share of device time in kernels that certainly use tensor cores.",
        True,
    ),
    Column(
        "tensor_core_unknown",
        pl.Float64,
        "ratio",
        "Share of device time in kernels that may or may not use tensor cores.",
        True,
    ),
)
"""Columns for FLOPs, bytes and rates that several views have; totals include called operators."""

_PICOSECONDS_PER_NS: Final = 1000


COLUMNS_OF_TOTAL_AMOUNTS: Final = (
    "model_flops",
    "model_bytes",
    "rated_flops",
    "rated_bytes",
    "least_time_ps",
    "models",
    "modelled_time",
    "tensor_core_time",
    "unknown_core_time",
)
"""Amounts that include called operators: a row counts them only of its outermost operators."""


def operator_efficiency_amounts(
    self_times: SelfTimes,
    work: ModelledOperatorWork,
    core_times: TensorCoreTimesByOperator,
    *,
    is_device_time: bool,
) -> dict[str, Any]:
    """Returns FLOPs, bytes and times of each operator by column name, to be summed by table row.

    Args:
        self_times: The entries.
        work: Their modelled work.
        core_times: Their time on tensor cores.
        is_device_time: Whether times are device times.
    """
    time, total = (
        (self_times.self_device, self_times.device)
        if is_device_time
        else (self_times.self_cpu, self_times.cpu)
    )

    def with_descendants(own: Ints) -> Ints:
        return subtree_totals(self_times.parent, own) if own.any() else own

    ran = total > 0
    dtype = pl.Series(work.dtype)
    matrix_operators = _is_matrix_unit_operator(self_times.name).astype(np.int64)
    return {
        "model_flops": with_descendants(work.flops),
        "model_bytes": with_descendants(work.bytes),
        "self_model_flops": work.flops,
        "self_model_bytes": work.bytes,
        "rated_flops": with_descendants(work.flops * ran),
        "rated_bytes": with_descendants(work.bytes * ran),
        "least_time_ps": with_descendants(work.time_at_peak * ran),
        "models": with_descendants(work.is_counted.astype(np.int64)),
        "own_models": work.is_counted.astype(np.int64),
        "modelled_time": with_descendants(np.where(work.is_modelled, time, 0)),
        "tensor_core_time": with_descendants(core_times.used),
        "unknown_core_time": with_descendants(core_times.unknown),
        "matrix_runs": (with_descendants(matrix_operators) > 0).astype(np.int64),
        "dtype_code": dtype.set(dtype < 0, None),
        "peak": pl.Series(work.peak).fill_nan(None),
    }


def _is_matrix_unit_operator(operator_names: pl.Series) -> NDArray[np.bool_]:
    unique = operator_names.unique()
    found = [names.is_matrix_operator(text) for text in unique.cast(pl.String).to_list()]
    wanted = unique.filter(pl.Series(found, dtype=pl.Boolean))
    return operator_names.is_in(wanted.implode()).to_numpy()


def rows_with_efficiency_columns(
    rows: pl.DataFrame, peaks: DevicePeakRates | None, *, is_device_time: bool
) -> pl.DataFrame:
    """Adds the `OPERATOR_EFFICIENCY_COLUMNS`, computed from summed amounts, to table rows."""
    modelled, owned = pl.col("models") > 0, pl.col("own_models") > 0
    operator = pl.col("kind") == "operator"
    on_device = pl.col("device_time_total") > 0
    memory = None if peaks is None else peaks.bytes
    rows = rows.with_columns(
        pl.when(modelled).then("model_flops"),
        pl.when(modelled & (pl.col("model_bytes") > 0)).then("model_bytes"),
        pl.when(owned).then("self_model_flops"),
        pl.when(owned & (pl.col("self_model_bytes") > 0)).then("self_model_bytes"),
        modelled_share=pl.when(pl.col("rated_time") > 0).then(
            pl.col("modelled_time") / pl.col("rated_time")
        ),
        tensor_core_eligible=pl.when(operator).then(pl.col("matrix_runs") > 0),
        tensor_core_share=pl.when(on_device).then(
            pl.col("tensor_core_time") / pl.col("device_time_total")
        ),
        tensor_core_unknown=pl.when(on_device).then(
            pl.col("unknown_core_time") / pl.col("device_time_total")
        ),
        dtype=_dtype_names_of_codes(rows["dtype_code"]),
        peak_flops=pl.col("peak"),
        flops_share=pl.when(pl.col("least_time_ps") > 0).then(
            pl.col("least_time_ps") / (pl.col("rated_time") * _PICOSECONDS_PER_NS)
        ),
    )
    return rows.with_columns(
        flops_rate=_amount_per_second("rated_flops"),
        bytes_rate=_amount_per_second("rated_bytes"),
        intensity=pl.col("model_flops") / pl.col("model_bytes"),
        peak_bytes=pl.when(pl.col("model_bytes").is_not_null()).then(
            pl.lit(memory if is_device_time else None, dtype=pl.Float64)
        ),
    ).with_columns(bytes_share=pl.col("bytes_rate") / pl.col("peak_bytes"))


def _amount_per_second(amount_column: str) -> pl.Expr:
    """Returns a column expression: the amount per second; null where amount or time is 0."""
    known = (pl.col("rated_time") > 0) & (pl.col(amount_column) > 0)
    return pl.when(known).then(pl.col(amount_column) * 1e9 / pl.col("rated_time"))


def _dtype_names_of_codes(dtype_codes: pl.Series) -> pl.Series:
    return dtype_codes.replace_strict(
        dict(enumerate(MODELLED_DTYPES)), default=None, return_dtype=pl.String
    )
