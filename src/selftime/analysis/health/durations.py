"""Durations that cannot be, are lost, or have no end."""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import schema
from selftime.analysis.device.impossible_durations import SLACK
from selftime.analysis.health.checks import FEW, Check, Verdict, examples, graded, several, worst
from selftime.analysis.health.recording import Recording
from selftime.units import share_text, time_text

_MICROSECOND: Final = 1_000


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
