"""Operators of the steps that count, what they launched, and what a change of them changes."""

import json
from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.advice.base import Where
from selftime.advice.lines.source import where
from selftime.advice.replay import Change, Cut, Scale
from selftime.intervals import Intervals, union
from selftime.trace import Trace
from selftime.views.accounts.kept import kept
from selftime.views.accounts.named import of_kind
from selftime.views.accounts.sites import SITE, sites
from selftime.views.accounts.steps.judging import counted_windows, is_within, judged_steps

__all__ = [
    "by_line",
    "change",
    "counted_operators",
    "covered",
    "inside",
    "launched_in",
    "sizes",
    "steps_recorded",
    "with_backward",
]

Ints = NDArray[np.int64]

_TOLD: Final = ("input_shapes", "input_types", "input_strides", "concrete_inputs")


@kept
def counted_operators(trace: Trace) -> pl.DataFrame:
    """Operators that began in the steps that count, in order of time.

    With a device these are all steps: its queue carries a change of one into those that follow.

    Columns: id, name, track, start, end (ns), and input_shapes, input_types, input_strides and
    concrete_inputs as JSON text, null where not recorded.
    """
    host = of_kind(trace, "host").filter(pl.col("duration").is_not_null())
    operators = host.filter(host["category"].cast(pl.String).is_in(list(names.OPERATORS)))
    mine = is_within(operators["start"].to_numpy(), _windows(trace))
    return (
        operators.filter(pl.Series(mine, dtype=pl.Boolean))
        .select("id", "name", "track", "start", end=pl.col("start") + pl.col("duration"))
        .join(trace.op_args.select("id", *_TOLD), on="id", how="left", maintain_order="left")
    )


def steps_recorded(trace: Trace) -> int:
    """How many steps `counted_operators` are of."""
    return max(_windows(trace).height, 1)


def _windows(trace: Trace) -> pl.DataFrame:
    if trace.device_args.height:
        return judged_steps(trace).select("start", "end")
    return counted_windows(trace)


def sizes(text: str | None) -> list[tuple[int, ...]]:
    """Sizes or strides of each input; `()` for what is no tensor, or is malformed.

    >>> sizes("[[2,3],[],[[1],[2]]]")
    [(2, 3), (), ()]
    """
    try:
        read = json.loads(text or "[]")
    except ValueError:
        return []
    return [_size(one) for one in read] if isinstance(read, list) else []


def _size(told: object) -> tuple[int, ...]:
    if not isinstance(told, list) or not all(isinstance(length, int) for length in told):
        return ()
    return tuple(told)


def inside(slices: pl.DataFrame, around: pl.DataFrame) -> NDArray[np.bool_]:
    """Which slices began while one of `around` was open on their track.

    Both have the columns track and start, `around` has end as well.
    """
    if not around.height or not slices.height:
        return np.zeros(slices.height, bool)
    last = max(int(around["end"].to_numpy().max()), int(slices["start"].to_numpy().max())) + 1
    track, asked = (t["track"].cast(pl.Int64).to_numpy() * last for t in (around, slices))
    open_ = union(track + around["start"].to_numpy(), track + around["end"].to_numpy())
    when = asked + slices["start"].to_numpy()
    at = np.searchsorted(open_.starts, when, side="right") - 1
    return np.asarray((at >= 0) & (when < open_.ends[at]))


def covered(operators: pl.DataFrame) -> Intervals:
    """The time in which any of the operators ran."""
    return union(operators["start"].to_numpy(), operators["end"].to_numpy())


def with_backward(trace: Trace, operators: pl.DataFrame) -> pl.DataFrame:
    """The operators and those that are their backward: id, track, start and end."""
    kept_columns = ("id", "track", "start", "end")
    links = trace.op_args.filter(pl.col("forward").is_not_null()).select("id", "forward")
    forward = trace.slices.select("id", "track", "start")[links["forward"]]
    mine = links["id"].filter(pl.Series(inside(forward, operators), dtype=pl.Boolean))
    backward = trace.slices[mine].filter(pl.col("duration").is_not_null())
    backward = backward.with_columns(end=pl.col("start") + pl.col("duration"))
    both = pl.concat([operators.select(kept_columns), backward.select(kept_columns)])
    return both.unique("id").sort("start", "id")


def launched_in(trace: Trace, operators: pl.DataFrame) -> pl.Series:
    """Device work that these operators, or what they called, launched: ids of slices."""
    told = trace.device_args.filter(pl.col("operator").is_not_null()).select("id", "operator")
    launchers = trace.slices.select("track", "start")[told["operator"]]
    return told["id"].filter(pl.Series(inside(launchers, operators), dtype=pl.Boolean))


def change(trace: Trace, operators: pl.DataFrame, keep: float) -> Change:
    """What takes `keep` of its time if these operators do: on the device, else on the host."""
    if trace.device_args.height:
        return Scale(launched_in(trace, operators).cast(pl.Int64).to_numpy(), keep)
    return Cut(covered(operators), keep)


def by_line(trace: Trace, operators: pl.DataFrame) -> Iterator[tuple[Where, pl.DataFrame]]:
    """The operators of each source line, those of most time first; of no line together."""
    if not operators.height:
        return
    placed = operators.with_columns(sites(trace, operators["id"]))
    parts = placed.partition_by(*SITE, maintain_order=True)
    for part in sorted(parts, key=_time, reverse=True):
        yield where(part.row(0, named=True)), part.drop(*SITE)


def _time(operators: pl.DataFrame) -> int:
    begin, end = covered(operators)
    return int((end - begin).sum())
