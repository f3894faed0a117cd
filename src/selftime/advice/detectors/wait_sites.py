"""Finds the source lines at which the program waits for its device in every step, and why.

A site is one line of the program (or, where no line is known, one operator under one annotation)
and one cause. A wait has one cause, the most specific that the operators around it tell: no two
rules report it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.host_made_tensors import lines_with_host_made_tensors
from selftime.advice.rule_definition import Where, where_from_row
from selftime.analysis.idle.host_waits import host_waits
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import (
    caller_of_every_frame,
    enclosing_frame_of_every_slice,
    parent_of_every_slice,
)
from selftime.analysis.slice_filters import filter_by_name, matches_name, slices_on
from selftime.analysis.slice_grouping import group_and_first_row_of_rows
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.array_types import Ints
from selftime.intervals import Intervals, union
from selftime.names.wait_causes import (
    is_finite_test,
    is_gradient_scaler_frame,
    reads_tensor_on_host,
    wait_cause,
)
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace

MAX_STAGED_COPY_BYTES: Final = 65_536
"""Largest copy from pageable memory, in bytes, that CUDA buffers in one go; its only cost is the
wait.

CUDA Runtime API, "API synchronization behavior".
"""

MIN_WAITING_STEPS_SHARE: Final = 0.5
"""Smallest share of the measured steps in which a line must wait to count as waiting regularly."""

_MAX_OPERATORS_FROM_NAN_TEST_TO_READ: Final = 3
"""Largest number of operators, counting both, from a NaN test to the read of its result: `isnan`,
`any`, `item`."""

_OPERATOR_CHAIN_SEPARATOR: Final = "\n"
"""Separator between operator names in a text that lists the operators around a wait."""

_SMALL_COPY_CAUSE_EXPRESSION: Final = (
    pl.when(
        (pl.col("cause") == "small_upload")
        & pl.col("file").is_not_null()
        & (pl.col("cause") == "upload").any().over("file", "line")
    )
    .then(pl.lit("upload"))
    .otherwise("cause")
)
"""Expression for the cause of a copy: a small copy gets the cause of a large copy on the same line,
such as labels beside images."""


@dataclass(frozen=True, slots=True, eq=False)
class WaitSite:
    """A source line that waits for the device, and its waits in the measured steps."""

    cause: str
    """Why the line waits, as in `names.waits`, or the kind of copy to the device: `small_upload`,
    `blocking_upload`, or `made_on_host` for a tensor that the device could have made itself."""
    operators: tuple[str, ...]
    """Names of the nested operators around the wait, innermost first."""
    annotation: str | None
    """Name of the innermost annotation around the wait, steps excepted; None if there is none."""
    where: Where
    call_ids: Ints
    """Slice ids of the runtime calls that wait."""
    wait_intervals: Intervals
    """Intervals in which the host waits in these calls."""
    operator_intervals: Intervals
    """Intervals of the outermost operators around these calls."""
    waits_per_step: float
    """Mean number of waits per measured step."""
    wait_ns_per_step: float
    """Mean waiting time per measured step, in ns."""
    bytes_per_step: float
    """Bytes that copies at this line move per measured step."""
    is_regular: bool
    """Whether the line waits in at least half of the measured steps."""

    @property
    def name(self) -> str:
        """The name of the operator that the program calls at the line; empty if there is none."""
        return self.operators[-1] if self.operators else ""


@cached_per_trace
def wait_sites(trace: Trace) -> tuple[WaitSite, ...]:
    """Returns every line that waits for the device in the measured steps, longest waits first."""
    steps = steps_with_counted_flags(trace)
    held = _waits_in_counted_steps(host_waits(trace), steps)
    if not held.height:
        return ()
    told = _waits_with_cause_and_line(trace, held)
    number = int(steps["counted"].sum())
    groups = told.group_by("cause", "file", "line", "key", maintain_order=True)
    found = [_wait_site_of_waits(rows, number) for _, rows in groups]
    return tuple(
        sorted(found, key=lambda site: (-site.wait_ns_per_step, str(site.where), site.cause))
    )


@cached_per_trace
def lines_that_would_wait_for_device(trace: Trace) -> dict[str, tuple[Where, ...]]:
    """Returns, by cause, a CPU program's lines that would wait for a device in most steps.

    With a device they would wait. Reads of optimizers and loaders are of host values anywhere.
    """
    steps = steps_with_counted_flags(trace)
    ops = filter_by_name(_dispatched_host_operators(trace), reads_tensor_on_host)
    rows = _waits_in_counted_steps(
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
    told = _waits_with_cause_and_line(trace, rows).filter(
        ~pl.col("of_library") & pl.col("file").is_not_null()
    )
    lines: dict[str, list[Where]] = {}
    number = int(steps["counted"].sum())
    for (cause, *_), same in told.group_by("cause", "file", "line", maintain_order=True):
        if same["step"].n_unique() > MIN_WAITING_STEPS_SHARE * number:
            lines.setdefault(str(cause), []).append(where_from_row(same.row(0, named=True)))
    return {cause: tuple(places) for cause, places in lines.items()}


def _waits_in_counted_steps(waits: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Returns the waits that begin in a measured step, with the step's index in column `step`."""
    begun = waits["start"].to_numpy()
    at = np.searchsorted(steps["start"].to_numpy(), begun, side="right") - 1
    place = np.maximum(at, 0)
    if not steps.height:
        return waits.clear().with_columns(step=pl.lit(0, pl.Int64))
    inside = (at >= 0) & (begun < steps["end"].to_numpy()[place])
    inside &= steps["counted"].to_numpy()[place]
    return waits.with_columns(step=pl.Series(at, dtype=pl.Int64)).filter(pl.Series(inside))


