"""Stores data about one recording that torch's profiler does not keep."""

import os
import shutil
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from torch._C._autograd import _KinetoEvent

from selftime.capture import temporary_folders
from selftime.capture.facts.notebook_cells import current_cell_count
from selftime.capture.facts.step_overhead import StepOverhead
from selftime.capture.lines.operator_lines import RunningFrame
from selftime.capture.trace_file.json_times import replace_times
from selftime.capture.trace_file.time_mapping import TimeMapping
from selftime.capture.trace_file.trace_corrections import TraceCorrections

_PROFILER_ATTRIBUTES_WITH_RESULTS: Final = ("profiler", "_monitor_trace_window")
"""Names of attributes in which torch's profiler stores what it recorded."""


class RecordedTimes(Protocol):
    """Times of as many steps of the same loop, recorded without what slows a recording."""

    @property
    def usage(self) -> dict[str, Any] | None:
        """Returns how much of the cores was used in these steps."""

    @property
    def paging(self) -> dict[str, Any]:
        """Returns the page faults in these steps."""

    @property
    def first_step(self) -> int | None:
        """Returns the number of the first of these steps in the run, from 1; None if unknown."""

    def mapping(
        self, events: Iterable[_KinetoEvent], unrecorded_ns: list[int]
    ) -> TimeMapping | None:
        """Returns the mapping of the times of a recording's events to these; None without any."""

    def forget(self) -> None:
        """Deletes what was recorded."""


@dataclass(eq=False)
class RecordingState:
    """Data of one recording: torch's results, exported file, selftime's data and corrections."""

    steps: int = 0
    """Number of complete steps; 0 if the program does not mark steps."""
    partial: str | None = None
    """Why the recording ended early; None if it did not."""
    running_frames: list[RunningFrame] = field(default_factory=list)
    """Python frames that were already running when the recording began."""
    first_cell: int = field(default_factory=current_cell_count)
    """Execution count of the notebook cell that began the recording; 0 outside of IPython."""
    settings: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    paging: dict[str, Any] = field(default_factory=dict)
    json_file: Path | None = None
    """The JSON file that torch's profiler wrote; None before its export."""
    corrections: TraceCorrections = field(default_factory=TraceCorrections)
    """Corrections of event names and times in the profiler's JSON."""
    time_mapping: TimeMapping | None = None
    """Maps the events' times to those of another recording; None to keep them."""
    facts: dict[str, Any] | None = None
    """Data that selftime adds to the trace, by name; None before it was collected."""
    _results_state: dict[str, Any] = field(default_factory=dict)
    _results: Any = None

    def take_times(
        self, times: RecordedTimes | None, events: Iterable[_KinetoEvent], step_times: StepOverhead
    ) -> None:
        """Gives the recording's events the less disturbed times of such steps, if there are any."""
        mapping = None if times is None else times.mapping(events, step_times.unprofiled)
        if times is None or mapping is None:
            return
        self.time_mapping, self.usage, self.paging = mapping, times.usage, times.paging
        step_times.first_step = times.first_step
        step_times.replace_profiled(
            mapping.step_durations_ns, mapping.recorded_durations_ns, mapping.matched_share
        )

    def correct_json(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yields the profiler's JSON in chunks, with correct names and times."""
        corrected = self.corrections.correct_json(chunks)
        if self.time_mapping is None:
            return corrected
        return replace_times(corrected, self.time_mapping)

    def forget(self) -> None:
        """Deletes the recording's exported file, selftime's data on it, and corrections."""
        if self.json_file is not None:
            shutil.rmtree(self.json_file.parent, ignore_errors=True)
        self.json_file = self.facts = self.partial = None
        self.corrections, self.time_mapping = TraceCorrections(), None

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
