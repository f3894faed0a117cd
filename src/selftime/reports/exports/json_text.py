"""Columns as the text of JSON, each different name encoded once.

Millions of events are written by columns: Polars joins what NumPy and it computed.
"""

from typing import Final

import msgspec
import polars as pl

_PER_US: Final = 1_000


def quoted(texts: pl.Series) -> pl.Series:
    """Names as JSON strings; null stays null."""
    distinct = texts.cast(pl.String).unique().drop_nulls()
    told = [msgspec.json.encode(text).decode() for text in distinct]
    return _mapped(texts, distinct, told)


def raw_or_quoted(texts: pl.Series) -> pl.Series:
    """Texts that hold a JSON list as that list, others as JSON strings."""
    distinct = texts.cast(pl.String).unique().drop_nulls()
    return _mapped(texts, distinct, [_raw_or_quoted(text) for text in distinct])


def _raw_or_quoted(text: str) -> str:
    if text.startswith("["):
        try:
            msgspec.json.decode(text.encode(), type=list)
        except (msgspec.DecodeError, RecursionError):
            pass
        else:
            return text
    return msgspec.json.encode(text).decode()


def _mapped(texts: pl.Series, distinct: pl.Series, told: list[str]) -> pl.Series:
    if not told:
        return pl.repeat(None, texts.len(), dtype=pl.String, eager=True)
    new = pl.Series(told, dtype=pl.String)
    return texts.cast(pl.String).replace_strict(distinct, new, default=None, return_dtype=pl.String)


def member(key: str, value: pl.Expr) -> pl.Expr:
    """`"key":value`; null where the value is."""
    return pl.concat_str(pl.lit(f"{msgspec.json.encode(key).decode()}:"), value)


def number(column: pl.Expr) -> pl.Expr:
    """A number as JSON; null where it is none."""
    return pl.when(column.is_finite()).then(column).cast(pl.String)


def triple(column: pl.Expr) -> pl.Expr:
    """Three integers as a JSON list; null stays null."""
    parts = [column.arr.get(at, null_on_oob=True).cast(pl.String) for at in range(3)]
    return pl.concat_str(pl.lit("["), pl.concat_str(parts, separator=","), pl.lit("]"))


def microseconds(nanoseconds: pl.Expr) -> pl.Expr:
    """Integer nanoseconds as decimal microseconds, exactly; whole ones without a fraction."""
    size, sign = nanoseconds.abs(), pl.when(nanoseconds < 0).then(pl.lit("-")).otherwise(pl.lit(""))
    rest = size % _PER_US
    fraction = pl.concat_str(pl.lit("."), rest.cast(pl.String).str.zfill(3))
    return pl.concat_str(
        sign,
        (size // _PER_US).cast(pl.String),
        pl.when(rest > 0).then(fraction).otherwise(pl.lit("")),
    )


def joined(pieces: list[pl.Expr]) -> pl.Expr:
    """The members that are known, with commas between them."""
    return pl.concat_str(pieces, separator=",", ignore_nulls=True)