def _dispatched_host_operators(trace: Trace) -> pl.DataFrame:
    """Returns the host operators that PyTorch's dispatcher called."""
    host = slices_on(trace, "host", ended=True)
    ops = host.filter(pl.col("category").is_in(list(names.OPERATOR_CATEGORIES)))
    return filter_by_name(ops, names.is_dispatched_operator)


def _waits_with_cause_and_line(trace: Trace, waits: pl.DataFrame) -> pl.DataFrame:
    """Returns each wait for the device, with its cause, operators, annotation and source line."""
    caused = _waits_with_enclosing_slices(trace, waits).join(
        _copies_by_operator(trace),
        on="operator",
        how="left",
        nulls_equal=False,
        maintain_order="left",
    )
    caused = caused.with_columns(cause=_wait_causes(trace, caused)).filter(
        pl.col("cause").is_not_null()
    )
    site = source_sites_of_slices(trace, caused["id"])
    caused = caused.with_columns(*(site[column] for column in SOURCE_SITE_COLUMNS)).with_columns(
        cause=_SMALL_COPY_CAUSE_EXPRESSION
    )
    unknown = pl.concat_str(
        "chain", pl.col("annotation").fill_null(""), separator=_OPERATOR_CHAIN_SEPARATOR
    )
    return caused.with_columns(key=pl.when(pl.col("file").is_null()).then(unknown))


def _copies_by_operator(trace: Trace) -> pl.DataFrame:
    """Returns each copying operator's id, its copied bytes, and the slice id of its first copy."""
    category = trace.slices["category"].gather(trace.device_args["id"]).cast(pl.String)
    moved = trace.device_args.filter(category == "gpu_memcpy")
    return (
        moved.filter(pl.col("operator").is_not_null())
        .group_by("operator")
        .agg(pl.col("bytes").sum(), pl.col("id").first().alias("copy"))
    )


