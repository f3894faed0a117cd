"""Where the program waits for its device in every step, and what the code wanted there.

A site is one line of the program (or, where no line is known, one operator under one annotation)
and one cause. A wait has one cause, the most specific that the operators around it tell, so that no
two rules claim it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.base import Where, where
from selftime.advice.detectors.host_made import host_made
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.grouping import grouped
from selftime.analysis.idle.host_waits import host_waits
from selftime.analysis.parents import callers, frames_around, parents
from selftime.analysis.sites import SITE, sites
from selftime.analysis.slice_filters import filter_by_name, matches_name, slices_on
from selftime.analysis.steps.steady_steps import assessed_steps
from selftime.arrays import Ints
from selftime.intervals import Intervals, union
from selftime.names.waits import is_finite_test, is_scaler_frame, reads_on_host, wait_cause
from selftime.nesting import NONE, nearest
from selftime.trace import Trace

SMALL: Final = 65_536
"""Up to this many bytes a copy from pageable memory is staged at once: its cost is the wait alone.

CUDA Runtime API, "API synchronization behavior".
"""

IN_STEPS: Final = 0.5
"""A wait in no more of the steps is not of every step: what is logged now and then costs little."""

_NEAR: Final = 3
"""A test for NaN so many operators before a read is what is read: `isnan`, `any`, `item`."""

_BETWEEN: Final = "\n"

_BATCH: Final = (
    pl.when(
        (pl.col("cause") == "small_upload")
        & pl.col("file").is_not_null()
        & (pl.col("cause") == "upload").any().over("file", "line")
    )
    .then(pl.lit("upload"))
    .otherwise("cause")
)
"""Small copies on the line of a large one, such as labels beside images, are of the same batch."""


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """One line that waits, in the steps that count."""

    cause: str
    """As `names.waits` has it; these are kinds of `upload`: `small_upload`, `blocking_upload`, and
    `made_on_host`, which waits to send what the device could have made itself."""
    operators: tuple[str, ...]
    """Around the wait, the innermost first."""
    annotation: str | None
    """The innermost annotation around it that is not a step."""
    where: Where
    calls: Ints
    """The calls that wait."""
    held: Intervals
    """When they do."""
    around: Intervals
    """When the outermost operators around them run."""
    per_step: float
    wait_ns: float
    """Mean over the steps that count."""
    bytes_per_step: float
    is_regular: bool
    """It waits in most of the steps."""

    @property
    def name(self) -> str:
        """The operator that the program calls there, if any."""
        return self.operators[-1] if self.operators else ""


@cached_per_trace
def sites_of_waits(trace: Trace) -> tuple[Site, ...]:
    """Every site of the steps that count, the longest waits first."""
    steps = assessed_steps(trace)
    held = _in_steps(host_waits(trace), steps)
    if not held.height:
        return ()
    told = _with_cause(trace, held)
    number = int(steps["counted"].sum())
    groups = told.group_by("cause", "file", "line", "key", maintain_order=True)
    found = [_site(rows, number) for _, rows in groups]
    return tuple(sorted(found, key=lambda site: (-site.wait_ns, str(site.where), site.cause)))


@cached_per_trace
def lines_that_would_wait(trace: Trace) -> dict[str, tuple[Where, ...]]:
    """For a program without a device: the lines by cause that read tensors in every step.

    On a device they would wait. What optimizers and loaders read is on the host anywhere.
    """
    steps = assessed_steps(trace)
    ops = filter_by_name(_operators(trace), reads_on_host)
    rows = _in_steps(
        ops.select(
            "id",
            pl.col("id").alias("operator"),
            pl.lit("copy_to_host").alias("kind"),
            pl.col("track").alias("thread"),
            "start",
            end=pl.col("start") + pl.col("duration"),
            wait=pl.lit(0, pl.Int64),
        ),
        steps,
    )
    if not rows.height:
        return {}
    told = _with_cause(trace, rows).filter(~pl.col("of_library") & pl.col("file").is_not_null())
    lines: dict[str, list[Where]] = {}
    number = int(steps["counted"].sum())
    for (cause, *_), same in told.group_by("cause", "file", "line", maintain_order=True):
        if same["step"].n_unique() > IN_STEPS * number:
            lines.setdefault(str(cause), []).append(where(same.row(0, named=True)))
    return {cause: tuple(places) for cause, places in lines.items()}


def _in_steps(held: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Those that begin in a step that counts, with its place."""
    begun = held["start"].to_numpy()
    at = np.searchsorted(steps["start"].to_numpy(), begun, side="right") - 1
    place = np.maximum(at, 0)
    if not steps.height:
        return held.clear().with_columns(step=pl.lit(0, pl.Int64))
    inside = (at >= 0) & (begun < steps["end"].to_numpy()[place])
    inside &= steps["counted"].to_numpy()[place]
    return held.with_columns(step=pl.Series(at, dtype=pl.Int64)).filter(pl.Series(inside))


