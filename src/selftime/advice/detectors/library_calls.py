"""Finds the functions of libraries in which a function of the program spends its time."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.python_outside_torch import PythonFunctionTime
from selftime.advice.lines.line_from_source import (
    lines_that_call,
    syntax_scope_of_place,
)
from selftime.advice.rule_definition import Where, where_from_row
from selftime.analysis.frame_origins import parse_frame_of_trace
from selftime.analysis.slice_arguments import caller_of_every_frame
from selftime.analysis.source_sites import source_sites_of_slices
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace

MAX_DECORATORS: Final = 3
"""Largest number of decorators of a library's function that are looked through."""


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """Time that a function of the program spends in one function of a library that it calls."""

    name: str
    """The function with its module, such as `sklearn.metrics.roc_auc_score`."""
    share: float
    """Share of the time of the program's function, 0 to 1."""
    frame: int
    """Slice id of the call with the most time."""
    where: Where | None
    """The line that calls it; None if the source is not there, or has several."""


def library_calls_of(trace: Trace, function: PythonFunctionTime) -> tuple[LibraryCall, ...]:
    """Returns the functions of libraries that the program's function calls, longest first."""
    segments, caller = function.segments, caller_of_every_frame(trace)
    frame, owner = segments["frame"].to_numpy(), segments["owner"].to_numpy()
    owns = np.zeros(caller.size + 1, np.bool_)
    owns[owner] = True
    owns[NO_SLICE] = False
    called = np.where(frame == owner, NO_SLICE, nearest_ancestor(caller, owns[caller], frame))
    inner = _within_decorators(trace, called, frame)
    table = pl.DataFrame(
        {
            "called": called,
            "inner": inner,
            "owner": owner,
            "time": (segments["end"] - segments["start"]).to_numpy(),
        }
    )
    whole = max(int(table["time"].sum()), 1)
    longest_of_call = pl.col("inner").sort_by(pl.col("time").sum().over("called", "inner")).last()
    table = table.filter(pl.col("called") != NO_SLICE).with_columns(
        inner=longest_of_call.over("called")
    )
    texts = trace.slices["name"].gather(table["inner"].cast(pl.UInt32)).cast(pl.String)
    known = {text: _library_function(trace, text) for text in texts.unique()}
    table = table.with_columns(
        name=texts.replace_strict(known, default=None, return_dtype=pl.String)
    ).drop_nulls("name")
    found = []
    for (name,), part in table.group_by("name", maintain_order=True):
        by_call = part.group_by("inner", "owner", maintain_order=True).agg(pl.col("time").sum())
        longest = by_call.sort("time", descending=True, maintain_order=True).row(0, named=True)
        where = _line_of_call(trace, longest["owner"], str(name).rpartition(".")[2])
        share = int(part["time"].sum()) / whole
        found.append(LibraryCall(str(name), share, longest["inner"], where))
    return tuple(sorted(found, key=lambda call: -call.share))


def _within_decorators(trace: Trace, called: Ints, frame: Ints) -> Ints:
    """Returns for each call the frame within the decorators of the function; -1 for no call."""
    caller = caller_of_every_frame(trace)
    at = called
    for _ in range(MAX_DECORATORS):
        texts = trace.slices["name"].gather(_ids(at)).cast(pl.String)
        known = {text: names.is_decorating_frame(text) for text in texts.drop_nulls().unique()}
        is_around = texts.replace_strict(known, default=False, return_dtype=pl.Boolean).to_numpy()
        is_around = is_around & (at != frame)
        marked = np.zeros(caller.size + 1, np.bool_)
        marked[at[is_around]] = True
        marked[NO_SLICE] = False
        below = nearest_ancestor(caller, marked[caller], frame)
        at = np.where(is_around & (below != NO_SLICE), below, at)
    return np.asarray(at)


def _ids(slice_ids: Ints) -> pl.Series:
    ids = pl.Series(slice_ids, dtype=pl.Int64)
    return ids.set(ids == NO_SLICE, None).cast(pl.UInt32)


def _library_function(trace: Trace, frame_name: str) -> str | None:
    """Returns the function of a library with its public module; None for other frames."""
    known = parse_frame_of_trace(trace, frame_name)
    if known is None or known.origin != "library":
        return None
    return names.qualified_function(known)


def _line_of_call(trace: Trace, owner: int, function: str) -> Where | None:
    """Returns the only line of a frame's function that calls a function; None if unknown."""
    site = source_sites_of_slices(trace, pl.Series([owner], dtype=pl.UInt32)).row(0, named=True)
    where = where_from_row(site)
    scope = syntax_scope_of_place(trace, where)
    lines = [] if scope is None else lines_that_call(scope, frozenset({function}))
    return Where(where.file, lines[0], where.function, "static") if len(lines) == 1 else None
