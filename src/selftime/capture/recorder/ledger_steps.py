"""Takes down the steps of a program in the ledger of its run."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from selftime.capture.ledger.ledger import Ledger
from selftime.capture.steps import StepSource
from selftime.ledger_format import UNUSUAL_KIND_SUFFIX

_STEP_KINDS: Final = {(source, False): source.work for source in StepSource} | {
    (source, True): source.work + UNUSUAL_KIND_SUFFIX for source in StepSource
}
"""The kind of step by its source, and by whether it differs from most."""


def ledger_name(ledger: Ledger | None) -> str | None:
    """Returns the name of a ledger's file; None if there is no ledger, or nothing is written."""
    return None if ledger is None else ledger.file.name


@contextmanager
def recording_time(ledger: Ledger | None) -> Iterator[None]:
    """Counts the time of a block as selftime's own recording, in the ledger of the run if any."""
    if ledger is not None:
        ledger.activities.enter("recording")
    try:
        yield
    finally:
        if ledger is not None:
            ledger.activities.leave()


def end_ledger_step(
    ledger: Ledger,
    source: StepSource,
    ended_ns: int,
    is_unusual: bool,
    *,
    is_recorded: bool = False,
) -> None:
    """Ends a step in the ledger of a run's wall time.

    Args:
        ledger: The ledger.
        source: How the step was found, which determines its kind.
        ended_ns: When it ended, in ns of `time.perf_counter_ns`.
        is_unusual: Whether it differs from most steps.
        is_recorded: Whether a profiler recorded it.
    """
    kind = _STEP_KINDS[source, is_unusual]
    ledger.end_segment(ended_ns, kind, is_usual=not is_unusual, is_recorded=is_recorded)
