"""Whether a trace can be trusted, and in what it cannot."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from selftime import names
from selftime.intervals import Intervals, union
from selftime.schema import Column
from selftime.trace import Trace
from selftime.units import count_text, share_text
from selftime.views.accounts.named import of_kind, whose_name
from selftime.views.accounts.stepping import find_steps
from selftime.views.base import view

__all__ = ["health"]

_FEW_LOST: Final = 0.01
"""Launches without device work up to this share do not change what is true of the rest."""
_MANY_LOST: Final = 0.2
"""Beyond this share idle time may be work that was not recorded."""
_MUCH_BEFORE: Final = 0.5
"""Device work launched before the recording, beyond this share, leaves little to explain."""
_FEW_UNKNOWN: Final = 0.01
"""Slices of unknown category, beyond this share, may be work that is not counted."""
_SLOWED: Final = 1.5
"""Beyond this factor the recording has changed what it measured."""


class _Check(NamedTuple):
    check: str
    verdict: str
    text: str
    value: float | None


@view(
    Column("check", pl.String, "name", "What was looked at."),
    Column("verdict", pl.String, "name", "One of good, degraded, unusable."),
    Column("text", pl.String, "sentence", "What was found, and what follows."),
    Column("value", pl.Float64, "count", "The measured value, if there is one.", True),
)
def health(trace: Trace) -> pl.DataFrame:
    """Checks of the recording, before anything is concluded from it.

    The trace is as good as its worst check. `degraded` means that some figures are missing or
    doubtful, which the text names; `unusable` that conclusions would be wrong.
    """
    checks = (*_content(trace), *_file(trace), *_device(trace), *_steps(trace), *_recording(trace))
    return pl.DataFrame(checks, schema={c.name: c.dtype for c in health.columns}, orient="row")


def _content(trace: Trace) -> Iterator[_Check]:
    work = sum(of_kind(trace, kind).height for kind in ("host", "device"))
    if not work:
        text = "no operator, runtime call or kernel: this is not a trace of PyTorch's profiler"
        yield _Check("content", "unusable", text, 0.0)
        return
    yield _Check("content", "good", f"{count_text(work)} slices on host and device", float(work))
    other = of_kind(trace, "other")
    share = other.height / trace.slices.height
    if other.height:
        kinds = ", ".join(f"`{c}`" for c in other["category"].cast(pl.String).unique().sort()[:5])
        verdict = "degraded" if share > _FEW_UNKNOWN else "good"
        text = f"{count_text(other.height)} slices of unknown category ({kinds}) are in no total"
        yield _Check("categories", verdict, text, share)


def _file(trace: Trace) -> Iterator[_Check]:
    repairs = trace.repairs
    if not repairs.height:
        yield _Check("file", "good", "the file is whole", 0.0)
        return
    lost = int(repairs["events_lost"].sum())
    rows = repairs.select("fault", "count", "offset").head(5).rows()
    faults = "; ".join(f"{fault} ({_times(count, offset)})" for fault, count, offset in rows)
    yield _Check("file", "degraded", f"{faults}; {count_text(lost)} events lost", float(lost))


def _times(count: int, offset: int | None) -> str:
    """How often, and where first in the decompressed text."""
    return count_text(count) + ("" if offset is None else f", first at byte {offset:,}")


def _device(trace: Trace) -> Iterator[_Check]:
    device = of_kind(trace, "device")
    launches = _launches(trace)
    if not device.height:
        if launches.height:
            text = (
                f"{count_text(launches.height)} launches and no device work: the driver's tracing "
                "was not allowed, in use by another tool, or lost; nothing is known of the device"
            )
            yield _Check("launches", "unusable", text, 1.0)
        return
    lost = launches.join(device.select(id="launch"), on="id", how="anti").height
    share = lost / launches.height if launches.height else 0.0
    verdict = "good" if share <= _FEW_LOST else "degraded" if share <= _MANY_LOST else "unusable"
    text = f"{count_text(lost)} of {count_text(launches.height)} launches have no device work"
    yield _Check("launches", verdict, text, share)
    yield from _links(device)
    linked = device.filter(pl.col("launch").is_not_null())
    early = int((linked["start"] < trace.slices["start"].gather(linked["launch"])).sum())
    if early:
        text = f"{count_text(early)} device slices start before their launch: the clocks disagree"
        yield _Check("clocks", "degraded", text, float(early))


def _links(device: pl.DataFrame) -> Iterator[_Check]:
    before = device["launch"].null_count()
    share = before / device.height
    verdict = "degraded" if share > _MUCH_BEFORE else "good"
    text = f"{share_text(share)} of device slices were launched before the recording or elsewhere"
    yield _Check("links", verdict, text, share)


def _launches(trace: Trace) -> pl.DataFrame:
    """Calls that put work on a device; those captured into a graph put none there."""
    host = of_kind(trace, "host")
    launches = whose_name(host, names.is_launch)
    begins = whose_name(host, names.is_capture_begin)["start"].to_numpy()
    ends = whose_name(host, names.is_capture_end)["start"].to_numpy()
    captures = _captures(begins, ends)
    at = launches["start"].to_numpy()
    place = np.searchsorted(captures.starts, at, side="right") - 1
    if not captures.starts.size:
        return launches
    captured = (place >= 0) & (at < captures.ends[place])
    return launches.filter(pl.Series(~captured))


def _captures(begins: np.ndarray, ends: np.ndarray) -> Intervals:
    """From each begin of a capture to the next end."""
    begins, ends = np.sort(begins), np.sort(ends)
    place = np.searchsorted(ends, begins)
    closed = place < ends.size
    return union(begins[closed], ends[place[closed]])


def _steps(trace: Trace) -> Iterator[_Check]:
    found = find_steps(trace)
    if not found.height:
        return
    source = str(found["source"][0])
    if source == "window":
        text = "no steps: the whole recording counts as one, without a spread; call `prof.step()`"
        yield _Check("steps", "degraded", text, float(found.height))
        return
    text = f"{found.height} steps, told by the {source}"
    yield _Check("steps", "good", text, float(found.height))


def _recording(trace: Trace) -> Iterator[_Check]:
    facts = trace.facts
    if facts.get("partial"):
        yield _Check("recording", "degraded", f"it ended early: {facts['partial']}", None)
    overhead = facts.get("overhead")
    ratio = overhead.get("ratio") if isinstance(overhead, dict) else None
    if isinstance(ratio, int | float):
        verdict = "degraded" if ratio > _SLOWED else "good"
        text = f"recorded steps took {ratio:.2f} times as long as those before and after"
        yield _Check("overhead", verdict, text, float(ratio))
