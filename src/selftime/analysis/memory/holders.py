"""Who holds a block of memory: the operator and line that allocated it, and what it is for.

A block's category follows from when it was allocated and how long it lived, and from nothing else:

    before the recording   only its release was recorded
    input                  allocated in loading, or by a copy of host memory to the device
    temporary              released within the operator, loading or optimizer's step that
                           allocated it, or else in the same pass and step
    activation             allocated going forward, released after the backward pass began
    gradient               allocated going backward, released after that or alive at the step's
                           end; or allocated where autograd accumulates a parameter's gradient
    optimizer state        allocated by an optimizer's step, outlives the program's step
    parameter              allocated where torch.nn builds or moves a module, outlives two steps
    unknown                anything else
"""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.call_tree.self_times import STEPS_NAME
from selftime.analysis.grouping import grouped
from selftime.analysis.memory.blocks import BEFORE, ENDLESS
from selftime.analysis.memory.growth import step_ends
from selftime.analysis.memory.phases import (
    BACKWARD,
    FORWARD,
    LOADING,
    OPTIMIZER,
    backward_starts,
    phases,
)
from selftime.analysis.parents import callers
from selftime.analysis.sites import SITE, sites
from selftime.analysis.slice_arguments import arguments_of
from selftime.analysis.slice_filters import matches_name
from selftime.analysis.steps.step_boundaries import find_steps
from selftime.arrays import Ints
from selftime.nesting import NONE, innermost_at, nearest
from selftime.trace import Trace

_TYPES = {"stack": pl.String, **dict.fromkeys(SITE, pl.String), "line": pl.Int32}


CATEGORIES: Final = (
    "parameter",
    "gradient",
    "optimizer state",
    "activation",
    "input",
    "temporary",
    BEFORE,
    "unknown",
)
"""What a block may be for."""
_LASTING: Final = 2
"""At the ends of this many steps what belongs to a step alone is gone: the next has replaced it."""


def stack_lines(stacks: pl.Series) -> pl.DataFrame:
    """The executing lines in each distinct stack, each once, innermost first.

    They are those of the user's own functions; of a stack without any, the innermost of a library.

    Returns:
        Columns stack, file, line, function, how, and `innermost`, of which a stack has at most one.
    """
    rows = []
    for stack in stacks.drop_nulls().unique().cast(pl.String).to_list():
        frames = [found for entry in stack.split(";") if (found := names.frame(entry))]
        user = [one for one in frames if one.origin == "user"]
        chosen = user or [one for one in frames if one.origin == "library"][:1]
        sites = dict.fromkeys((one.file, one.line, one.function) for one in chosen)
        rows += [(stack, *site, "stack", place == 0) for place, site in enumerate(sites)]
    return pl.DataFrame(rows, schema={**_TYPES, "innermost": pl.Boolean}, orient="row")


def operator_labels(trace: Trace, at: pl.Series) -> pl.Series:
    """The innermost operator of each record, or the annotation where it lies in no operator.

    One that only allocates stands behind its caller; all profiler steps have one name.
    """
    ids = trace.memory["operator"].gather(at)
    parent = trace.slices["parent"].gather(ids)
    slices = trace.slices
    told = pl.DataFrame(
        {
            "name": slices["name"].gather(ids),
            "category": slices["category"].gather(parent),
            "caller": slices["name"].gather(parent),
        }
    )
    group, first = grouped(told)
    return _labels(told[pl.Series(first)].cast(pl.String)).gather(pl.Series(group))


def _labels(told: pl.DataFrame) -> pl.Series:
    """The labels of operators of these names, in slices of these categories and names."""
    name, category, caller = told
    steps = [text for text in name.unique().drop_nulls() if names.step_number(text) is not None]
    name = name.replace(dict.fromkeys(steps, STEPS_NAME))
    unique = name.drop_nulls().unique().to_list()
    bare = name.is_in([text for text in unique if names.is_bare_allocation(text)])
    called = category.is_in(list(names.OPERATORS)).fill_null(value=False) & bare.fill_null(
        value=False
    )
    return pl.select(
        pl.when(called).then(caller + pl.lit(" (") + name + pl.lit(")")).otherwise(name)
    ).to_series()


def record_modules(trace: Trace, at: pl.Series) -> pl.Series:
    """The innermost nn.Module of the operator that each record lies in; null outside of all."""
    found = arguments_of(trace, "op_args", trace.memory["operator"].gather(at), "module")
    return trace.slices["name"].gather(found["module"]).cast(pl.String)


def record_sites(trace: Trace, at: pl.Series) -> pl.DataFrame:
    """File, line, function, and how they are known, of each record; null where unknown.

    A record's own stack tells the line of its innermost frame of the user's code, else of a
    library. Else the line is that of the operator; in none, that of the innermost Python frame.
    """
    stacks = trace.memory["call_stack"].gather(at)
    ids = trace.memory["operator"].gather(at)
    category = trace.slices["category"].gather(ids)
    inside = category.is_in(list(names.OPERATORS)).fill_null(value=False)
    where = ids.cast(pl.Int64).set(~inside, None)
    loose = np.flatnonzero(~inside.to_numpy() & at.is_not_null().to_numpy())
    if loose.size and trace.frame_args.height:
        where = where.scatter(pl.Series(loose), _frames_at(trace, at.gather(loose)))
    found = sites(trace, where)
    if stacks.null_count() == stacks.len():
        return found
    innermost = stack_lines(stacks).filter("innermost")
    asked = stacks.cast(pl.String).alias("stack").to_frame()
    told = asked.join(innermost, on="stack", how="left", maintain_order="left")
    return found.with_columns(
        pl.when(told["how"].is_not_null()).then(told[name]).otherwise(name).alias(name)
        for name in SITE
    )


