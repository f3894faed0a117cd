"""Finds the operator, module and source line that allocated each memory block."""

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_tree.self_times import NAME_OF_ALL_PROFILER_STEPS
from selftime.analysis.slice_arguments import arguments_of_slices
from selftime.analysis.slice_grouping import group_and_first_row_of_rows
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.analysis.steps.step_boundaries import find_steps
from selftime.nesting import NO_SLICE, innermost_slice_at
from selftime.trace import Trace

_STACK_SITE_SCHEMA = {
    "stack": pl.String,
    **dict.fromkeys(SOURCE_SITE_COLUMNS, pl.String),
    "line": pl.Int32,
}


def source_lines_of_stacks(stacks: pl.Series) -> pl.DataFrame:
    """Returns the source lines of each distinct stack: the user's, or if none, a library's.

    Only lines of the user's own functions are included; for a stack without any, the innermost line
    of a library.

    Returns:
        Columns stack, file, line, function, how, and `innermost`, of which a stack has at most one.
    """
    rows = []
    for stack in stacks.drop_nulls().unique().cast(pl.String).to_list():
        frames = [found for entry in stack.split(";") if (found := names.parse_frame(entry))]
        user = [one for one in frames if one.origin == "user"]
        chosen = user or [one for one in frames if one.origin == "library"][:1]
        sites = dict.fromkeys((one.file, one.line, one.function) for one in chosen)
        rows += [(stack, *site, "stack", place == 0) for place, site in enumerate(sites)]
    return pl.DataFrame(rows, schema={**_STACK_SITE_SCHEMA, "innermost": pl.Boolean}, orient="row")


def operator_labels_of_memory_records(trace: Trace, record_rows: pl.Series) -> pl.Series:
    """Returns for each memory record the name of its innermost operator, else annotation.

    An operator that only allocates is replaced by its caller; all profiler steps have one name.
    """
    ids = trace.memory["operator"].gather(record_rows)
    parent = trace.slices["parent"].gather(ids)
    slices = trace.slices
    told = pl.DataFrame(
        {
            "name": slices["name"].gather(ids),
            "category": slices["category"].gather(parent),
            "caller": slices["name"].gather(parent),
        }
    )
    group, first = group_and_first_row_of_rows(told)
    return _labels_of_operator_names(told[pl.Series(first)].cast(pl.String)).gather(
        pl.Series(group)
    )


def _labels_of_operator_names(names_and_callers: pl.DataFrame) -> pl.Series:
    """Returns the display label of each operator, from its name and its caller's name."""
    name, category, caller = names_and_callers
    steps = [
        text for text in name.unique().drop_nulls() if names.profiler_step_number(text) is not None
    ]
    name = name.replace(dict.fromkeys(steps, NAME_OF_ALL_PROFILER_STEPS))
    unique = name.drop_nulls().unique().to_list()
    bare = name.is_in([text for text in unique if names.is_bare_allocation(text)])
    called = category.is_in(list(names.OPERATOR_CATEGORIES)).fill_null(
        value=False
    ) & bare.fill_null(value=False)
    return pl.select(
        pl.when(called).then(caller + pl.lit(" (") + name + pl.lit(")")).otherwise(name)
    ).to_series()


def modules_of_memory_records(trace: Trace, record_rows: pl.Series) -> pl.Series:
    """Returns the innermost nn.Module around each memory record; null if there is none."""
    found = arguments_of_slices(
        trace, "op_args", trace.memory["operator"].gather(record_rows), "module"
    )
    return trace.slices["name"].gather(found["module"]).cast(pl.String)


def source_sites_of_memory_records(trace: Trace, record_rows: pl.Series) -> pl.DataFrame:
    """Returns each memory record's file, line, function, and how these are known; else null.

    The line is that of the innermost frame of the user's code in the record's own stack, else of a
    library's. Without a stack it is the operator's; outside operators, that of the innermost Python
    frame.
    """
    stacks = trace.memory["call_stack"].gather(record_rows)
    found = source_sites_of_slices(
        trace, _operators_or_frames_of_memory_records(trace, record_rows)
    )
    if stacks.null_count() == stacks.len():
        return found
    innermost = source_lines_of_stacks(stacks).filter("innermost")
    asked = stacks.cast(pl.String).alias("stack").to_frame()
    told = asked.join(innermost, on="stack", how="left", maintain_order="left")
    return found.with_columns(
        pl.when(told["how"].is_not_null()).then(told[name]).otherwise(name).alias(name)
        for name in SOURCE_SITE_COLUMNS
    )


def innermost_slices_of_memory_records(trace: Trace, record_rows: pl.Series) -> pl.Series:
    """Returns the id of each memory record's operator, else Python frame, else annotation."""
    found = _operators_or_frames_of_memory_records(trace, record_rows)
    return found.fill_null(trace.memory["operator"].gather(record_rows).cast(pl.Int64))


def _operators_or_frames_of_memory_records(trace: Trace, record_rows: pl.Series) -> pl.Series:
    """Returns the id of each memory record's operator; outside operators of its Python frame."""
    ids = trace.memory["operator"].gather(record_rows)
    category = trace.slices["category"].gather(ids)
    inside = category.is_in(list(names.OPERATOR_CATEGORIES)).fill_null(value=False)
    where = ids.cast(pl.Int64).set(~inside, None)
    loose = np.flatnonzero(~inside.to_numpy() & record_rows.is_not_null().to_numpy())
    if loose.size and trace.frame_args.height:
        where = where.scatter(
            pl.Series(loose), _innermost_frames_of_memory_records(trace, record_rows.gather(loose))
        )
    return where


def _innermost_frames_of_memory_records(trace: Trace, record_rows: pl.Series) -> pl.Series:
    """Returns the innermost Python frame open on each memory record's thread at its time."""
    record = trace.memory.select("time", "track")[record_rows]
    thread = trace.tracks["thread"].gather(record["track"]).to_numpy()
    time = record["time"].to_numpy()
    python = trace.tracks.filter(pl.col("kind") == "python")
    found = np.full(time.size, NO_SLICE, np.int64)
    for track, owner in python.select("id", "thread").iter_rows():
        asked = np.flatnonzero(thread == owner)
        if not asked.size:
            continue
        slices = trace.slices.select("id", "track", "parent", "start", "duration")
        frames = slices.filter(pl.col("track") == track)
        ids = frames["id"].cast(pl.Int64).to_numpy()  # signed, because -1 is negative
        place = np.full(trace.slices.height, NO_SLICE, np.int64)
        place[ids] = np.arange(ids.size)
        above = frames["parent"].cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
        local = np.where(above == NO_SLICE, NO_SLICE, place[above])
        start = frames["start"].to_numpy()
        end = start + frames["duration"].fill_null(0).to_numpy()
        inner = innermost_slice_at(start, end, local, time[asked])
        found[asked] = np.where(inner == NO_SLICE, NO_SLICE, ids[inner])
    return pl.Series(found).set(pl.Series(found == NO_SLICE), None)


def step_numbers(trace: Trace, times: pl.Series) -> pl.Series:
    """Returns the number of the step that contains each instant; null where steps are unknown."""
    steps = find_steps(trace).filter(pl.col("source") != "window")
    when = times.fill_null(-1).to_numpy()
    at = np.searchsorted(steps["start"].to_numpy(), when, side="right") - 1
    known = at >= 0
    known[known] &= when[known] < steps["end"].to_numpy()[at[known]]
    return steps["number"].gather(pl.Series(at).set(pl.Series(~known), None).cast(pl.UInt32))
