"""Finds the lines that call a function through which the calls of many lines pass.

A function of a backend, a wrapper of one operator, or a tensor's `__torch_function__` does little
itself: its line says nothing of what to change, and the lines that call it do.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import outermost_operators
from selftime.advice.detectors.counted_steps import slices_in_counted_steps
from selftime.advice.detectors.python_outside_torch import frames_of_program
from selftime.advice.lines.line_from_source import (
    is_frame_of_place,
    lines_that_call,
    syntax_scope_of_place,
)
from selftime.advice.rule_outcomes import Evidence, Finding, Where, where_from_row
from selftime.analysis.main_thread import slices_on_main_thread
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import caller_of_every_frame
from selftime.analysis.slice_filters import slices_on
from selftime.analysis.source_sites import source_sites_of_slices
from selftime.array_types import Flags, Ints
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace

MAX_OPERATORS_OF_WRAPPER: Final = 2
"""Largest number of operators that a function which only passes calls on runs in most calls."""

MIN_CALLERS_OF_WRAPPER: Final = 3
"""Smallest number of lines that call such a function for them to be told."""


@dataclass(frozen=True, slots=True)
class FunctionCallers:
    """The lines that call a function through which calls pass."""

    count: int
    """Number of lines that call it, of those that are known to differ."""
    most: Where
    """The caller with most of the function's time: its line, if only one of it calls."""
    share: float
    """Share of the function's time in calls by `most`, 0 to 1."""


def with_callers(trace: Trace, finding: Finding) -> Finding:
    """Returns the finding with the line that calls its function most, where calls only pass."""
    found = callers_of_place(trace, finding.where)
    if found is None:
        return finding
    told = (
        Evidence(f"share of its time in calls at {found.most}", found.share, "ratio"),
        Evidence("lines that call the function", float(found.count), "count"),
    )
    return replace(finding, evidence=(*finding.evidence, *told))


def callers_of_place(trace: Trace, place: Where) -> FunctionCallers | None:
    """Returns the callers of the function at a line; None if calls of few lines pass there."""
    known, key = _callers_by_line(trace), (place.file, place.line, place.function)
    if key not in known:
        known[key] = _callers_of_function(trace, place)
    return known[key]


@cached_per_trace
def _callers_by_line(
    _trace: Trace,
) -> dict[tuple[str | None, int | None, str | None], FunctionCallers | None]:
    """Returns a cache that maps (file, line, function) to the callers."""
    return {}


def _callers_of_function(trace: Trace, place: Where) -> FunctionCallers | None:
    calls = _calls(trace)
    if place.function is None or place.file is None or calls is None:
        return None
    own = _function_at(calls, place)
    if own is None:
        return None
    table = calls.table.filter(pl.col("function") == own)
    if not calls.is_small[table["id"].to_numpy()].any():
        return None
    at, callee = _through_wrappers(calls, table["id"].to_numpy())
    table = table.with_columns(at=at, callee=callee).filter(pl.col("at") != NO_SLICE)
    table = table.with_columns(caller=_names_of(trace, table["at"]))
    sites = list(_sites(trace, table))
    count = sum(max(len(lines), 1) for _, lines, _ in sites)
    if count < MIN_CALLERS_OF_WRAPPER:
        return None
    where, lines, spent = max(sites, key=lambda site: site[2])
    if len(lines) == 1:
        where = replace(where, line=lines[0], how="static")
    return FunctionCallers(count, where, spent / max(sum(time for *_, time in sites), 1))


@dataclass(frozen=True, slots=True, eq=False)
class _Calls:
    """The calls of the program's functions in the counted steps."""

    table: pl.DataFrame
    """id of the frame; function, its name; duration in ns; operators, the number of those that it
    runs, with what it calls."""
    functions: tuple[str, ...]
    caller: Ints
    """For each slice: the frame of the program that called it, or -1."""
    is_small: Flags
    """For each slice: whether it is a call of a function that mostly runs few operators."""
    is_wrapper: Flags
    """For each slice: whether it is a call of such a function that several functions call."""


@cached_per_trace
def _calls(trace: Trace) -> _Calls | None:
    """Returns the calls of the program's functions; None without frames."""
    frames = slices_in_counted_steps(trace, slices_on(trace, "python"))
    frames = slices_on_main_thread(trace, frames).filter(pl.col("duration").is_not_null())
    is_own = frames_of_program(trace)
    frames = frames.filter(pl.Series(is_own[frames["id"].to_numpy()], dtype=pl.Boolean))
    if not frames.height:
        return None
    work = np.sort(outermost_operators(trace)["start"].to_numpy())
    begin = frames["start"].to_numpy()
    end = begin + frames["duration"].to_numpy()
    table = frames.select("id", "duration", function=pl.col("name").cast(pl.String)).with_columns(
        operators=np.searchsorted(work, end) - np.searchsorted(work, begin)
    )
    caller = caller_of_every_frame(trace)
    caller = nearest_ancestor(caller, is_own, caller)
    ids = table["id"].to_numpy()
    told = table.with_columns(caller=_names_of(trace, pl.Series(caller[ids])))
    is_small = (pl.col("operators").median().over("function")).is_between(
        1, MAX_OPERATORS_OF_WRAPPER
    )
    is_called_by_several = pl.col("caller").n_unique().over("function") > 1
    small, wrapper = np.zeros((2, trace.slices.height + 1), np.bool_)
    small[ids] = told.select(is_small).to_series().to_numpy()
    wrapper[ids] = told.select(is_small & is_called_by_several).to_series().to_numpy()
    functions = tuple(table["function"].unique(maintain_order=True))
    return _Calls(table, functions, caller, small, wrapper)


def _names_of(trace: Trace, slice_ids: pl.Series) -> pl.Series:
    ids = slice_ids.cast(pl.Int64)
    ids = ids.set(ids == NO_SLICE, None).cast(pl.UInt32)
    return trace.slices["name"].gather(ids).cast(pl.String)


def _function_at(calls: _Calls, place: Where) -> str | None:
    """Returns the function around a line: of those of its name, the last that begins before it."""
    begins = {
        known.line: text
        for text in calls.functions
        if (known := names.parse_frame(text)) is not None and is_frame_of_place(known, place)
    }
    before = [line for line in begins if place.line is not None and line <= place.line]
    return begins[max(before)] if before else None


def _through_wrappers(calls: _Calls, ids: Ints) -> tuple[Ints, Ints]:
    """Returns the nearest frame around each call that does not only pass it on, and its callee."""
    callee, at = ids, calls.caller[ids]
    while True:
        above = np.append(calls.caller, NO_SLICE)[at]
        goes_on = calls.is_wrapper[at] & (above != NO_SLICE)
        if not goes_on.any():
            return at, callee
        callee, at = np.where(goes_on, at, callee), np.where(goes_on, above, at)


def _sites(trace: Trace, table: pl.DataFrame) -> Iterator[tuple[Where, list[int], int]]:
    """Yields (caller, its lines with a call, time in ns) of each function that calls."""
    for _, part in table.group_by("caller", maintain_order=True):
        frame = pl.Series([int(part["at"][0])], dtype=pl.UInt32)
        where = where_from_row(source_sites_of_slices(trace, frame).row(0, named=True))
        called = frozenset(
            known.function
            for text in _names_of(trace, part["callee"]).unique()
            if text is not None and (known := names.parse_frame(text)) is not None
        )
        scope = syntax_scope_of_place(trace, where)
        lines = [] if scope is None else lines_that_call(scope, called)
        yield where, lines, int(part["duration"].sum())
