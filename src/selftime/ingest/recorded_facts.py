"""Reads what selftime's recorder adds to a trace: source lines, overloads and FLOPs of operators.

The facts stand under the top-level key `selftime`, format `selftime.facts/1`. Lists in them are
columns, keyed by the operators' `External id`.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import schema

_LINE_EVIDENCE_BY_RECORDED_CODE: Final = ("stack", "definition", "stamp")


def _recorded_facts_of_section(metadata: Mapping[str, Any], section: str) -> dict[str, Any]:
    facts = metadata.get("selftime")
    found = facts.get(section) if isinstance(facts, dict) else None
    return found if isinstance(found, dict) else {}


def _int_list_or_none(value: object) -> list[int] | None:
    """Returns the value if it is a list of integers that fit in 63 bits, else None."""
    if not isinstance(value, list):
        return None
    return value if all(type(n) is int and abs(n) < 1 << 63 for n in value) else None


def _strings_of_list(value: object) -> list[str]:
    return [str(text) for text in value] if isinstance(value, list) else []


def recorded_line_table(metadata: Mapping[str, Any], ops: pl.DataFrame) -> pl.DataFrame:
    """Returns the table of operators' recorded source lines; empty if its columns are invalid."""
    lines = _recorded_facts_of_section(metadata, "lines")
    told = {
        name: _int_list_or_none(lines.get(name))
        for name in ("id", "file", "line", "function", "how")
    }
    columns = {name: column for name, column in told.items() if column is not None}
    if len(columns) < len(told) or len({len(column) for column in columns.values()}) != 1:
        return schema.LINES.empty()
    saved = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Int64))
    saved = saved.rename({"id": "external_id"})
    joined = ops.select("id", "external_id").join(saved, on="external_id", how="inner").sort("id")
    table = joined.select(
        "id",
        _texts_at_indices(joined["file"], _strings_of_list(lines.get("files"))),
        pl.col("line").cast(pl.Int32, strict=False),
        _texts_at_indices(joined["function"], _strings_of_list(lines.get("functions"))),
        _texts_at_indices(joined["how"], list(_LINE_EVIDENCE_BY_RECORDED_CODE)),
    )
    return table.drop_nulls()


def _texts_at_indices(indices: pl.Series, texts: list[str]) -> pl.Series:
    """Returns the text at each index in `texts`; null for an index out of range."""
    text_column = pl.Series(indices.name, texts, dtype=pl.String)
    valid = indices.to_frame().select(
        pl.when(pl.first().is_between(0, len(texts) - 1)).then(pl.first())
    )
    return text_column.gather(valid.to_series().cast(pl.UInt32)).cast(pl.Categorical)


def recorded_operator_facts(
    metadata: Mapping[str, Any], external_id: NDArray[np.int64]
) -> dict[str, Any]:
    """Returns columns for operators: overload, FLOPs, and whether each ended on another thread."""
    ops = _recorded_facts_of_section(metadata, "ops")
    found: dict[str, Any] = {}
    overload = ops.get("overload")
    if isinstance(overload, list):
        texts = [None if text is None else str(text) for text in overload]
        found["overload"] = _values_by_external_id(
            external_id, _int_list_or_none(ops.get("id")), texts, pl.Categorical()
        )
    flops = ops.get("flops")
    if isinstance(flops, dict):
        ids, values = _int_list_or_none(flops.get("id")), _int_list_or_none(flops.get("value"))
        found["flops"] = _values_by_external_id(external_id, ids, values, pl.Int64())
    asynchronous = _int_list_or_none(ops.get("async"))
    if asynchronous is not None:
        found["asynchronous"] = np.isin(external_id, np.array(asynchronous, np.int64))
    return found


def _values_by_external_id(
    external_id: NDArray[np.int64], ids: list[int] | None, values: Any, dtype: pl.DataType
) -> pl.Series:
    """Returns the value recorded for each operator's external id; null if there is none."""
    if ids is None or values is None or len(ids) != len(values):
        return pl.repeat(None, external_id.size, dtype=dtype, eager=True)
    table = pl.DataFrame({"id": pl.Series(ids, dtype=pl.Int64), "value": pl.Series(values)})
    operators = pl.DataFrame({"id": external_id})
    last_values = table.unique("id", keep="last")
    return operators.join(last_values, on="id", how="left", maintain_order="left")["value"].cast(
        dtype
    )
