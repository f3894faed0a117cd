"""The source line behind any slice: of an operator, a call, a kernel, a Python frame.

A kernel has the line of the operator that launched it, a slice without a line that of the innermost
slice around it that has one. Where no operator tells, the innermost Python frame of the user's own
code does, else a library's, with the line of its definition.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.nesting import NONE, nearest
from selftime.trace import Trace
from selftime.views.accounts.kept import kept

__all__ = ["EXECUTING", "SITE", "sites"]

Ints = NDArray[np.int64]

SITE: Final = ("file", "line", "function", "how")
"""The columns of a site."""

EXECUTING: Final = ("stack", "stamp")
"""How a line is known that was executing itself."""

_TOLD: Final = {"file": pl.String, "line": pl.Int32, "function": pl.String}
_SCHEMA: Final = {**_TOLD, "how": pl.String}


def sites(trace: Trace, ids: pl.Series) -> pl.DataFrame:
    """File, line, function and how they are known, one row for each slice; null where unknown.

    A null among `ids` has no site.
    """
    asked = ids.cast(pl.Int64).fill_null(NONE).to_numpy()
    known = _ways(trace)
    on_host = _host_slice(trace, asked)
    told = nearest(known.parent, known.row != NONE, on_host)
    row = pl.Series(np.where(told == NONE, NONE, known.row[told]) if known.row.size else told)
    place = row.set(row == NONE, None).cast(pl.UInt32)
    lines = pl.DataFrame(
        [known.lines[name].gather(place).cast(kind) for name, kind in _SCHEMA.items()]
    )
    untold = np.flatnonzero((told == NONE) & (on_host != NONE))
    if not untold.size or not trace.frame_args.height:
        return lines
    framed = _defined(trace, _frame_around(trace, on_host[untold]))
    place = pl.Series(untold)
    return lines.with_columns(lines[name].scatter(place, framed[name]) for name in SITE)


@dataclass(frozen=True, slots=True)
class _Ways:
    """How to get from a slice to its line."""

    host: Ints
    """For each slice itself; for device work the operator that launched it, else the call."""
    parent: Ints
    row: Ints
    """For each slice its row in `lines`, or NONE."""
    lines: pl.DataFrame


@kept
def _ways(trace: Trace) -> _Ways:
    launch = trace.slices["launch"].cast(pl.Int64).fill_null(NONE).to_numpy()
    operator = _column(trace, trace.device_args, "operator")
    launcher = np.where(operator == NONE, launch, operator)
    is_device = _marked(trace, trace.device_args["id"])
    row = np.full(trace.slices.height, NONE, np.int64)
    row[trace.lines["id"].to_numpy()] = np.arange(trace.lines.height)
    return _Ways(
        np.where(is_device, launcher, np.arange(launcher.size)),
        trace.slices["parent"].cast(pl.Int64).fill_null(NONE).to_numpy(),
        row,
        _with_one_way(trace.lines),
    )


def _with_one_way(lines: pl.DataFrame) -> pl.DataFrame:
    """A line that calls and stamps tell is told as by the calls, so that it is one line."""
    if not (lines["how"].cast(pl.String) == "stamp").any():
        return lines
    how = pl.col("how").cast(pl.String)
    called = (how == "stack").any().over("file", "line", "function")
    return lines.with_columns(
        how=pl.when(called & (how == "stamp")).then(pl.lit("stack")).otherwise(how)
    )


def _marked(trace: Trace, ids: pl.Series) -> NDArray[np.bool_]:
    found = np.zeros(trace.slices.height, bool)
    found[ids.to_numpy()] = True
    return found


def _column(trace: Trace, table: pl.DataFrame, column: str) -> Ints:
    """A column of slice ids, by slice; NONE where the table has none."""
    found = np.full(trace.slices.height, NONE, np.int64)
    told = table.filter(pl.col(column).is_not_null())
    found[told["id"].to_numpy()] = told[column].cast(pl.Int64).to_numpy()
    return found


def _host_slice(trace: Trace, ids: Ints) -> Ints:
    """The slices themselves; for device work the operator that launched it, else the call."""
    if not trace.slices.height:
        return ids
    host = _ways(trace).host
    return np.where(ids == NONE, NONE, host[ids]) if host.size else ids


def _frame_around(trace: Trace, ids: Ints) -> Ints:
    """The innermost Python frame around each host slice; a frame itself is its own."""
    around = _column(trace, trace.op_args.select("id", "frame"), "frame")
    call = _column(trace, trace.call_args.select("id", "frame"), "frame")
    around = np.where(around == NONE, call, around)
    frames = _marked(trace, trace.frame_args["id"])
    around = np.where(frames, np.arange(around.size), around)
    holder = nearest(_ways(trace).parent, around != NONE, ids)
    return np.where(holder == NONE, NONE, around[holder])


def _defined(trace: Trace, frames: Ints) -> pl.DataFrame:
    """Where the user's innermost function around each frame is defined, else a library's."""
    caller = _column(trace, trace.frame_args, "caller")
    ids = trace.frame_args["id"]
    texts = trace.slices["name"].gather(ids)
    parsed = {text: names.frame(text) for text in texts.unique().cast(pl.String).to_list()}
    chosen = np.full(frames.size, NONE, np.int64)
    for origin in ("user", "library"):
        of_origin = [text for text, frame in parsed.items() if frame and frame.origin == origin]
        whose = _marked(trace, ids.filter(texts.cast(pl.String).is_in(of_origin)))
        chosen = np.where(chosen == NONE, nearest(caller, whose, frames), chosen)
    return _read(trace, chosen, parsed)


def _read(trace: Trace, frames: Ints, parsed: dict[str, names.Frame | None]) -> pl.DataFrame:
    place = pl.Series(frames).cast(pl.Int64)
    texts = trace.slices["name"].gather(place.set(place == NONE, None).cast(pl.UInt32))
    rows: list[tuple[Any, ...]] = [
        (text, frame.file, frame.line if frame.function != "<module>" else None, frame.function)
        for text, frame in parsed.items()
        if frame
    ]
    answers = pl.DataFrame(rows, schema={"name": pl.String, **_TOLD}, orient="row")
    return (
        texts.cast(pl.String)
        .alias("name")
        .to_frame()
        .join(answers, on="name", how="left", maintain_order="left")
        .select(*_TOLD, how=pl.when(pl.col("file").is_not_null()).then(pl.lit("definition")))
    )