def _operators(trace: Trace) -> pl.DataFrame:
    host = slices_on(trace, "host", ended=True)
    ops = host.filter(pl.col("category").is_in(list(names.OPERATORS)))
    return filter_by_name(ops, names.is_dispatched)


def _with_cause(trace: Trace, held: pl.DataFrame) -> pl.DataFrame:
    """Waits with cause, chain of operators, the outermost of them, annotation and site."""
    told = _chains(trace, held).join(
        _copied(trace), on="operator", how="left", nulls_equal=False, maintain_order="left"
    )
    told = told.with_columns(cause=_causes(trace, told)).filter(pl.col("cause").is_not_null())
    site = sites(trace, told["id"])
    told = told.with_columns(*(site[column] for column in SITE)).with_columns(cause=_BATCH)
    unknown = pl.concat_str("chain", pl.col("annotation").fill_null(""), separator=_BETWEEN)
    return told.with_columns(key=pl.when(pl.col("file").is_null()).then(unknown))


def _copied(trace: Trace) -> pl.DataFrame:
    """What each operator copied: bytes, and one of the copies."""
    category = trace.slices["category"].gather(trace.device_args["id"]).cast(pl.String)
    moved = trace.device_args.filter(category == "gpu_memcpy")
    return (
        moved.filter(pl.col("operator").is_not_null())
        .group_by("operator")
        .agg(pl.col("bytes").sum(), pl.col("id").first().alias("copy"))
    )


def _chains(trace: Trace, held: pl.DataFrame) -> pl.DataFrame:
    """What stands around each wait.

    Columns: chain (names of operators), outer (the slice of the outermost, else NONE), outer_start,
    outer_end, annotation, of_library, scaled (under the gradient scaler), logged (under a print).
    """
    parent = parents(trace)
    at = held["id"].cast(pl.Int64).to_numpy().copy()
    levels: list[pl.DataFrame] = []
    while (open_ := np.flatnonzero(at != NONE)).size:
        levels.append(pl.DataFrame({"row": open_, "slice": at[open_]}))
        at[open_] = parent[at[open_]]
    found = pl.concat(levels).sort("row", maintain_order=True)
    ids = found["slice"].cast(pl.UInt32)
    text = trace.slices["name"].gather(ids)
    category = trace.slices["category"].gather(ids).cast(pl.String)
    operator = category.is_in(list(names.OPERATORS)) & _means(text, names.is_dispatched)
    noted = category.is_in(list(names.ANNOTATIONS)) & ~_means(text, _is_step)
    found = found.with_columns(
        name=text.cast(pl.String),
        is_operator=operator,
        noted=noted,
        library=_means(text, _is_of_library),
    )
    chains = found.group_by("row", maintain_order=True).agg(
        pl.col("name").filter("is_operator").str.join(_BETWEEN).alias("chain"),
        pl.col("slice").filter("is_operator").last().alias("outer"),
        pl.col("name").filter("noted").first().alias("annotation"),
        pl.col("library").any().alias("of_library"),
    )
    told = pl.concat([held, chains.drop("row")], how="horizontal")
    outer = told["outer"].fill_null(NONE).to_numpy()
    begin = trace.slices["start"].to_numpy()[np.maximum(outer, 0)]
    lasts = trace.slices["duration"].fill_null(0).to_numpy()[np.maximum(outer, 0)]
    return told.with_columns(
        outer=pl.Series(outer),
        outer_start=pl.Series(begin),
        outer_end=pl.Series(begin + lasts),
        scaled=_under_frame(trace, told["id"], outer, is_scaler_frame),
        logged=_under_frame(trace, told["id"], outer, names.is_logging),
    )


def _under_frame(
    trace: Trace, calls: pl.Series, outer: Ints, test: Callable[[str], bool]
) -> pl.Series:
    """Whether a Python frame of that kind is around the operator, or around a call without one."""
    at = np.where(outer == NONE, calls.cast(pl.Int64).to_numpy(), outer)
    wanted = matches_name(trace.slices, test)
    return pl.Series(nearest(callers(trace), wanted, frames_around(trace)[at]) != NONE)


def _means(text: pl.Series, test: Callable[[str], bool]) -> pl.Series:
    """Whether each text satisfies a test; each distinct one is asked once."""
    group, first = grouped(text.to_frame())
    answers = [test(one) for one in text.gather(pl.Series(first)).cast(pl.String).to_list()]
    return pl.Series(answers, dtype=pl.Boolean).gather(pl.Series(group))


def _is_step(name: str) -> bool:
    return names.step_number(name) is not None


