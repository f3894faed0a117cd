"""Finds the source line of any slice: an operator, a call, a kernel, or a Python frame.

Device work has the line of the call that launched it, a collective on a thread of its backend that
of the operator that issued it. A slice without a recorded line has that of
the innermost enclosing slice with one. Where no operator has one, the line is the definition of the
innermost enclosing Python function of the user's own code, else of a library's. A script's own
lines have no definition: what they call has the line of the call, where one is recorded within it.
In the backward
pass the line is mostly that of the forward operator: see `line_owner_of_every_slice`.

Every view and rule gets its lines here, so the rows of a line show the same amounts everywhere.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_lines import calls_by_users_frames, recorded_call_lines
from selftime.analysis.collective_issuers import issuers_of_host_collectives
from selftime.analysis.frame_origins import parse_frame_of_trace
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import (
    caller_of_every_frame,
    enclosing_frame_of_every_slice,
    parent_of_every_slice,
)
from selftime.analysis.slice_filters import matches_name
from selftime.analysis.slice_grouping import group_and_first_row_of_rows
from selftime.analysis.source_line_owners import line_owner_of_every_slice, profiler_step_ids
from selftime.array_types import Flags, Ints
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace

SOURCE_SITE_COLUMNS: Final = ("file", "line", "function", "how")
"""Columns that identify a source line: file, line number, function, and how the line is known."""

EVIDENCE_OF_EXECUTING_LINE: Final = ("stack", "stamp")
"""Values of the column `how` for lines that were executing, not only where a function is defined.
"""

_SOURCE_LINE_SCHEMA: Final = {"file": pl.String, "line": pl.Int32, "function": pl.String}
_SOURCE_SITE_SCHEMA: Final = {**_SOURCE_LINE_SCHEMA, "how": pl.String}


def source_sites_of_slices(trace: Trace, slice_ids: pl.Series) -> pl.DataFrame:
    """Returns each slice's file, line, function, and how the line is known; null where unknown.

    The row of a null id is all null.
    """
    found = numbered_source_sites(trace, slice_ids)
    rows = pl.Series(found.number)
    return found.table.select(pl.all().gather(rows.set(rows == NO_SLICE, None).cast(pl.UInt32)))


@dataclass(frozen=True, slots=True)
class NumberedSourceSites:
    """The source lines (file, line, function) of slices, with each distinct line stored once."""

    number: Ints
    """For each slice: the row of its source line in `table`, or -1 if there is none."""
    table: pl.DataFrame
    """The distinct source lines, with the columns of `SOURCE_SITE_COLUMNS`."""


def numbered_source_sites(trace: Trace, slice_ids: pl.Series) -> NumberedSourceSites:
    """Returns each slice's source line as a row number in a table of distinct source lines."""
    asked = slice_ids.cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    known = _source_site_lookup_tables(trace)
    on_host = _line_owner_of_slices(trace, asked)
    told = nearest_ancestor(known.parent, known.number != NO_SLICE, on_host)
    number = np.where(told == NO_SLICE, NO_SLICE, known.number[told]) if known.number.size else told
    untold = np.flatnonzero((told == NO_SLICE) & (on_host != NO_SLICE))
    if untold.size and trace.frame_args.height:
        frames = _innermost_frame_around_slices(trace, on_host[untold])
        defined = _definition_sites_around_frames(trace, frames)
        has_line = np.append(known.table["line"].is_not_null().to_numpy(), True)[defined]
        called = _line_of_calls_around_frames(trace, frames)
        number[untold] = np.where(has_line | (called == NO_SLICE), defined, called)
        told = calls_by_users_frames(trace, frames, known.users_frames)
        number[untold] = np.where(
            told == NO_SLICE, number[untold], np.append(known.row_of_call, NO_SLICE)[told]
        )
    return NumberedSourceSites(number, known.table)


@dataclass(frozen=True, slots=True)
class _SourceSiteLookupTables:
    """Arrays and tables to look up the source line of a slice."""

    host: Ints
    """For each slice: the host slice whose source line it is charged to, or -1 if there is none."""
    parent: Ints
    number: Ints
    """For each slice: the row of `table` with the slice's recorded source line, or -1 if there is
    none.
    """
    table: pl.DataFrame
    """Every distinct source line: recorded lines, and lines at which functions are defined."""
    frames: dict[str, tuple[str, int]]
    """Maps a Python frame's name to its origin (user or library) and its row in `table`."""
    row_of_call: Ints
    """For each row of `recorded_call_lines`, the row of `table` with its line."""

    @property
    def users_frames(self) -> frozenset[str]:
        """The names of the frames of the user's code."""
        return frozenset(text for text, (origin, _) in self.frames.items() if origin == "user")


