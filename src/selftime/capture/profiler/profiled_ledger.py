"""Keeps a ledger of the wall time of a program that `selftime.profile` records by a schedule.

While the profiler records, only the ends of steps are noted: whatever else was done would be in the
recording. The ledger is held in memory, and is written beside each trace.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path
from time import perf_counter_ns

from selftime.capture.ledger.file import LedgerInMemory
from selftime.capture.ledger.run_ledger import RunLedger
from selftime.capture.recorder.step_watch import ACTIVE_RECORDER
from selftime.capture.steps import StepDetector, StepSource
from selftime.ledger_format import LEDGER_SUFFIX

_TRACE_SUFFIXES = (".gz", ".json", ".trace", ".pt")
"""Suffixes that are taken off a trace's name, in this order, to name its ledger."""


class ProfiledLedger:
    """The ledger from the start of a profiler to its stop."""

    def __init__(self) -> None:
        self._run: RunLedger | None = None
        self._steps: StepDetector | None = None
        self._file = LedgerInMemory()
        self.recorded_step_ends: list[int] = []
        """Instants in ns at which recorded steps have ended that the ledger does not have yet."""

    def start(self) -> None:
        """Begins a ledger, unless the program runs under `selftime run`, which keeps one."""
        if self._run is not None or ACTIVE_RECORDER.step_listener is not None:
            return
        self._file = LedgerInMemory()
        self._run = RunLedger(Path(), command=sys.argv, process_start=perf_counter_ns())
        self._run.ledger.file = self._file
        self._run.start()
        self._run.write_while_running()
        self._attach()

    def end_step(self, at: int) -> None:
        """Ends a step at an instant, in ns, that was not recorded."""
        if self._run is not None:
            self._run.ledger.end_segment(at, "step", is_usual=True)

    def pause(self) -> None:
        """Takes everything of the ledger's out of the program, before the profiler starts."""
        if self._run is not None:
            self._run.ledger.pause_readings()
            self._detach()

    def resume(self) -> None:
        """Goes on after the profiler has stopped."""
        if self._run is None:
            return
        ends = list(self.recorded_step_ends)
        self.recorded_step_ends.clear()
        for at in ends:
            self._run.ledger.end_segment(at, "step", is_usual=True, is_recorded=True)
        self._run.ledger.resume_readings()
        self._attach()

    def stop(self, reason: str | None) -> None:
        """Ends the ledger; `reason` says why early, None for the usual end."""
        run, self._run = self._run, None
        if run is not None:
            self._detach()
            run.finish(reason)

    def write_beside(self, trace: Path) -> None:
        """Writes what the ledger holds so far to a file beside a trace, if it has a step."""
        if self._run is not None:
            self._run.ledger.flush()
        with suppress(OSError):  # the trace is what was asked for
            text = self._file.text(None if self._run is None else perf_counter_ns())
            trace.with_name(ledger_name_of(trace)).write_bytes(text)

    @property
    def has_steps(self) -> bool:
        return self._file.has_begun or (self._run is not None and self._run.ledger.steps > 0)

    def _attach(self) -> None:
        if self._run is not None:
            self._steps = StepDetector(_ignore, _nothing, ledger=self._run.ledger)
            self._steps.attach_for_told_steps()

    def _detach(self) -> None:
        steps, self._steps = self._steps, None
        if steps is not None:
            steps.detach()


def ledger_name_of(trace: str | os.PathLike[str]) -> str:
    """Returns the file name of the ledger beside a trace file."""
    name = Path(trace).name
    for suffix in _TRACE_SUFFIXES:
        name = name.removesuffix(suffix)
    return f"{name}{LEDGER_SUFFIX}"


def _ignore(_source: StepSource) -> None:
    pass


def _nothing() -> None:
    pass
