"""The slices behind a row of any table: each occurrence of a name, a line, a shape, a stack."""

from typing import Final, Literal, TypeAlias

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.device.work import device_durations
from selftime.analysis.grouping import input_shapes, recoded, stacks, told
from selftime.analysis.sites import SITE, placed, sites
from selftime.analysis.slice_arguments import arguments_of, with_arguments
from selftime.analysis.slice_filters import common_value, filter_by_name
from selftime.analysis.steps.steady_steps import assessed_steps, counted_windows, is_within
from selftime.analysis.timeline.tracks import check_order
from selftime.errors import UsageError
from selftime.nesting import NONE
from selftime.schema import Column, Name
from selftime.trace import Trace
from selftime.views.base import Top, view

_Kind: TypeAlias = Literal[
    "any", "operator", "annotation", "frame", "call", "kernel", "copy", "other"
]
_By: TypeAlias = Literal["slice", "name", "duration", "line", "stack", "shape", "thread", "step"]

_KIND: Final = {
    **dict.fromkeys(names.OPERATORS, "operator"),
    **dict.fromkeys(names.ANNOTATIONS, "annotation"),
    **dict.fromkeys(names.FRAMES, "frame"),
    **dict.fromkeys(names.CALLS, "call"),
    **dict.fromkeys(names.DEVICE, "kernel"),
    **dict.fromkeys(names.COPIES, "copy"),
}
"""Of the categories."""
_KEYS: Final = {
    "name": ("name", "kind"),
    "duration": ("at_least",),
    "line": SITE,
    "stack": ("stack",),
    "shape": ("input_shapes",),
    "thread": ("thread", "track"),
    "step": ("step",),
}
_ALONE: Final = ("name", "kind", "category")
"""Columns that a row has where all its slices agree on them."""
_FRAMES: Final = 5
"""Innermost frames of a stack, as many as `operators` tells operators apart by."""
_BINS: Final = 20
"""Bins of durations to a power of ten."""
_NONE: Final = -1
"""No slice."""


@view(
    Column("name", Name, "name", "The slice's name; of several if all have it.", True),
    Column("start", pl.Int64, "instant", "When it began, or the longest of the row."),
    Column("duration", pl.Int64, "ns", "How long it lasted; of several the sum.", True),
    Column("self", pl.Int64, "ns", "Time in it and in no slice of its track within.", True),
    Column("share", pl.Float64, "ratio", "Share of the durations of all rows.", True),
    Column("count", pl.Int64, "count", "Slices of the row, if they are summed.", True),
    Column("median", pl.Float64, "ns", "Half of them took no longer, if they are summed.", True),
    Column("p95", pl.Float64, "ns", "95 % of them took no longer, if they are summed.", True),
    Column("longest", pl.Int64, "ns", "The longest of them, if they are summed.", True),
    Column("at_least", pl.Int64, "ns", "By duration: from here to below the next row's.", True),
    Column("kind", pl.String, "name", "What it is; see the option.", True),
    Column("thread", pl.String, "text", "Its thread or stream, as the trace names it.", True),
    Column(
        "step",
        pl.Int64,
        "id",
        "The step it began in; of device work that of its launch, if known.",
        True,
    ),
    Column("file", pl.String, "text", "The source file, if known.", True),
    Column("line", pl.Int32, "id", "The source line, if known.", True),
    Column("function", pl.String, "name", "The function the line is in, if known.", True),
    Column("how", pl.String, "name", "How the line is known: stack or definition.", True),
    Column("operator", Name, "name", "The innermost operator around it, or its launch.", True),
    Column("module", pl.String, "name", "The innermost nn.Module around that.", True),
    Column("input_shapes", Name, "text", "Sizes of the operator's inputs.", True),
    Column("stack", Name, "text", "Its Python frames, innermost first.", True),
    Column("launch_delay", pl.Int64, "ns", "For device work: from its launch to its begin.", True),
    Column("device", pl.Int32, "id", "The device, for device work.", True),
    Column("stream", pl.Int64, "id", "The stream, for device work.", True),
    Column("category", Name, "name", "What kind of event the trace says it is.", True),
    Column("track", pl.UInt32, "id", "The track it lies on.", True),
    Column("parent", pl.UInt32, "id", "The innermost slice of its track around it.", True),
    Column("launch", pl.UInt32, "id", "For device work: the call that launched it.", True),
    Column("id", pl.UInt32, "id", "The slice, or the longest of the row."),
    sums=("duration", "self", "share", "count"),
)
def occurrences(  # noqa: PLR0913 - keyword-only options of the command
    trace: Trace,
    *,
    name: str = "",
    kind: _Kind = "any",
    like: int = _NONE,
    file: str = "",
    line: int = 0,
    shape: str = "",
    stack: str = "",
    start: int = 0,
    end: int = 0,
    counted: bool = False,
    by: _By = "slice",
    top: Top = 0,
) -> pl.DataFrame:
    """Slices of one name, line, shape or stack, or of all; longest first.

    Every option narrows the slices: `name` to those of that name (a kernel's short one will do),
    `kind` to operators, annotations, Python frames, calls of the runtime, kernels, copies or other;
    `like` to those named as the slice with that id; `file` (its end will do) and `line` to those of
    that source line, also what it launched and its backward pass; `shape` to operators with inputs
    of these sizes and `stack` to those with these innermost frames, both as `operators` writes
    them; `start` and `end`, in ns, to those that are open in between; `counted` to those in steps
    that count for medians.

    `by` sums them: by name and kind, by duration (as a histogram, 20 rows to a power of ten), by
    source line, stack, shape, thread or stream, or step. `top` keeps the first rows; 0 keeps all.
    """
    found = _kinds(_between(trace, start, end), kind)
    found = _named(trace, found, name, like)
    if counted:
        begun = _launched(trace, found).to_numpy()
        found = found.filter(pl.Series(is_within(begun, counted_windows(trace)), dtype=pl.Boolean))
    found = _on_line(trace, found, file, line)
    found = _called_so(trace, found, shape, stack)
    return _alone(trace, found, top) if by == "slice" else _summed(trace, found, by, top)


