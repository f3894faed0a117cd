"""Whether the clocks of host and device agree."""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime.nesting import BLEED
from selftime.units import count_text, share_text
from selftime.views.accounts.device.impossible import overruns
from selftime.views.accounts.trust.checks import MANY, Check, Verdict, examples
from selftime.views.accounts.trust.recording import Recording

__all__ = ["clocks"]

_AFFECTS: Final = "launch delays, idle causes, waits"


def clocks(recording: Recording) -> Iterator[Check]:
    """Work before its launch, and work after the wait that it had to be done for."""
    device = recording.device.filter(pl.col("launch").is_not_null())
    launched = recording.trace.slices["start"].gather(device["launch"])
    early = device.filter(device["start"] < launched)
    if early.height:
        text = f"{count_text(early.height)} device slices start before their launch"
        yield _check(text, early, device.height)
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
