"""Keeps a ledger of the wall time of a loop that reports its steps itself.

It sees from the loop's beginning to its end: its steps, waits for data, evaluations, checkpoints,
garbage collections and slow steps. It lies beside the trace, and goes if there is none.
"""

import sys
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING

from selftime.capture.ledger.run_ledger import RunLedger
from selftime.capture.steps import StepDetector, StepSource

if TYPE_CHECKING:
    from selftime.capture.recorder.recorder import Recorder


class WatchedLedger:
    """The ledger of one watched loop, and what it needs of torch while the loop runs."""

    def __init__(self, recorder: "Recorder") -> None:
        self._recorder = recorder
        self._run = RunLedger(
            recorder.options.folder, command=sys.argv, process_start=perf_counter_ns()
        )
        recorder.ledger = self._run.ledger
        self._steps = StepDetector(
            _ignore,
            recorder.check_limits,
            recorder_work=recorder.recorder_work,
            ledger=self._run.ledger,
        )

    @property
    def path(self) -> Path | None:
        """Returns the path of the ledger's file; None until the first step has ended."""
        return self._run.path

    def begin(self) -> None:
        """Begins with the loop."""
        self._run.start()
        self._run.start_at_first_step()
        self._steps.attach_for_told_steps()

    def end_step(self, source: StepSource) -> None:
        """Ends a step after the recording is complete."""
        with self._recorder.recorder_work:
            self._recorder.step_after_recording(source, is_unusual=False)

    def end(self, reason: str | None, *, is_kept: bool) -> None:
        """Ends with the loop; `reason` says why early. Without `is_kept` the file is deleted."""
        self._steps.detach()
        path = self._run.path
        self._run.finish(reason)
        if path is not None and not is_kept:
            path.unlink(missing_ok=True)

    def abandon_in_forked_child(self) -> None:
        """Drops the ledger in a forked child, since it belongs to the parent."""
        self._steps.detach()
        self._run.abandon()


def _ignore(_source: StepSource) -> None:
    pass