def _between(trace: Trace, start: int, end: int) -> pl.DataFrame:
    """The slices open at some time of a window, with their kind; durations as devices had them."""
    if end:
        check_order(start, end)
    slices = trace.slices.with_columns(duration=device_durations(trace))
    if start:
        slices = slices.filter(pl.col("start") + pl.col("duration").fill_null(0) > start)
    if end:
        slices = slices.filter(pl.col("start") < end)
    return slices


def _kinds(slices: pl.DataFrame, kind: str) -> pl.DataFrame:
    kinds = recoded(slices["category"], lambda category: _KIND.get(category, "other"))
    slices = slices.with_columns(kind=kinds)
    return slices if kind == "any" else slices.filter(pl.col("kind") == kind)


def _named(trace: Trace, slices: pl.DataFrame, name: str, like: int) -> pl.DataFrame:
    if like != _NONE:
        if not 0 <= like < trace.slices.height:
            raise UsageError(
                f"`like` is `{like}`, which is no slice; they are numbered from 0 to below"
                f" {trace.slices.height}"
            )
        slices = slices.filter(pl.col("name") == trace.slices["name"][like])
    if not name:
        return slices
    exact = slices.filter(pl.col("name") == name)
    if exact.height:
        return exact
    work = slices.filter(pl.col("kind") == "kernel")
    return filter_by_name(work, lambda whole: names.short_kernel_name(whole) == name)


def _on_line(trace: Trace, slices: pl.DataFrame, file: str, line: int) -> pl.DataFrame:
    """Those of a source line; a file is one with another if the name of one ends in the other's."""
    if not file and not line:
        return slices
    places = _all_sites(trace)
    wanted = pl.repeat(True, places.height, dtype=pl.Boolean, eager=True)
    if file:
        known = places["file"].drop_nulls().unique().cast(pl.String)
        same = [one for one in known.to_list() if _is_same_file(one, file)]
        wanted &= places["file"].is_in(same).fill_null(value=False)
    if line:
        wanted &= (places["line"].cast(pl.Int64) == line).fill_null(value=False)
    return slices.filter(wanted.gather(slices["id"]))


