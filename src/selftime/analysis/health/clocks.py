"""Whether the clocks of host and device agree."""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime.analysis.device.impossible_durations import overruns
from selftime.analysis.health.checks import MANY, Check, Verdict, examples
from selftime.analysis.health.recording import Recording
from selftime.analysis.slice_filters import covered_time
from selftime.intervals import length
from selftime.nesting import BLEED
from selftime.units import count_text, share_text, time_text

_AFFECTS: Final = "launch delays, idle causes, waits"
_LONG_WAIT: Final = 100_000_000
"""No launch onto a device with nothing to do takes 100 ms, unless it loads the kernel first."""
_IDLE: Final = 0.1
"""A device that is idle for this share of its time has room for what was launched to begin."""
_LEAST: Final = 3
"""Of fewer launches each may have waited for something of its own."""


def clocks(recording: Recording) -> Iterator[Check]:
    """Work before its launch, long after it, or after the wait that it had to be done for."""
    device = recording.device.filter(
        pl.col("launch").is_not_null() & pl.col("duration").is_not_null()
    )
    launched = recording.trace.slices["start"].gather(device["launch"])
    device = device.with_columns(delay=device["start"] - launched, launched=launched)
    early = device.filter(pl.col("delay") < 0)
    if early.height:
        text = f"{count_text(early.height)} device slices start before their launch"
        yield _check(f"{text}{_by_how_much(device, early)}", early, device.height)
    elif _is_late(device):
        yield _late(device)
    work = recording.work.join(recording.impossible, on="id", how="anti")
    late = work.filter(pl.Series(overruns(work, recording.calls) > BLEED))
    if late.height:
        text = f"{count_text(late.height)} device slices end after a wait for all of them returned"
        yield _check(text, late, work.height)


def _check(text: str, wrong: pl.DataFrame, every: int) -> Check:
    """Clocks that disagree for a few slices drift; beyond that they tell different times."""
    share = wrong.height / every
    verdict: Verdict = "unusable" if share > MANY else "degraded"
    told = f"{text}: the clocks disagree"
    if verdict == "unusable":
        told = f"{told} for {share_text(share)}, so that host and device cannot be put together"
    return Check("clocks", verdict, told, float(wrong.height), _AFFECTS, examples(wrong["id"]))


def _by_how_much(device: pl.DataFrame, early: pl.DataFrame) -> str:
    """How far the clocks lie apart, and since when, as far as the delays tell.

    An offset leaves no delay above it; a step leaves those alone that were launched before it.
    """
    before = device.filter(pl.col("launched") < early["launched"].min())
    after = device.filter(pl.col("launched") >= early["launched"].min())
    apart = -int(after["delay"].median())  # type: ignore[arg-type]  # integers
    if early.height < _LEAST or apart <= _LONG_WAIT:
        return ""
    if before.height:
        at = time_text(int(early["launched"].min()))  # type: ignore[arg-type]  # integers
        return f", by about {time_text(apart)} from {at} on: the host's clock was set"
    return f", by about {time_text(apart)}"


def _is_late(device: pl.DataFrame) -> bool:
    """Whether all work begins long after its launch though the device had time for it before."""
    if device.height < _LEAST or int(device["delay"].min()) <= _LONG_WAIT:  # type: ignore[arg-type]  # integers
        return False
    busy = covered_time(device)
    return length(busy) < (1 - _IDLE) * int(busy.ends[-1] - busy.starts[0])


def _late(device: pl.DataFrame) -> Check:
    least = int(device["delay"].min())  # type: ignore[arg-type]  # integers
    text = (
        f"no device work begins less than {time_text(least)} after its launch, though the device "
        f"is idle at times: the clocks of host and device lie about {time_text(least)} apart, so "
        "that the two cannot be put together"
    )
    return Check("clocks", "unusable", text, least / 1e9, _AFFECTS, examples(device["id"]))
