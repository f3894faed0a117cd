"""What every export has: who writes it, what it may be asked, what it tells of itself."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.arrays import Ints
from selftime.trace import Trace

Progress: TypeAlias = Callable[[int, "int | None"], None]
Weight: TypeAlias = Literal["host", "device"]

BATCH: Final = 1 << 16
"""Slices that are written at once: what is held as text at a time."""


def no_progress(_done: int, _total: int | None) -> None:
    """For who does not watch."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What an export may be asked besides the trace."""

    progress: Progress = no_progress
    """Called with the slices written and all of them."""
    weight: Weight = "host"
    """For stacks: whose time."""
    views: tuple[str, ...] = ()
    """For tables: views in place of the trace's own tables."""


@dataclass(slots=True)
class Told:
    """What was written."""

    written: dict[str, int] = field(default_factory=dict)
    """How many of what."""
    left_out: dict[str, int] = field(default_factory=dict)
    """What the format cannot hold, and how many of it."""
    files: list[str] = field(default_factory=list)
    """Of a folder: the names of its files."""
    size: int = 0
    """Bytes of all that was written."""

    def lacks(self, what: str, count: int) -> None:
        """Note that some of it was left out, if any was."""
        if count:
            self.left_out[what] = count


@dataclass(frozen=True, slots=True)
class Export:
    """A format that a trace can be exported to."""

    name: str
    title: str
    """What it is for, as the end of a sentence."""
    ending: str
    """Of the files' names; empty if it is a folder."""
    write: Callable[[Trace, Path, Asked], Told]
    """Writes one trace to a file or folder, and tells what it wrote."""
    takes: frozenset[str] = frozenset()
    """Which words of `Asked` beside the progress it heeds."""


def batches(count: int) -> list[tuple[int, int]]:
    """Where the slices that are written at once begin and end."""
    return [(low, min(low + BATCH, count)) for low in range(0, count, BATCH)]


def ends_of(slices: pl.DataFrame) -> Ints:
    """When each slice ended, in ns; where that is unknown, when it began."""
    return (slices["start"] + slices["duration"].fill_null(0)).to_numpy()


def full_names(trace: Trace) -> pl.Series:
    """The names of slices, the overload behind them where no other key of the file tells it."""
    told = trace.op_args.filter(pl.col("overload").is_not_null())
    ops = trace.facts.get("ops")
    if not told.height or (isinstance(ops, dict) and "overload" in ops):
        return trace.slices["name"]
    plain = trace.slices["name"].cast(pl.String)
    whole = plain.gather(told["id"]) + "." + told["overload"].cast(pl.String)
    return plain.scatter(told["id"], whole)


def event_order(trace: Trace) -> Ints:
    """Begins, as the places of slices, and ends, as those beyond all, in order of time.

    At one instant ends come first, the inner before the outer; then begins, the outer first, that
    of a slice without length with its end behind it. Threads of the host come before streams, so
    that arrows begin before they end. What has not ended has no end.
    """
    start, end = trace.slices["start"].to_numpy(), ends_of(trace.slices)
    count = start.size
    outer_first = np.lexsort((np.arange(count), -end, start))
    rank = np.empty(count, np.int64)
    rank[outer_first] = np.arange(count)
    is_long = end > start
    time = np.concatenate([start, end])
    turn = np.concatenate([np.ones(count, np.int64), np.where(is_long, 0, 1)])
    within = np.concatenate([2 * rank, np.where(is_long, -rank, 2 * rank + 1)])
    on_device = np.tile(_on_devices(trace), 2)
    order = np.lexsort((within, on_device, turn, time))
    ended = trace.slices["duration"].is_not_null().to_numpy()
    there = (order < count) | ended[order % max(count, 1)]
    return np.asarray(order[there])


def _on_devices(trace: Trace) -> NDArray[np.bool_]:
    """Which slices lie on a thread that a device's work lies on."""
    tracks = trace.tracks
    streams = tracks.filter(pl.col("kind") == "device")["thread"]
    found = tracks["thread"].is_in(streams.implode()).gather(trace.slices["track"])
    return found.to_numpy()
