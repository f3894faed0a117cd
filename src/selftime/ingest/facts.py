"""What a recording by selftime knows beyond the trace, joined to the trace's rows.

The facts stand under the top-level key `selftime`, format `selftime.facts/1`; lists in them are
columns, keyed by the operators' `External id`.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import schema

_HOW: Final = ("stack", "definition", "stamp")


def _facts(metadata: Mapping[str, Any], part: str) -> dict[str, Any]:
    facts = metadata.get("selftime")
    found = facts.get(part) if isinstance(facts, dict) else None
    return found if isinstance(found, dict) else {}


def _ints(value: object) -> list[int] | None:
    """A column of integers that fit 63 bits; None for anything else."""
    if not isinstance(value, list):
        return None
    return value if all(type(n) is int and abs(n) < 1 << 63 for n in value) else None


def _texts(value: object) -> list[str]:
    return [str(text) for text in value] if isinstance(value, list) else []


def line_table(metadata: Mapping[str, Any], ops: pl.DataFrame) -> pl.DataFrame:
    """The saved source line of each operator that has one; nothing of columns that do not fit."""
    lines = _facts(metadata, "lines")
    told = {name: _ints(lines.get(name)) for name in ("id", "file", "line", "function", "how")}
    columns = {name: column for name, column in told.items() if column is not None}
    if len(columns) < len(told) or len({len(column) for column in columns.values()}) != 1:
        return schema.LINES.empty()
    saved = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Int64))
    saved = saved.rename({"id": "external_id"})
    joined = ops.select("id", "external_id").join(saved, on="external_id", how="inner").sort("id")
    table = joined.select(
        "id",
        _looked_up(joined["file"], _texts(lines.get("files"))),
        pl.col("line").cast(pl.Int32, strict=False),
        _looked_up(joined["function"], _texts(lines.get("functions"))),
        _looked_up(joined["how"], list(_HOW)),
    )
    return table.drop_nulls()


def _looked_up(numbers: pl.Series, texts: list[str]) -> pl.Series:
    """The texts at those places; null for a place that there is not."""
    known = pl.Series(numbers.name, texts, dtype=pl.String)
    places = numbers.to_frame().select(
        pl.when(pl.first().is_between(0, len(texts) - 1)).then(pl.first())
    )
    return known.gather(places.to_series().cast(pl.UInt32)).cast(pl.Categorical)


def recorded_of(metadata: Mapping[str, Any], external_id: NDArray[np.int64]) -> dict[str, Any]:
    """Per operator: overload, whether it ended on another thread, and the recorder's FLOPs."""
    ops = _facts(metadata, "ops")
    found: dict[str, Any] = {}
    overload = ops.get("overload")
    if isinstance(overload, list):
        texts = [None if text is None else str(text) for text in overload]
        found["overload"] = _spread(external_id, _ints(ops.get("id")), texts, pl.Categorical())
    flops = ops.get("flops")
    if isinstance(flops, dict):
        ids, values = _ints(flops.get("id")), _ints(flops.get("value"))
        found["flops"] = _spread(external_id, ids, values, pl.Int64())
    asynchronous = _ints(ops.get("async"))
    if asynchronous is not None:
        found["asynchronous"] = np.isin(external_id, np.array(asynchronous, np.int64))
    return found


def _spread(
    external_id: NDArray[np.int64], ids: list[int] | None, values: Any, dtype: pl.DataType
) -> pl.Series:
    """For each operator the value of its id; unknown where the two columns do not fit."""
    if ids is None or values is None or len(ids) != len(values):
        return pl.repeat(None, external_id.size, dtype=dtype, eager=True)
    told = pl.DataFrame({"id": pl.Series(ids, dtype=pl.Int64), "value": pl.Series(values)})
    asked = pl.DataFrame({"id": external_id})
    once = told.unique("id", keep="last")
    return asked.join(once, on="id", how="left", maintain_order="left")["value"].cast(dtype)
