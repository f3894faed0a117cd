"""Operators under their names: an overload that was written behind one becomes a column.

A recording with `capture_overload_names` holds `aten::select.int` where others hold `aten::select`.
It is the same operator, and everything that looks for it asks for the second.
"""

import polars as pl

from selftime.names import OPERATORS, operator_and_overload


def apart(slices: pl.DataFrame, ops: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The slices with plain names, and the operators' arguments with the overloads."""
    category = slices["category"].gather(ops["id"])
    operator = category.is_in(pl.Series(OPERATORS, dtype=category.dtype).implode())
    named = slices["name"].gather(ops["id"])
    distinct = named.filter(operator).unique()
    split = [(text, *operator_and_overload(text)) for text in distinct.cast(pl.String).to_list()]
    told = [row for row in split if row[2] is not None]
    if not told:
        return slices, ops
    known = pl.DataFrame(told, schema=["written", "plain", "overload"], orient="row")
    joined = (
        named.cast(pl.String)
        .to_frame("written")
        .join(known, on="written", how="left", maintain_order="left")
    )
    at = (joined["plain"].is_not_null() & operator).arg_true()
    plain = joined["plain"].gather(at).cast(slices["name"].dtype)
    name = slices["name"].clone().scatter(ops["id"].gather(at), plain)
    behind = joined["overload"].cast(ops["overload"].dtype)
    overload = ops["overload"].fill_null(behind.set(~operator, None))
    return slices.with_columns(name), ops.with_columns(overload)