@cached_per_trace
def _source_site_lookup_tables(trace: Trace) -> _SourceSiteLookupTables:
    """Returns the tables with which the source lines of a trace's slices are looked up."""
    work = trace.device_args["id"]
    launcher = pl.select(pl.coalesce(trace.slices["launch"][work], trace.device_args["operator"]))
    host = line_owner_of_every_slice(trace).copy()
    by = launcher.to_series().cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    host[work.to_numpy()] = np.where(by == NO_SLICE, NO_SLICE, host[by]) if by.size else by
    run, issuer = issuers_of_host_collectives(trace)
    host[run] = np.where(issuer == NO_SLICE, host[run], host[issuer]) if run.size else run
    group, first = group_and_first_row_of_rows(trace.lines.select(SOURCE_SITE_COLUMNS))
    saved = trace.lines.select(SOURCE_SITE_COLUMNS)[pl.Series(first)].cast(_SOURCE_SITE_SCHEMA)  # type: ignore[arg-type]  # dtypes
    frames = _parsed_python_frames(trace)
    table = pl.concat(
        [
            _lines_with_stack_evidence_preferred(saved),
            _definition_sites_of_functions(frames, _frames_begun_before_recording(trace)),
            _sites_of_recorded_calls(trace, frames),
        ]
    )
    table = _sites_with_full_file_paths(trace, table)
    same, distinct = group_and_first_row_of_rows(table)
    number = np.full(trace.slices.height, NO_SLICE, np.int64)
    number[trace.lines["id"].to_numpy()] = same[group]
    number[profiler_step_ids(trace)] = NO_SLICE
    rows = same[saved.height : saved.height + len(frames)].tolist()
    return _SourceSiteLookupTables(
        host,
        parent_of_every_slice(trace),
        number,
        table[pl.Series(distinct)],
        {
            text: (frame.origin, row)
            for (text, frame), row in zip(frames.items(), rows, strict=True)
        },
        same[saved.height + len(frames) :],
    )


def _parsed_python_frames(trace: Trace) -> dict[str, names.Frame]:
    """Returns the distinct Python frames of a trace, parsed from slice names; keys are names."""
    texts = trace.slices["name"].gather(trace.frame_args["id"]).unique().cast(pl.String).to_list()
    parsed = ((text, parse_frame_of_trace(trace, text)) for text in texts)
    return {text: frame for text, frame in parsed if frame is not None}


def _frames_begun_before_recording(trace: Trace) -> frozenset[str]:
    """Returns the names of the Python frames that ran already when the recording began.

    PyTorch gives such a frame the line that it was at, and not that of its definition: that of the
    call in which a step ends. They are those around the beginning of the first step.
    """
    steps = profiler_step_ids(trace)
    if not steps.size:
        return frozenset()
    began = int(trace.slices["start"].gather(pl.Series(steps)).to_numpy().min())
    rows = trace.slices[trace.frame_args["id"]].select("name", "start", "duration")
    is_around = (pl.col("start") < began) & (pl.col("start") + pl.col("duration") > began)
    around = rows.filter(is_around)["name"].unique()
    later = rows.filter(pl.col("start") >= began)["name"].unique()
    return frozenset(around.filter(~around.is_in(later.implode())).cast(pl.String).to_list())


def _definition_sites_of_functions(
    frames: Mapping[str, names.Frame], without_line: Container[str]
) -> pl.DataFrame:
    """Returns the file, line and name of the function that each Python frame executes.

    The line of a script, and of frames whose names are in `without_line`, is null.
    """
    rows: list[tuple[Any, ...]] = [
        (
            frame.file,
            None if frame.function == "<module>" or text in without_line else frame.line,
            frame.function,
        )
        for text, frame in frames.items()
    ]
    told = pl.DataFrame(rows, schema=_SOURCE_LINE_SCHEMA, orient="row")
    return told.with_columns(how=pl.when(pl.col("file").is_not_null()).then(pl.lit("definition")))


def _sites_of_recorded_calls(trace: Trace, frames: Mapping[str, names.Frame]) -> pl.DataFrame:
    """Returns the line of each call in `recorded_call_lines`; null where its frame is unknown."""
    rows = [
        (frame.file, line, frame.function, "stack")
        if (frame := frames.get(caller)) is not None
        else (None,) * 4
        for caller, _, line in recorded_call_lines(trace).iter_rows()
    ]
    return pl.DataFrame(rows, schema=_SOURCE_SITE_SCHEMA, orient="row")


def _lines_with_stack_evidence_preferred(lines: pl.DataFrame) -> pl.DataFrame:
    """Sets `how` to `stack` for lines known both from a stack and from a timestamp."""
    how = pl.col("how")
    called = (how == "stack").any().over("file", "line", "function")
    return lines.with_columns(
        how=pl.when(called & (how == "stamp")).then(pl.lit("stack")).otherwise(how)
    )


