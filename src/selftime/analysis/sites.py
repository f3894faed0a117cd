"""The source line behind any slice: of an operator, a call, a kernel, a Python frame.

Device work has the line of the call that launched it. A slice without a line has that of the
innermost slice around it that has one. Where no operator tells, the innermost Python frame of the
user's own code does, else a library's, with the line of its definition. In the backward pass the
line is mostly that of the forward operator: see `line_owners`.

Every view and rule reads its lines here, so that the rows of one line state the same amounts
wherever they are.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.grouping import grouped
from selftime.analysis.line_owners import line_owners, step_slices
from selftime.analysis.parents import callers, frames_around, parents
from selftime.analysis.slice_filters import matches_name
from selftime.arrays import Ints
from selftime.nesting import NONE, nearest
from selftime.trace import Trace

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
    found = placed(trace, ids)
    rows = pl.Series(found.number)
    return found.table.select(pl.all().gather(rows.set(rows == NONE, None).cast(pl.UInt32)))


@dataclass(frozen=True, slots=True)
class Placed:
    """The sites of some slices, each site once."""

    number: Ints
    """For each slice the row of its site, or NONE."""
    table: pl.DataFrame
    """The columns of `SITE`; no two rows are alike."""


def placed(trace: Trace, ids: pl.Series) -> Placed:
    """As `sites`: a number for each slice, and what the numbers stand for."""
    asked = ids.cast(pl.Int64).fill_null(NONE).to_numpy()
    known = _ways(trace)
    on_host = _host_slice(trace, asked)
    told = nearest(known.parent, known.number != NONE, on_host)
    number = np.where(told == NONE, NONE, known.number[told]) if known.number.size else told
    untold = np.flatnonzero((told == NONE) & (on_host != NONE))
    if untold.size and trace.frame_args.height:
        number[untold] = _defined(trace, _frame_around(trace, on_host[untold]))
    return Placed(number, known.table)


@dataclass(frozen=True, slots=True)
class _Ways:
    """How to get from a slice to its line."""

    host: Ints
    """For each slice the host slice whose line it has, or NONE: see `line_owners`."""
    parent: Ints
    number: Ints
    """For each slice the row of `table` that a saved line tells, or NONE."""
    table: pl.DataFrame
    """Every site, of saved lines and of the definitions of frames' functions."""
    frames: dict[str, tuple[str, int]]
    """By the name of a Python frame: whose it is, and the row of `table` where it is defined."""


@cached_per_trace
def _ways(trace: Trace) -> _Ways:
    work = trace.device_args["id"]
    launcher = pl.select(pl.coalesce(trace.slices["launch"][work], trace.device_args["operator"]))
    host = line_owners(trace).copy()
    by = launcher.to_series().cast(pl.Int64).fill_null(NONE).to_numpy()
    host[work.to_numpy()] = np.where(by == NONE, NONE, host[by]) if by.size else by
    group, first = grouped(trace.lines.select(SITE))
    saved = trace.lines.select(SITE)[pl.Series(first)].cast(_SCHEMA)  # type: ignore[arg-type]  # dtypes
    frames = _frames(trace)
    table = pl.concat([_with_one_way(saved), _definitions(frames.values())])
    table = _with_saved_files(trace, table)
    same, distinct = grouped(table)
    number = np.full(trace.slices.height, NONE, np.int64)
    number[trace.lines["id"].to_numpy()] = same[group]
    number[step_slices(trace)] = NONE
    rows = same[saved.height :].tolist()
    return _Ways(
        host,
        parents(trace),
        number,
        table[pl.Series(distinct)],
        {
            text: (frame.origin, row)
            for (text, frame), row in zip(frames.items(), rows, strict=True)
        },
    )


def _frames(trace: Trace) -> dict[str, names.Frame]:
    """What the names of Python frames tell, by name."""
    texts = trace.slices["name"].gather(trace.frame_args["id"]).unique().cast(pl.String).to_list()
    return {text: frame for text in texts if (frame := names.frame(text)) is not None}


def _definitions(frames: Iterable[names.Frame]) -> pl.DataFrame:
    """The sites of the functions that frames run."""
    rows: list[tuple[Any, ...]] = [
        (frame.file, frame.line if frame.function != "<module>" else None, frame.function)
        for frame in frames
    ]
    told = pl.DataFrame(rows, schema=_TOLD, orient="row")
    return told.with_columns(how=pl.when(pl.col("file").is_not_null()).then(pl.lit("definition")))


def _with_one_way(lines: pl.DataFrame) -> pl.DataFrame:
    """A line that calls and stamps tell is told as by the calls, so that it is one line."""
    how = pl.col("how")
    called = (how == "stack").any().over("file", "line", "function")
    return lines.with_columns(
        how=pl.when(called & (how == "stamp")).then(pl.lit("stack")).otherwise(how)
    )


def _with_saved_files(trace: Trace, places: pl.DataFrame) -> pl.DataFrame:
    """Files of frames as the recording saved them, so that a file has one name.

    Frames name files as seen from a folder of `sys.path`; saved lines name them whole. They are one
    if only one saved file ends so.
    """
    saved = trace.lines["file"].unique().cast(pl.String).to_list()
    whole: dict[str, set[str]] = {}
    for file in places["file"].drop_nulls().unique().to_list():
        whole[file] = {known for known in saved if known.endswith(f"/{file}")}
    names_of = {file: found.pop() for file, found in whole.items() if len(found) == 1}
    return places.with_columns(pl.col("file").replace(names_of)) if names_of else places


def _host_slice(trace: Trace, ids: Ints) -> Ints:
    """The host slices whose lines these slices have."""
    if not trace.slices.height:
        return ids
    host = _ways(trace).host
    return np.where(ids == NONE, NONE, host[ids]) if host.size else ids


def _frame_around(trace: Trace, ids: Ints) -> Ints:
    """The innermost Python frame around each host slice; a frame itself is its own."""
    around = frames_around(trace)
    holder = nearest(_ways(trace).parent, around != NONE, ids)
    return np.where(holder == NONE, NONE, around[holder])


def _defined(trace: Trace, frames: Ints) -> Ints:
    """Where the user's innermost function around each frame is defined, else a library's."""
    caller = callers(trace)
    known = _ways(trace).frames
    chosen = np.full(frames.size, NONE, np.int64)
    for origin in ("user", "library"):
        of_origin = {text for text, (its, _) in known.items() if its == origin}
        whose = matches_name(trace.slices, of_origin.__contains__)
        chosen = np.where(chosen == NONE, nearest(caller, whose, frames), chosen)
    at = np.flatnonzero(chosen != NONE)
    texts = trace.slices["name"].gather(pl.Series(chosen[at]))
    group, first = grouped(texts.to_frame())
    rows = [known[text][1] for text in texts.gather(pl.Series(first)).cast(pl.String).to_list()]
    chosen[at] = np.array(rows, np.int64)[group]
    return chosen
