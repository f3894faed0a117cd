"""What a file holds: whether it is a recording of PyTorch at all, whole, and understood."""

from collections.abc import Iterator

import polars as pl

from selftime.units import count_text
from selftime.views.accounts.named import of_kind
from selftime.views.accounts.trust.checks import FEW, Check, Verdict
from selftime.views.accounts.trust.recording import Recording

__all__ = ["content", "file", "operators"]


def content(recording: Recording) -> Iterator[Check]:
    """How much there is, and what of it is of a kind that is not known."""
    work = recording.host.height + recording.device.height
    if not work:
        text = "no operator, runtime call or kernel: this is not a trace of PyTorch's profiler"
        yield Check("content", "unusable", text, 0.0, "everything")
        return
    yield Check("content", "good", f"{count_text(work)} slices on host and device", float(work))
    other = of_kind(recording.trace, "other")
    if other.height:
        share = other.height / recording.trace.slices.height
        kinds = ", ".join(f"`{c}`" for c in other["category"].cast(pl.String).unique().sort()[:5])
        verdict: Verdict = "degraded" if share > FEW else "good"
        text = f"{count_text(other.height)} slices of unknown category ({kinds}) are in no total"
        yield Check("categories", verdict, text, share, "totals, kernels")


def file(recording: Recording) -> Iterator[Check]:
    """What was wrong with the file's text."""
    told = recording.trace.repairs
    notes, repairs = told.filter(told["note"]), told.filter(~told["note"])
    if not repairs.height:
        text = "; ".join(["the file is whole", *notes["fault"]])
        yield Check("file", "good", text, 0.0)
        return
    lost = int(repairs["events_lost"].sum())
    rows = repairs.select("fault", "count", "offset").head(5).rows()
    faults = "; ".join(f"{fault} ({_times(count, offset)})" for fault, count, offset in rows)
    text = f"{faults}; {count_text(lost)} events lost"
    yield Check("file", "degraded", text, float(lost), "what the lost events told")


def _times(count: int, offset: int | None) -> str:
    """How often, and where first in the decompressed text."""
    return count_text(count) + ("" if offset is None else f", first at byte {offset:,}")


def operators(recording: Recording) -> Iterator[Check]:
    """Device work alone says what ran, and not what for."""
    if recording.device.height and not recording.operators.height:
        text = "no operator was recorded: what launched the device's work is not known"
        yield Check("operators", "degraded", text, 0.0, "operators, lines, modules, shapes")
