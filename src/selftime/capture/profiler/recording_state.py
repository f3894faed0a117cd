"""Stores data about one recording that torch's profiler does not keep."""

import os
import shutil
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from selftime.capture import temporary_folders
from selftime.capture.lines.operator_lines import RunningFrame
from selftime.capture.trace_file.trace_corrections import TraceCorrections

_PROFILER_ATTRIBUTES_WITH_RESULTS: Final = ("profiler", "_monitor_trace_window")
"""Names of attributes in which torch's profiler stores what it recorded."""


@dataclass(eq=False)
class RecordingState:
    """Data of one recording: torch's results, exported file, selftime's data and corrections."""

    steps: int = 0
    """Number of complete steps; 0 if the program does not mark steps."""
    partial: str | None = None
    """Why the recording ended early; None if it did not."""
    running_frames: list[RunningFrame] = field(default_factory=list)
    """Python frames that were already running when the recording began."""
    settings: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    paging: dict[str, Any] = field(default_factory=dict)
    json_file: Path | None = None
    """The JSON file that torch's profiler wrote; None before its export."""
    corrections: TraceCorrections = field(default_factory=TraceCorrections)
    """Corrections of event names and times in the profiler's JSON."""
    facts: dict[str, Any] | None = None
    """Data that selftime adds to the trace, by name; None before it was collected."""
    _results_state: dict[str, Any] = field(default_factory=dict)
    _results: Any = None

    def forget(self) -> None:
        """Deletes the recording's exported file, selftime's data on it, and corrections."""
        if self.json_file is not None:
            shutil.rmtree(self.json_file.parent, ignore_errors=True)
        self.json_file = self.facts = self.partial = None
        self.corrections = TraceCorrections()

    def keep_results(self, profiler: Any) -> None:
        """Stores the profiler's results, which its next recording would replace."""
        state = vars(profiler)
        self._results_state = {
            name: state[name] for name in _PROFILER_ATTRIBUTES_WITH_RESULTS if name in state
        }
        self._results = profiler.profiler.kineto_results

    def restore_results(self, profiler: Any) -> None:
        """Puts the results stored by `keep_results` back into torch's profiler."""
        vars(profiler).update(self._results_state)
        # With `acc_events=True` torch keeps one profiler object for all cycles.
        profiler.profiler.kineto_results = self._results

    def make_temporary_folder(self) -> Path:
        """Returns a new temporary folder, deleted with this object or at process end."""
        folder = temporary_folders.make_temporary_folder()
        weakref.finalize(self, _remove_folder_if_same_process, folder, os.getpid())
        return folder


def _remove_folder_if_same_process(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a forked child must not delete the parent's folder
        shutil.rmtree(folder, ignore_errors=True)
