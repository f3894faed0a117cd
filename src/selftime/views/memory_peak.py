"""Who holds a device's memory when most of it is allocated."""

from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
import polars as pl

from selftime.analysis.memory.allocations import totals
from selftime.analysis.memory.blocks import BEFORE, ENDLESS, blocks_of, is_alive
from selftime.analysis.memory.growth import growth, outlast, step_ends
from selftime.analysis.memory.holders import (
    categories,
    operator_labels,
    record_modules,
    record_sites,
)
from selftime.analysis.sites import SITE
from selftime.analysis.steps.step_boundaries import find_steps
from selftime.analysis.timeline.tracks import check_order
from selftime.errors import UsageError
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.base import Joined, view

_BY: Final = {
    "line": SITE,
    "module": ("module",),
    "operator": ("operator",),
    "category": ("category",),
}
_KEYS: Final = ("category", "operator", "module", *SITE)
_UNACCOUNTED: Final = "unaccounted"
_UNKNOWN: Final = "unknown"


@view(
    Column("bytes", pl.Int64, "bytes", "What it holds; the rows of a device sum to its total."),
    Column("share", pl.Float64, "ratio", "Of all that is allocated on the device.", True),
    Column("growth_per_step", pl.Int64, "bytes", "By which it grows from step to step.", True),
    Column(
        "category", pl.String, "name", "What it is for, if by category; else null if known.", True
    ),
    Column("operator", pl.String, "name", "The operator that allocated it, if by operator.", True),
    Column("module", pl.String, "name", "The innermost nn.Module around it, if by module.", True),
    Column("file", pl.String, "text", "The source file that allocated it, if by line.", True),
    Column("line", pl.Int32, "id", "The line that allocated it, if by line.", True),
    Column("function", pl.String, "name", "The function the line is in, if by line.", True),
    Column("how", pl.String, "name", "How the line is known: stack or definition.", True),
    Column("blocks", pl.Int64, "count", "In how many blocks.", True),
    Column("allocated", pl.Int64, "instant", "When its first block was allocated.", True),
    Column("released", pl.Int64, "instant", "When its last was; null if one lives on.", True),
    Column("device_type", pl.String, "name", "CPU, CUDA, HIP, XPU, MPS or another.", True),
    Column("device", pl.Int32, "id", "The device's number; -1 for the CPU.", True),
    Column("time", pl.Int64, "instant", "The instant that is shown."),
    needs=("memory",),
    sums=("bytes", "blocks"),
)
def memory_peak(  # noqa: PLR0913 - keyword-only options of the command
    trace: Trace,
    *,
    by: Annotated[str, Joined(tuple(_BY))] = "category+operator+line",
    device: str = "",
    step: int = -1,
    at: int = -1,
    start: int = 0,
    end: int = 0,
) -> pl.DataFrame:
    """What is allocated at each device's peak, by what allocated it, largest first.

    `by` is line, module, operator or category, or several joined by `+`. The peak is the first
    instant at which most is allocated: of the recording, of one `step`, between the instants
    `start` and `end`, or else the instant `at`, all in ns. What is not told by any allocation in
    the recording was there `before the recording`; where totals and records contradict each other
    the difference is `unaccounted`.

    A block's category follows from when it was allocated and how long it lived. An `input` was
    loaded, or copied from the host. A `temporary` was released in the operator or optimizer's step
    that allocated it, or within the same pass and step. An `activation` was allocated going forward
    and in use when the backward pass began. A `gradient` was allocated going backward and outlived
    the pass. `optimizer state` was allocated by an optimizer's step and outlived the step, a
    `parameter` where torch.nn built or moved a module, and outlived two. All else is `unknown`.

    A row grows if what it holds at the ends of the steps never falls and keeps rising: a leak. Rows
    that grow are listed even if they hold nothing at the peak.
    """
    keys = _read_by(by)
    window = (start, end) if _is_between(start, end, step, at) else _window(trace, step, at)
    every = blocks_of(trace, device)
    parts = totals(trace, device).partition_by("type", "device", maintain_order=True)
    rows = [_rows(trace, every, _peak(part, window), keys) for part in parts]
    return _declared(pl.concat(rows, how="diagonal_relaxed") if rows else pl.DataFrame())