def _placed_on_lines(trace: Trace, slices: pl.DataFrame) -> list[pl.Series]:
    if 2 * slices.height < trace.slices.height:
        places = sites(trace, slices["id"])
    else:
        places = _all_sites(trace)[slices["id"]]
    return [places[column] for column in SITE]


@cached_per_trace
def _all_sites(trace: Trace) -> pl.DataFrame:
    """The site of every slice: a page asks about the same line several times."""
    places = sites(trace, trace.slices["id"])
    return places.with_columns(pl.col("file", "function", "how").cast(Name))


def _is_same_file(one: str, other: str) -> bool:
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


def _called_so(trace: Trace, slices: pl.DataFrame, shape: str, stack: str) -> pl.DataFrame:
    """Operators with inputs of these sizes, and those with these innermost frames."""
    if shape:
        slices = slices.filter(pl.col("kind") == "operator")
        slices = slices.filter(input_shapes(trace, slices["id"]) == shape)
    if stack:
        frames = stack.count(";") + 1
        slices = slices.filter(stacks(trace, _on_host(trace, slices), frames) == stack)
    return slices


def _on_host(trace: Trace, slices: pl.DataFrame) -> pl.Series:
    """The slices themselves; for device work the operator that launched it, else the call."""
    around = with_arguments(trace, "device_args", slices.select("id", "launch"), "operator")
    return around.select(pl.coalesce("operator", "launch", "id")).to_series()


def _launched(trace: Trace, slices: pl.DataFrame) -> pl.Series:
    """When each began on the host: device work with its launch, if that is known."""
    launched = trace.slices["start"].gather(slices["launch"])
    return launched.zip_with(launched.is_not_null(), slices["start"])


def _alone(trace: Trace, slices: pl.DataFrame, top: int) -> pl.DataFrame:
    """A row for each slice. What they share in is told before the first rows are taken.

    What is told of slices is looked up in order of time, in which neighbours are alike, and then
    put in order; what is told of none is left out.
    """
    total = max(int(slices["duration"].sum()), 1)
    rows = _longest(slices, top)
    if top:
        rows = rows[_by_duration(rows).head(top)]
    order = _by_duration(rows)
    host = _on_host(trace, rows)
    operator = _operators(trace, host)
    delay = rows["start"] - trace.slices["start"].gather(rows["launch"])
    found = {
        **_sited(trace, rows, order),
        "step": _steps(trace, rows).gather(order),
        "operator": trace.slices["name"].gather(operator.gather(order)),
        "module": _modules(trace, operator.gather(order)),
        "input_shapes": told(trace, operator, "input_shapes").gather(order),
        "stack": stacks(trace, host, _FRAMES).gather(order),
        "launch_delay": delay.set(delay < 0, None).gather(order),
    }
    rows = rows.drop("depth")[order]
    found |= {column.name: column for column in _placed(trace, rows)}
    told_of_some = [
        found[name].alias(name) for name in found if found[name].null_count() < rows.height
    ]
    return _declared(rows.with_columns(*told_of_some, share=pl.col("duration") / total))


def _by_duration(rows: pl.DataFrame) -> pl.Series:
    """The order of the rows by duration, the longest first; equal ones as they come."""
    order = pl.arg_sort_by("duration", descending=True, nulls_last=True, maintain_order=True)
    return rows.select(order).to_series()


def _sited(trace: Trace, rows: pl.DataFrame, order: pl.Series) -> dict[str, pl.Series]:
    """The lines of the rows, in that order; none if there is no line."""
    found = placed(trace, rows["id"])
    if not (found.number != NONE).any():
        return {}
    number = pl.Series(found.number[order.to_numpy()])
    number = number.set(number == NONE, None).cast(pl.UInt32)
    return {column: found.table[column].gather(number) for column in SITE}


def _longest(slices: pl.DataFrame, top: int) -> pl.DataFrame:
    """The longest `top` slices and those as long as the last of them, in no new order."""
    known = slices["duration"].drop_nulls()
    if not top or known.len() <= top:
        return slices
    least = np.partition(known.to_numpy(), known.len() - top)[known.len() - top]
    return slices.filter(pl.col("duration") >= int(least))