def _waits_with_enclosing_slices(trace: Trace, waits: pl.DataFrame) -> pl.DataFrame:
    """Returns each wait for the device, with the operators, annotations and frames around it.

    Columns: chain (names of operators), outer (the slice of the outermost, else NONE), outer_start,
    outer_end, annotation, of_library, scaled (under the gradient scaler), logged (under a print).
    """
    parent = parent_of_every_slice(trace)
    at = waits["id"].cast(pl.Int64).to_numpy().copy()
    levels: list[pl.DataFrame] = []
    while (open_ := np.flatnonzero(at != NO_SLICE)).size:
        levels.append(pl.DataFrame({"row": open_, "slice": at[open_]}))
        at[open_] = parent[at[open_]]
    found = pl.concat(levels).sort("row", maintain_order=True)
    ids = found["slice"].cast(pl.UInt32)
    text = trace.slices["name"].gather(ids)
    category = trace.slices["category"].gather(ids).cast(pl.String)
    operator = category.is_in(list(names.OPERATOR_CATEGORIES)) & _do_texts_satisfy(
        text, names.is_dispatched_operator
    )
    noted = category.is_in(list(names.ANNOTATION_CATEGORIES)) & ~_do_texts_satisfy(
        text, _is_profiler_step
    )
    found = found.with_columns(
        name=text.cast(pl.String),
        is_operator=operator,
        noted=noted,
        library=_do_texts_satisfy(text, _is_loader_or_optimizer),
    )
    chains = found.group_by("row", maintain_order=True).agg(
        pl.col("name").filter("is_operator").str.join(_OPERATOR_CHAIN_SEPARATOR).alias("chain"),
        pl.col("slice").filter("is_operator").last().alias("outer"),
        pl.col("name").filter("noted").first().alias("annotation"),
        pl.col("library").any().alias("of_library"),
    )
    told = pl.concat([waits, chains.drop("row")], how="horizontal")
    outer = told["outer"].fill_null(NO_SLICE).to_numpy()
    begin = trace.slices["start"].to_numpy()[np.maximum(outer, 0)]
    lasts = trace.slices["duration"].fill_null(0).to_numpy()[np.maximum(outer, 0)]
    return told.with_columns(
        outer=pl.Series(outer),
        outer_start=pl.Series(begin),
        outer_end=pl.Series(begin + lasts),
        scaled=_are_calls_within_frame(trace, told["id"], outer, is_gradient_scaler_frame),
        logged=_are_calls_within_frame(trace, told["id"], outer, names.is_logging_frame),
    )


def _are_calls_within_frame(
    trace: Trace,
    calls: pl.Series,
    outermost_operators: Ints,
    is_wanted_frame: Callable[[str], bool],
) -> pl.Series:
    """Returns for each call whether a Python frame around it fulfils `is_wanted_frame`."""
    at = np.where(
        outermost_operators == NO_SLICE, calls.cast(pl.Int64).to_numpy(), outermost_operators
    )
    wanted = matches_name(trace.slices, is_wanted_frame)
    return pl.Series(
        nearest_ancestor(
            caller_of_every_frame(trace), wanted, enclosing_frame_of_every_slice(trace)[at]
        )
        != NO_SLICE
    )


def _do_texts_satisfy(text: pl.Series, predicate: Callable[[str], bool]) -> pl.Series:
    """Returns for each text whether it fulfils `predicate`; calls it once per distinct text."""
    group, first = group_and_first_row_of_rows(text.to_frame())
    answers = [predicate(one) for one in text.gather(pl.Series(first)).cast(pl.String).to_list()]
    return pl.Series(answers, dtype=pl.Boolean).gather(pl.Series(group))


def _is_profiler_step(name: str) -> bool:
    """Returns whether an annotation's name is that of a profiler step."""
    return names.profiler_step_number(name) is not None


def _is_loader_or_optimizer(name: str) -> bool:
    """Returns whether a slice loads data or steps an optimizer; both may read host tensors."""
    return names.is_data_loading(name) or names.is_optimizer_annotation(name)


def _wait_causes(trace: Trace, waits: pl.DataFrame) -> pl.Series:
    """Returns the cause of each wait for the device; null for a wait that no rule explains."""
    distinct = waits.select("kind", "chain").unique()
    rows = [
        (kind, chain, wait_cause(kind, chain.split(_OPERATOR_CHAIN_SEPARATOR) if chain else []))
        for kind, chain in distinct.iter_rows()
    ]
    schema = {"kind": pl.String, "chain": pl.String, "cause": pl.String}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    cause = waits.join(table, on=["kind", "chain"], how="left", maintain_order="left")["cause"]
    finite = waits["scaled"] | _do_waits_follow_nan_test(trace, waits)
    reads = cause.is_in(["scalar_read", "branch_on_tensor"])
    small = (waits["bytes"] <= MAX_STAGED_COPY_BYTES).fill_null(value=False) & (cause == "upload")
    pinned = _are_copies_of_pinned_memory(trace, waits["copy"]) & (cause == "upload")
    made = [copies.copy_ids for copies in lines_with_host_made_tensors(trace)]
    uploads = cause == "upload"
    hosted = waits["copy"].is_in(pl.concat(made).implode()) & uploads if made else uploads & False
    frame = pl.DataFrame({"c": cause, "f": finite & reads, "h": hosted, "s": small, "p": pinned})
    others = _do_texts_satisfy(waits["chain"], _contains_collective) | waits["logged"]
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