def _declared(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with every column of the view, null where it does not apply."""
    return rows.select(
        (pl.col(column.name) if column.name in rows.columns else pl.lit(None))
        .cast(column.dtype)
        .alias(column.name)
        for column in memory_peak.columns
    ).filter(pl.lit(bool(rows.width)))


def _read_by(by: str) -> list[str]:
    chosen = [column for word in by.split("+") for column in _BY[word]]
    return [key for key in _KEYS if key in chosen]


@dataclass(frozen=True, slots=True)
class _Peak:
    """What is shown of one device: after which row of `memory`, and how much is allocated then."""

    device_type: str | None
    type: int | None
    device: int | None
    time: int
    record: int
    allocated: int


def _is_between(start: int, end: int, step: int, at: int) -> bool:
    """Whether the peak between two instants is asked for, and nothing else."""
    if not start and not end:
        return False
    if step >= 0 or at >= 0:
        raise UsageError("`start` and `end` are given beside `step` or `at`; write one of them")
    check_order(start, end)
    return True


def _window(trace: Trace, step: int, at: int) -> tuple[int, int]:
    """Between which instants the peak is sought, both included."""
    if step >= 0 and at >= 0:
        raise UsageError("`step` and `at` are both given; write one of them")
    if step < 0:
        return (at, at) if at >= 0 else (-1, ENDLESS)
    found = find_steps(trace).filter(pl.col("number") == step)
    if not found.height:
        raise UsageError(f"`step` is `{step}`, and there is none; the view `steps` lists all")
    return int(found["start"][0]), int(found["end"][0])


def _peak(part: pl.DataFrame, window: tuple[int, int]) -> _Peak:
    """The highest total of one device in the window: what it begins with, or what a record left."""
    begin, end = window
    earlier = part.filter(pl.col("time") <= begin).tail(1)
    first = part.head(1).with_columns(
        at=pl.lit(-1), allocated=pl.col("allocated") - pl.col("bytes")
    )
    opening = (earlier if earlier.height else first).with_columns(time=pl.lit(max(begin, 0)))
    inside = part.filter((pl.col("time") > begin) & (pl.col("time") <= end))
    both = pl.concat([opening, inside], how="vertical_relaxed")
    best = both.row(int(np.argmax(both["allocated"].to_numpy())), named=True)  # the first of equals
    where = {name: best[name] for name in ("device_type", "type", "device", "time", "allocated")}
    return _Peak(record=best["at"], **where)


def _rows(trace: Trace, every: pl.DataFrame, peak: _Peak, keys: list[str]) -> pl.DataFrame:
    """Who holds what of one device, with what no allocation tells as a row of its own."""
    mine = every.filter(
        pl.col("type").eq_missing(peak.type) & pl.col("device").eq_missing(peak.device)
    ).with_columns(alive=is_alive(peak.record).fill_null(value=False))
    known = _known_rows(trace, mine, keys)
    rest = peak.allocated - int(known["bytes"].sum())
    rows = [known, _rest(mine, peak, rest)] if rest else [known]
    return (
        pl.concat(rows, how="diagonal_relaxed")
        .sort("bytes", descending=True, maintain_order=True)
        .with_columns(
            share=pl.col("bytes") / peak.allocated if peak.allocated else pl.lit(None),
            device_type=pl.lit(peak.device_type),
            device=pl.lit(peak.device),
            time=pl.lit(peak.time),
        )
    )


def _known_rows(trace: Trace, mine: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """The blocks alive, and those that grow from step to step, by what is asked for."""
    ends = step_ends(trace)
    told = mine.filter(pl.col("alive") | pl.Series(outlast(mine, ends), dtype=pl.Boolean))
    told = _with_keys(trace, told, keys)
    group = told.select(pl.struct(keys).rank("dense").cast(pl.Int64) - 1).to_series()
    grown = growth(told, group.to_numpy(), group.n_unique(), ends)
    alive = pl.when("alive")
    by_group = pl.DataFrame({"group": range(grown.len()), "growth_per_step": grown})
    return (
        told.with_columns(group=group)
        .group_by("group", *keys)
        .agg(
            bytes=alive.then("size").otherwise(0).sum(),
            blocks=pl.col("alive").sum().cast(pl.Int64),
            allocated=alive.then("allocated").min(),
            released=pl.when(alive.then("gone").max() < ENDLESS).then(alive.then("until").max()),
        )
        .join(by_group.cast({"group": pl.Int64}), on="group")
        .filter((pl.col("blocks") > 0) | (pl.col("growth_per_step") > 0))
        .sort("group")
        .drop("group")
    )


def _with_keys(trace: Trace, told: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """The blocks with what rows are told apart by."""
    if "category" in keys:
        told = told.with_columns(category=categories(trace, told))
    if "operator" in keys:
        told = told.with_columns(operator=operator_labels(trace, told["allocation"]))
    if "module" in keys:
        told = told.with_columns(module=record_modules(trace, told["allocation"]))
    if "file" in keys:
        told = told.with_columns(record_sites(trace, told["allocation"]).select(SITE))
    return told


def _rest(mine: pl.DataFrame, peak: _Peak, rest: int) -> pl.DataFrame:
    """What is allocated beyond the blocks known: from before the recording, or contradicted.

    How many blocks it is, and when the last was released, is known if their releases make it up.
    """
    later = mine.filter((pl.col("state") == BEFORE) & (pl.col("gone") > peak.record))
    whole = int(later["size"].sum()) == rest
    addressed = not mine.height or mine["address"].is_not_null().any()
    category = BEFORE if addressed else _UNKNOWN
    return pl.DataFrame(
        {
            "bytes": [rest],
            "category": [category if rest > 0 else _UNACCOUNTED],
            "blocks": [later.height if whole else None],
            "released": [later["until"].max() if whole else None],
        }
    )