def _is_of_library(name: str) -> bool:
    """What reads scalars that are on the host anywhere, or waits on purpose."""
    return names.is_data_loading(name) or names.is_optimizer(name)


def _causes(trace: Trace, told: pl.DataFrame) -> pl.Series:
    distinct = told.select("kind", "chain").unique()
    rows = [
        (kind, chain, wait_cause(kind, chain.split(_BETWEEN) if chain else []))
        for kind, chain in distinct.iter_rows()
    ]
    schema = {"kind": pl.String, "chain": pl.String, "cause": pl.String}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    cause = told.join(table, on=["kind", "chain"], how="left", maintain_order="left")["cause"]
    finite = told["scaled"] | _follows_test(trace, told)
    reads = cause.is_in(["scalar_read", "branch_on_tensor"])
    small = (told["bytes"] <= SMALL).fill_null(value=False) & (cause == "upload")
    pinned = _is_pinned(trace, told["copy"]) & (cause == "upload")
    made = [copies.copies for copies in host_made(trace)]
    uploads = cause == "upload"
    hosted = told["copy"].is_in(pl.concat(made).implode()) & uploads if made else uploads & False
    frame = pl.DataFrame({"c": cause, "f": finite & reads, "h": hosted, "s": small, "p": pinned})
    others = _means(told["chain"], _is_collective) | told["logged"]
    return frame.select(
        pl.when(others)
        .then(None)
        .when("f")
        .then(pl.lit("finite_check"))
        .when("h")
        .then(pl.lit("made_on_host"))
        .when("s")
        .then(pl.lit("small_upload"))
        .when("p")
        .then(pl.lit("blocking_upload"))
        .otherwise("c")
    ).to_series()


def _is_collective(chain: str) -> bool:
    return any(names.is_collective_call(name) for name in chain.split(_BETWEEN))


def _is_pinned(trace: Trace, copies: pl.Series) -> pl.Series:
    def pinned(name: str) -> bool:
        return names.copy_of(name).host_memory == "pinned"

    text = trace.slices["name"].gather(copies)
    known = text.is_not_null()
    return _means(text.cast(pl.String).fill_null(""), pinned) & known


def _follows_test(trace: Trace, told: pl.DataFrame) -> pl.Series:
    """Whether a test for NaN is among the last operators of the thread before the wait's own."""
    ops = _operators(trace)
    tests = filter_by_name(ops, is_finite_test)
    if not tests.height:
        return pl.repeat(value=False, n=told.height, dtype=pl.Boolean, eager=True)
    is_operator = np.zeros(trace.slices.height, bool)
    is_operator[ops["id"].to_numpy()] = True
    parent = parents(trace)
    top = nearest(parent, is_operator, parent[ops["id"].to_numpy()]) == NONE
    found = np.zeros(told.height, bool)
    own = trace.slices["track"].gather(told["id"]).to_numpy()
    outer = told["outer"].to_numpy()
    begun = trace.slices["start"].to_numpy()[np.maximum(outer, 0)]
    for track in np.unique(own):
        mine = ops.filter(pl.Series(top)).filter(pl.col("track") == track)
        starts = np.sort(mine["start"].to_numpy())
        ends = np.sort(tests.filter(pl.col("track") == track)["start"].to_numpy())
        at = np.flatnonzero((own == track) & (outer != NONE))
        last = np.searchsorted(ends, begun[at], side="left") - 1
        known = at[last >= 0]
        begin = ends[last[last >= 0]]
        between = np.searchsorted(starts, begun[known]) - np.searchsorted(starts, begin, "right")
        found[known] = between <= _NEAR
    return pl.Series(found)


def _site(rows: pl.DataFrame, steps: int) -> Site:
    first: dict[str, Any] = rows.row(0, named=True)
    chain: str = first["chain"]
    begin, end = rows["start"].to_numpy(), rows["end"].to_numpy()
    held = union(begin, end)
    return Site(
        cause=first["cause"],
        operators=tuple(chain.split(_BETWEEN)) if chain else (),
        annotation=first["annotation"],
        where=where(first),
        calls=rows["id"].cast(pl.Int64).to_numpy(),
        held=held,
        around=_around(rows, held),
        per_step=rows.height / max(steps, 1),
        wait_ns=sum(rows["wait"].to_list()) / max(steps, 1),
        bytes_per_step=sum(rows["bytes"].drop_nulls().to_list()) / max(steps, 1),
        is_regular=rows["step"].n_unique() > IN_STEPS * steps,
    )


def _around(rows: pl.DataFrame, held: Intervals) -> Intervals:
    known = rows.filter(pl.col("outer") != NONE)
    if known.height < rows.height:
        return held
    return union(known["outer_start"].to_numpy(), known["outer_end"].to_numpy())