def _contains_collective(operator_chain: str) -> bool:
    """Returns whether one of the operators around a wait, given as text, is a collective."""
    return any(
        names.is_collective_call(name) for name in operator_chain.split(_OPERATOR_CHAIN_SEPARATOR)
    )


def _are_copies_of_pinned_memory(trace: Trace, copies: pl.Series) -> pl.Series:
    """Returns for each copy whether its host memory is pinned; false if the copy is unknown."""

    def pinned(name: str) -> bool:
        return names.memcpy_kind(name).host_memory == "pinned"

    text = trace.slices["name"].gather(copies)
    known = text.is_not_null()
    return _do_texts_satisfy(text.cast(pl.String).fill_null(""), pinned) & known


def _do_waits_follow_nan_test(trace: Trace, waits: pl.DataFrame) -> pl.Series:
    """Returns for each wait whether one of the last few operators before it tests for NaN."""
    ops = _dispatched_host_operators(trace)
    tests = filter_by_name(ops, is_finite_test)
    if not tests.height:
        return pl.repeat(value=False, n=waits.height, dtype=pl.Boolean, eager=True)
    is_operator = np.zeros(trace.slices.height, bool)
    is_operator[ops["id"].to_numpy()] = True
    parent = parent_of_every_slice(trace)
    top = nearest_ancestor(parent, is_operator, parent[ops["id"].to_numpy()]) == NO_SLICE
    found = np.zeros(waits.height, bool)
    own = trace.slices["track"].gather(waits["id"]).to_numpy()
    outer = waits["outer"].to_numpy()
    begun = trace.slices["start"].to_numpy()[np.maximum(outer, 0)]
    for track in np.unique(own):
        mine = ops.filter(pl.Series(top)).filter(pl.col("track") == track)
        starts = np.sort(mine["start"].to_numpy())
        ends = np.sort(tests.filter(pl.col("track") == track)["start"].to_numpy())
        at = np.flatnonzero((own == track) & (outer != NO_SLICE))
        last = np.searchsorted(ends, begun[at], side="left") - 1
        known = at[last >= 0]
        begin = ends[last[last >= 0]]
        between = np.searchsorted(starts, begun[known]) - np.searchsorted(starts, begin, "right")
        found[known] = between <= _MAX_OPERATORS_FROM_NAN_TEST_TO_READ
    return pl.Series(found)


def _wait_site_of_waits(waits: pl.DataFrame, step_count: int) -> WaitSite:
    """Returns one record for all waits of the same cause at the same source line."""
    first: dict[str, Any] = waits.row(0, named=True)
    chain: str = first["chain"]
    begin, end = waits["start"].to_numpy(), waits["end"].to_numpy()
    held = union(begin, end)
    return WaitSite(
        cause=first["cause"],
        operators=tuple(chain.split(_OPERATOR_CHAIN_SEPARATOR)) if chain else (),
        annotation=first["annotation"],
        where=where_from_row(first),
        call_ids=waits["id"].cast(pl.Int64).to_numpy(),
        wait_intervals=held,
        operator_intervals=_operator_times_around(waits, held),
        waits_per_step=waits.height / max(step_count, 1),
        wait_ns_per_step=sum(waits["wait"].to_list()) / max(step_count, 1),
        bytes_per_step=sum(waits["bytes"].drop_nulls().to_list()) / max(step_count, 1),
        is_regular=waits["step"].n_unique() > MIN_WAITING_STEPS_SHARE * step_count,
    )


def _operator_times_around(waits: pl.DataFrame, wait_times: Intervals) -> Intervals:
    """Returns the intervals of the outermost operators around waits.

    If a wait is in no operator: `wait_times`.
    """
    known = waits.filter(pl.col("outer") != NO_SLICE)
    if known.height < waits.height:
        return wait_times
    return union(known["outer_start"].to_numpy(), known["outer_end"].to_numpy())
