"""Facts that selftime records beside the trace, joined to the trace's rows.

The facts stand under the top-level key `selftime`, format `selftime.facts/1`. Lists in them are
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
    """Returns the recorded source line of each operator; empty if the columns do not match."""
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
        _texts_at(joined["file"], _texts(lines.get("files"))),
        pl.col("line").cast(pl.Int32, strict=False),
        _texts_at(joined["function"], _texts(lines.get("functions"))),
        _texts_at(joined["how"], list(_HOW)),
    )
    return table.drop_nulls()


def _texts_at(numbers: pl.Series, texts: list[str]) -> pl.Series:
    """Returns the text at each index; null for an index out of range."""
    known = pl.Series(numbers.name, texts, dtype=pl.String)
    places = numbers.to_frame().select(
        pl.when(pl.first().is_between(0, len(texts) - 1)).then(pl.first())
    )
    return known.gather(places.to_series().cast(pl.UInt32)).cast(pl.Categorical)


def recorded_operator_facts(
    metadata: Mapping[str, Any], external_id: NDArray[np.int64]
) -> dict[str, Any]:
    """Returns, per operator: overload, whether it ended on another thread, recorded FLOPs."""
    ops = _facts(metadata, "ops")
    found: dict[str, Any] = {}
    overload = ops.get("overload")
    if isinstance(overload, list):
        texts = [None if text is None else str(text) for text in overload]
        found["overload"] = _values_by_id(
            external_id, _ints(ops.get("id")), texts, pl.Categorical()
        )
    flops = ops.get("flops")
    if isinstance(flops, dict):
        ids, values = _ints(flops.get("id")), _ints(flops.get("value"))
        found["flops"] = _values_by_id(external_id, ids, values, pl.Int64())
    asynchronous = _ints(ops.get("async"))
    if asynchronous is not None:
        found["asynchronous"] = np.isin(external_id, np.array(asynchronous, np.int64))
    return found


def _values_by_id(
    external_id: NDArray[np.int64], ids: list[int] | None, values: Any, dtype: pl.DataType
) -> pl.Series:
    """Returns each operator's value by its external id; null if ids and values differ in length."""
    if ids is None or values is None or len(ids) != len(values):
        return pl.repeat(None, external_id.size, dtype=dtype, eager=True)
    told = pl.DataFrame({"id": pl.Series(ids, dtype=pl.Int64), "value": pl.Series(values)})
    asked = pl.DataFrame({"id": external_id})
    once = told.unique("id", keep="last")
    return asked.join(once, on="id", how="left", maintain_order="left")["value"].cast(dtype)
