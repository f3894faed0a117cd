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

__all__ = ["line_table", "recorded_of"]

_HOW: Final = ("stack", "definition")


def _facts(metadata: Mapping[str, Any], part: str) -> dict[str, Any]:
    facts = metadata.get("selftime")
    found = facts.get(part) if isinstance(facts, dict) else None
    return found if isinstance(found, dict) else {}


def line_table(metadata: Mapping[str, Any], ops: pl.DataFrame) -> pl.DataFrame:
    """The saved source line of each operator that has one."""
    lines = _facts(metadata, "lines")
    columns = [lines.get(name) for name in ("id", "file", "line", "function", "how")]
    lengths = {len(column) for column in columns if isinstance(column, list)}
    if len(lengths) != 1 or not all(isinstance(column, list) for column in columns):
        return schema.LINES.empty()
    names = ("external_id", "file", "line", "function", "how")
    told = pl.DataFrame(
        dict(zip(names, columns, strict=True)), schema=dict.fromkeys(names, pl.Int64)
    )
    joined = ops.select("id", "external_id").join(told, on="external_id", how="inner").sort("id")
    return joined.select(
        "id",
        _looked_up(joined["file"], lines.get("files")).alias("file"),
        pl.col("line").cast(pl.Int32),
        _looked_up(joined["function"], lines.get("functions")).alias("function"),
        _looked_up(joined["how"], list(_HOW)).alias("how"),
    )


def _looked_up(numbers: pl.Series, texts: object) -> pl.Series:
    known = pl.Series(
        [str(text) for text in texts] if isinstance(texts, list) else [], dtype=pl.String
    )
    return known.gather(numbers.cast(pl.UInt32)).cast(pl.Categorical)


def recorded_of(metadata: Mapping[str, Any], external_id: NDArray[np.int64]) -> dict[str, Any]:
    """Per operator: overload, whether it ended on another thread, and the recorder's FLOPs."""
    ops = _facts(metadata, "ops")
    found: dict[str, Any] = {}
    overloads = _by_id(ops.get("id"), ops.get("overload"))
    if overloads:
        found["overload"] = _spread(external_id, overloads, pl.String).cast(pl.Categorical)
    flops = ops.get("flops")
    if isinstance(flops, dict):
        found["flops"] = _spread(external_id, _by_id(flops.get("id"), flops.get("value")), pl.Int64)
    asynchronous = ops.get("async")
    if isinstance(asynchronous, list):
        found["asynchronous"] = np.isin(external_id, np.array(asynchronous, np.int64))
    return found


def _by_id(ids: object, values: object) -> dict[int, Any]:
    if not isinstance(ids, list) or not isinstance(values, list) or len(ids) != len(values):
        return {}
    return dict(zip(ids, values, strict=True))


def _spread(external_id: NDArray[np.int64], values: dict[int, Any], dtype: Any) -> pl.Series:
    keys = pl.Series(list(values), dtype=pl.Int64)
    told = pl.DataFrame({"id": keys, "value": pl.Series(list(values.values()), dtype=dtype)})
    asked = pl.DataFrame({"id": external_id})
    return asked.join(told, on="id", how="left", maintain_order="left")["value"]