def _frames_at(trace: Trace, at: pl.Series) -> pl.Series:
    """The innermost Python frame on the thread of each record, then."""
    record = trace.memory.select("time", "track")[at]
    thread = trace.tracks["thread"].gather(record["track"]).to_numpy()
    time = record["time"].to_numpy()
    python = trace.tracks.filter(pl.col("kind") == "python")
    found = np.full(time.size, NONE, np.int64)
    for track, owner in python.select("id", "thread").iter_rows():
        asked = np.flatnonzero(thread == owner)
        if not asked.size:
            continue
        slices = trace.slices.select("id", "track", "parent", "start", "duration")
        frames = slices.filter(pl.col("track") == track)
        ids = frames["id"].cast(pl.Int64).to_numpy()  # signed: NONE is below zero
        place = np.full(trace.slices.height, NONE, np.int64)
        place[ids] = np.arange(ids.size)
        above = frames["parent"].cast(pl.Int64).fill_null(NONE).to_numpy()
        local = np.where(above == NONE, NONE, place[above])
        start = frames["start"].to_numpy()
        end = start + frames["duration"].fill_null(0).to_numpy()
        inner = innermost_at(start, end, local, time[asked])
        found[asked] = np.where(inner == NONE, NONE, ids[inner])
    return pl.Series(found).set(pl.Series(found == NONE), None)


def step_numbers(trace: Trace, times: pl.Series) -> pl.Series:
    """The step in which each instant lies; null where steps are not known."""
    steps = find_steps(trace).filter(pl.col("source") != "window")
    when = times.fill_null(-1).to_numpy()
    at = np.searchsorted(steps["start"].to_numpy(), when, side="right") - 1
    known = at >= 0
    known[known] &= when[known] < steps["end"].to_numpy()[at[known]]
    return steps["number"].gather(pl.Series(at).set(pl.Series(~known), None).cast(pl.UInt32))


def categories(trace: Trace, table: pl.DataFrame) -> pl.Series:
    """The category of each block, one of `CATEGORIES`; see the module's own words."""
    held = _Lives(trace, table)
    gained, lost = held.gained, held.lost
    forward, backward = gained.phase == FORWARD, gained.phase == BACKWARD
    ended_within = (held.end < ENDLESS) & (held.end <= gained.ends)
    outlives = (held.seen_released & (lost.phase != BACKWARD)) | held.outlasts_step
    rules: list[tuple[str, NDArray[np.bool_]]] = [
        (BEFORE, (table["state"] == BEFORE).to_numpy()),
        (
            "unknown",
            table["allocation"].is_null().to_numpy() | (table["state"] == "unpaired").to_numpy(),
        ),
        ("input", (gained.phase == LOADING) & ~held.lasts),
        ("temporary", ended_within),
        ("optimizer state", (gained.phase == OPTIMIZER) & held.outlasts_step),
        ("gradient", gained.accumulates | (backward & outlives)),
        ("temporary", backward & held.seen_released & (lost.phase == BACKWARD)),
        ("parameter", held.lasts & held.built & ~backward & (gained.phase != OPTIMIZER)),
        ("activation", forward & held.seen_released & held.meets_backward & ~held.lasts),
        ("temporary", forward & held.seen_released & lost.is_known & ~held.crosses),
    ]
    number = {category: place for place, category in enumerate(CATEGORIES)}
    found = np.full(table.height, number["unknown"], np.int64)
    for category, holds in reversed(rules):  # the first that holds is written last
        found[holds] = number[category]
    return pl.Series("category", CATEGORIES, dtype=pl.String).gather(pl.Series(found))


class _Lives:
    """What happened in the life of each block; arrays of shape (n,)."""

    def __init__(self, trace: Trace, table: pl.DataFrame) -> None:
        both = phases(trace, pl.concat([table["allocation"], table["release"]]))
        self.gained, self.lost = both.part(0, table.height), both.part(table.height, None)
        self.seen_released = (table["state"] == "released").to_numpy()
        begin = table["allocated"].fill_null(0).to_numpy()
        self.end: Ints = table["until"].to_numpy()
        ends = _between(step_ends(trace), begin, self.end)
        self.lasts = ends >= _LASTING
        self.outlasts_step = ends > 0
        self.meets_backward = _between(backward_starts(trace), begin, self.end) > 0
        self.crosses = self.outlasts_step | self.meets_backward
        operators = trace.memory["operator"].gather(table["allocation"])
        self.built = self.gained.builds | _built(trace, operators)


def _between(instants: Ints, begin: Ints, end: Ints) -> Ints:
    """How many of the ordered instants lie in each `[begin, end)`."""
    return np.searchsorted(instants, end) - np.searchsorted(instants, begin)


def _built(trace: Trace, operators: pl.Series) -> NDArray[np.bool_]:
    """Which operators run where torch.nn builds or moves a module."""
    wanted = matches_name(trace.slices, names.builds_module)
    if not wanted.any():
        return np.zeros(operators.len(), bool)
    frame = (
        arguments_of(trace, "op_args", operators, "frame")["frame"].cast(pl.Int64).fill_null(NONE)
    )
    return np.asarray(nearest(callers(trace), wanted, frame.to_numpy()) != NONE)