def _operators(trace: Trace, host: pl.Series) -> pl.Series:
    """The operator that each is, or the innermost around it or its launch; null if none is."""
    around = arguments_of(trace, "call_args", host, "operator")["operator"]
    itself = arguments_of(trace, "op_args", host, "id")["id"]
    return itself.zip_with(itself.is_not_null(), around)


def _modules(trace: Trace, operator: pl.Series) -> pl.Series:
    frame = told(trace, operator, "module")
    return recoded(trace.slices["name"].gather(frame), names.module_of).cast(pl.String)


def _placed(trace: Trace, slices: pl.DataFrame) -> list[pl.Series]:
    """Thread or stream, and for device work device and stream."""
    tracks = trace.tracks.with_columns(
        thread=pl.when(pl.col("stream").is_not_null())
        .then(pl.format("stream {}", "stream"))
        .otherwise(pl.coalesce("name", "tid"))
    )
    at = slices["track"]
    return [tracks[column].gather(at) for column in ("thread", "device", "stream")]


def _steps(trace: Trace, slices: pl.DataFrame) -> pl.Series:
    """The step that each began in, device work that of its launch; null outside of steps."""
    steps = assessed_steps(trace)
    begun = _launched(trace, slices)
    at = pl.Series(np.searchsorted(steps["start"].to_numpy(), begun.to_numpy(), side="right") - 1)
    at = at.set(at < 0, None)
    within = (steps["end"].gather(at) > begun).fill_null(value=False)
    return steps["number"].gather(at).set(~within, None)


def _summed(trace: Trace, slices: pl.DataFrame, by: str, top: int) -> pl.DataFrame:
    """One row for each of the keys, most time first; durations and steps in their own order."""
    keys = list(_KEYS[by])
    total = max(int(slices["duration"].sum()), 1)
    own_order = by in ("duration", "step")
    order = keys if own_order else ["duration"]
    longest = pl.col("duration").arg_max().fill_null(0)
    known = pl.col("duration").count() > 0
    table = (
        slices.with_columns(_keyed(trace, slices, by))
        .group_by(keys, maintain_order=True)
        .agg(
            pl.col("duration").max().alias("longest"),
            pl.col("duration").median().alias("median"),
            pl.col("duration").quantile(0.95, "nearest").alias("p95"),
            *(pl.when(known).then(pl.col(time).sum()).alias(time) for time in ("duration", "self")),
            pl.len().alias("count"),
            pl.col("start", "id").get(longest),
            *(common_value(column) for column in _ALONE if column not in keys),
        )
        .with_columns(share=pl.col("duration") / total)
        .sort(*order, descending=not own_order, nulls_last=True, maintain_order=True)
    )
    return _declared(table.head(top) if top else table)


def _keyed(trace: Trace, slices: pl.DataFrame, by: str) -> list[pl.Series]:
    """The columns that rows are told apart by, beyond those of slices."""
    if by == "duration":
        return [_at_least(slices["duration"])]
    if by == "line":
        return _placed_on_lines(trace, slices)
    if by == "stack":
        return [stacks(trace, _on_host(trace, slices), _FRAMES).alias("stack")]
    if by == "shape":
        operator = _operators(trace, _on_host(trace, slices))
        return [told(trace, operator, "input_shapes")]
    if by == "step":
        return [_steps(trace, slices).alias("step")]
    return [_placed(trace, slices)[0]] if by == "thread" else []


def _at_least(duration: pl.Series) -> pl.Series:
    """Where the bin of each duration begins: evenly on a scale of logarithms, in whole ns."""
    edges = np.unique(np.round(10 ** (np.arange(20 * _BINS) / _BINS)).clip(0, 2**62)).astype(int)
    edges = np.concatenate([[0], edges])
    at = np.searchsorted(edges, duration.fill_null(0).to_numpy(), side="right") - 1
    return pl.Series("at_least", edges[at], dtype=pl.Int64).set(duration.is_null(), None)


def _declared(rows: pl.DataFrame) -> pl.DataFrame:
    """The declared columns; what is not of such a row is null."""
    return rows.select(
        (pl.col(c.name) if c.name in rows.columns else pl.lit(None).alias(c.name)).cast(c.dtype)
        for c in occurrences.columns
    )
