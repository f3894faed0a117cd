"""Durations that cannot be, are lost, or have no end."""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import schema
from selftime.analysis.device.impossible_durations import SLACK, overruns
from selftime.analysis.health.checks import (
    FEW,
    MANY,
    Check,
    Verdict,
    examples,
    graded,
    several,
    worst,
)
from selftime.analysis.health.recording import Recording
from selftime.analysis.slice_filters import covered_time
from selftime.intervals import length
from selftime.nesting import ROUNDING_NS
from selftime.units import count_text, share_text, time_text

_AFFECTS: Final = "launch delays, idle causes, waits"
_LONG_WAIT: Final = 100_000_000
"""No launch onto a device with nothing to do takes 100 ms, unless it loads the kernel first."""
_IDLE: Final = 0.1
"""A device that is idle for this share of its time has room for what was launched to begin."""
_LEAST: Final = 3
"""Of fewer launches each may have waited for something of its own."""

_MICROSECOND: Final = 1_000


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
    late = work.filter(pl.Series(overruns(work, recording.calls) > ROUNDING_NS))
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


def durations(recording: Recording) -> Iterator[Check]:
    """Device slices with impossible durations."""
    found = recording.impossible
    if not found.height:
        return
    share = found.height / recording.work.height
    held = float(found["duration"].sum()) / float(recording.work["duration"].sum())
    text = (
        f"{several(found.height, 'device slice')} cannot have lasted so long (up to "
        f"{time_text(int(found['duration'].max()))}): they run past work or waits that "  # type: ignore[arg-type]  # integers
        f"had to follow them; they hold {share_text(held)} of all kernel time"
    )
    verdict = worst("degraded", graded(share))
    affects = "totals of their kernels, busy time, idle, overlap"
    yield Check("durations", verdict, text, float(found.height), affects, examples(found["id"]))


def zeros(recording: Recording) -> Iterator[Check]:
    """Device slices of no length; whole microseconds round short ones down to it."""
    work = recording.work
    none = int((work["duration"] == 0).sum())
    if not none:
        return
    share = none / work.height
    text = f"{share_text(share)} of device slices have no length"
    if _is_coarse(work):
        text = f"{text}: times are whole microseconds, and these are shorter"
        yield Check("zeros", "good", text, share)
        return
    ids = examples(work.filter(pl.col("duration") == 0)["id"])
    text = f"{text}: their times were lost"
    yield Check("zeros", graded(share), text, share, "kernels, busy time, idle", ids)


def _is_coarse(work: pl.DataFrame) -> bool:
    return bool((work["duration"] % _MICROSECOND == 0).all())


def timeless(recording: Recording) -> Iterator[Check]:
    """Slices of the host and of devices of which it is not known when they were."""
    for what, part in (("device", recording.device), ("host", recording.host)):
        lost = part.filter(_timeless(recording))["id"]
        if not lost.len():
            continue
        share = lost.len() / part.height
        verdict = worst("degraded", graded(share))
        text = f"{several(lost.len(), f'{what} slice')} ({share_text(share)}) have no time"
        affects = "idle, utilisation, device time of steps, kernels"
        if what == "host":
            affects = "steps, host times, idle causes"
        else:
            text = f"{text}: when the device worked is not known"
        yield Check("times", verdict, text, share, affects, examples(lost))


def _timeless(recording: Recording) -> pl.Expr:
    """What has no time stands at the begin of all, without an end, if the file had such events."""
    has_such = schema.NO_TIME in recording.trace.repairs["fault"]
    return pl.col("duration").is_null() & (pl.col("start") == 0) & has_such


def unended(recording: Recording) -> Iterator[Check]:
    """Slices of the host and of devices whose end is not known: they are in no total."""
    every = recording.host.height + recording.device.height
    parts = (recording.host, recording.device)
    has_none = pl.col("duration").is_null() & ~_timeless(recording)
    open_ = pl.concat([part.filter(has_none)["id"] for part in parts])
    if not open_.len():
        return
    share = open_.len() / every
    text = f"{several(open_.len(), 'slice')} without an end: in no total"
    verdict: Verdict = "degraded" if share > FEW else "good"
    yield Check("ends", verdict, text, float(open_.len()), "totals", examples(open_))


def past_the_end(recording: Recording) -> Iterator[Check]:
    """Host slices that were still open when the recorder stopped, and ended long after."""
    if recording.span is None:
        return
    begin, end = recording.span
    tolerated = end + max(SLACK, int(FEW * (end - begin)))
    open_ = recording.host.filter(
        (pl.col("start") < end) & (pl.col("start") + pl.col("duration") > tolerated)
    )
    if not open_.height:
        return
    most = open_.sort("duration", descending=True)["name"].cast(pl.String)[0]
    text = (
        f"{several(open_.height, 'host slice')} ended after the recorder stopped (`{most}`): "
        "what happened in them then was not recorded"
    )
    affects = "steps, host times of these slices"
    yield Check("past_end", "degraded", text, float(open_.height), affects, examples(open_["id"]))