def _sites_with_full_file_paths(trace: Trace, site_rows: pl.DataFrame) -> pl.DataFrame:
    """Replaces relative file paths of Python frames by full paths in the recording, if unique.

    Frames name files relative to a folder of `sys.path`; recorded lines have full paths. Both are
    the same file if exactly one recorded path ends with the frame's.
    """
    saved = trace.lines["file"].unique().cast(pl.String).to_list()
    whole: dict[str, set[str]] = {}
    for file in site_rows["file"].drop_nulls().unique().to_list():
        whole[file] = {known for known in saved if known.endswith(f"/{file}")}
    names_of = {file: found.pop() for file, found in whole.items() if len(found) == 1}
    return site_rows.with_columns(pl.col("file").replace(names_of)) if names_of else site_rows


def _line_owner_of_slices(trace: Trace, slice_ids: Ints) -> Ints:
    """Returns for each slice the host slice whose source line it is charged to; -1 for none."""
    if not trace.slices.height:
        return slice_ids
    host = _source_site_lookup_tables(trace).host
    return np.where(slice_ids == NO_SLICE, NO_SLICE, host[slice_ids]) if host.size else slice_ids


def _innermost_frame_around_slices(trace: Trace, slice_ids: Ints) -> Ints:
    """Returns the id of the innermost Python frame at or around each host slice, or -1."""
    around = enclosing_frame_of_every_slice(trace)
    holder = nearest_ancestor(
        _source_site_lookup_tables(trace).parent, around != NO_SLICE, slice_ids
    )
    return np.where(holder == NO_SLICE, NO_SLICE, around[holder])


def _line_of_calls_around_frames(trace: Trace, frames: Ints) -> Ints:
    """Returns the source line number of each frame's call by a script's own lines; -1 if unknown.

    What a script calls outside of any function has no definition that would tell a line.
    """
    if not (frames != NO_SLICE).any():
        return np.full(frames.size, NO_SLICE, np.int64)
    outermost = nearest_ancestor(caller_of_every_frame(trace), _is_called_by_script(trace), frames)
    return np.append(_line_of_every_call_by_script(trace), NO_SLICE)[outermost]


@cached_per_trace
def _is_called_by_script(trace: Trace) -> Flags:
    """Flags the Python frames that the user's code without a line of definition called.

    Such is code outside of any function, and functions that ran when the recording began.
    """
    known = _source_site_lookup_tables(trace)
    lines = known.table["line"]
    scripts = {
        text
        for text, (origin, row) in known.frames.items()
        if origin == "user" and lines[row] is None
    }
    is_script = matches_name(trace.slices, scripts.__contains__)
    return np.asarray(np.append(is_script, False)[caller_of_every_frame(trace)])


@cached_per_trace
def _line_of_every_call_by_script(trace: Trace) -> Ints:
    """Returns for each frame that a script called the one line recorded within it, or else -1."""
    known = _source_site_lookup_tables(trace)
    scripts = known.table.filter(pl.col("line").is_null()).select("file", "function").unique()
    is_of_script = known.table.select(
        pl.struct("file", "function").is_in(scripts.to_struct().implode())
        & pl.col("line").is_not_null()
    ).to_series()
    is_told = np.append(is_of_script.fill_null(value=False).to_numpy(), False)[known.number]
    told = np.flatnonzero(is_told & (enclosing_frame_of_every_slice(trace) != NO_SLICE))
    frames = enclosing_frame_of_every_slice(trace)[told]
    call = nearest_ancestor(caller_of_every_frame(trace), _is_called_by_script(trace), frames)
    of_call, line = call[call != NO_SLICE], known.number[told[call != NO_SLICE]]
    first = np.full(trace.slices.height, NO_SLICE, np.int64)
    last = first.copy()
    order = np.argsort(line, kind="stable")
    first[of_call[order[::-1]]] = line[order[::-1]]
    last[of_call[order]] = line[order]
    return np.where(first == last, first, NO_SLICE)


def _definition_sites_around_frames(trace: Trace, frames: Ints) -> Ints:
    """Returns the source line number of each frame's innermost user function, else a library's."""
    caller = caller_of_every_frame(trace)
    known = _source_site_lookup_tables(trace).frames
    chosen = np.full(frames.size, NO_SLICE, np.int64)
    for origin in ("user", "library"):
        of_origin = {text for text, (its, _) in known.items() if its == origin}
        whose = matches_name(trace.slices, of_origin.__contains__)
        chosen = np.where(chosen == NO_SLICE, nearest_ancestor(caller, whose, frames), chosen)
    at = np.flatnonzero(chosen != NO_SLICE)
    texts = trace.slices["name"].gather(pl.Series(chosen[at]))
    group, first = group_and_first_row_of_rows(texts.to_frame())
    rows = [known[text][1] for text in texts.gather(pl.Series(first)).cast(pl.String).to_list()]
    chosen[at] = np.array(rows, np.int64)[group]
    return chosen
