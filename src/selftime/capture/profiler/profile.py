"""Provides `Profile`: torch's profiler, with source lines and other data added to its traces."""

import inspect
import os
import shutil
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch
from torch._C._autograd import _KinetoEvent
from torch._C._profiler import _ProfilerEvent
from torch.profiler import ProfilerAction

from selftime.capture.facts import allocator, notebook_cells
from selftime.capture.facts.cpu_usage import CpuUsage
from selftime.capture.facts.operators import read_operator_facts
from selftime.capture.facts.process import process_facts
from selftime.capture.facts.settings import DenormalDetector, pytorch_settings, torch_compile_facts
from selftime.capture.facts.step_overhead import StepOverhead
from selftime.capture.lines import stacks
from selftime.capture.lines.event_tree import running_python_frames
from selftime.capture.lines.marked_lines import MarkedLines
from selftime.capture.lines.operator_lines import RecordedLines, read_recorded_lines
from selftime.capture.lines.sources import SourceFiles, readable_sys_path
from selftime.capture.profiler import memory_release, older_events
from selftime.capture.profiler.inductor_import import compiler_import
from selftime.capture.profiler.profiler_options import (
    check_profiler_options,
    option_flags,
    profiler_config_with_all_events,
    torchs_table_options,
)
from selftime.capture.profiler.profiler_pitfalls import AlreadyRecording, ProfilerPitfalls
from selftime.capture.profiler.recording_state import RecordedTimes, RecordingState
from selftime.capture.profiler.skipped_frames import reason_to_skip_frames
from selftime.capture.trace_file import trace_files
from selftime.capture.trace_file.trace_corrections import TraceCorrections
from selftime.capture.workers import record as workers
from selftime.errors import RecordingError

if TYPE_CHECKING:
    from selftime.capture.steps import RecorderWork

RECORDING_ACTIONS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class Profile(torch.profiler.profile):
    """Record operators, device work and Python frames, with the arguments of torch's profiler.

    `write_trace` writes the last recording, any number of times, also from `on_trace_ready`.
    """

    __signature__ = inspect.signature(torch.profiler.profile)

    def __init__(self, **options: Any) -> None:
        check_profiler_options(options)
        if options.get("experimental_config") is None:
            with_frames = bool(options.get("with_stack"))
            options["experimental_config"] = profiler_config_with_all_events(frames=with_frames)
        self.pitfalls = ProfilerPitfalls()
        with self.pitfalls.deferred_callback_errors(), self.pitfalls.deferred_torch_warnings():
            super().__init__(**options)
        memory_release.make_profiler_callbacks_weak(self.action_map)
        self.step_times = StepOverhead("prof.step()")
        self.user_packages: tuple[str, ...] = ()
        """Folders of installed packages whose code counts as the user's code."""
        self.marked_lines: MarkedLines | None = None
        """Source lines found in an extra step with a mark per line; None without such a step."""
        self.recorded_times: RecordedTimes | None = None
        """Less disturbed times of such steps, which the trace gets; None to keep its own."""
        self.ledger_name: str | None = None  # the file of the run's ledger, for the facts
        self.slow_step: dict[str, Any] | None = None  # which one of the run it holds, likewise
        self.recorder_work: RecorderWork | None = None
        """Marks selftime's own work, to exclude it from steps; None without a recorder."""
        self.skipped_frames: str | None = None
        """Says why no Python frames are recorded although they were requested; else None."""
        self.running = False  # whether `start` has been called and `stop` has not
        self._recording = RecordingState()
        self._previous_recording: RecordingState | None = None
        """The previous recording, used if the current one has no complete step."""
        self._denormal_watch = DenormalDetector()
        self._step_start_ns: int | None = None
        self._step_start_page_faults: int | None = None
        self._recording_count = 0
        self._ended_by_error = False
        self._paging = allocator.PageFaultCounter()
        self._usage = CpuUsage()

    @property
    def partial(self) -> str | None:
        """Returns why the recording ended early; None if it did not."""
        return self._recording.partial

    @partial.setter
    def partial(self, reason: str | None) -> None:
        self._recording.partial = reason

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None and self.running and self.current_action in RECORDING_ACTIONS:
            self.partial = f"ended by {kind.__name__}"
        self._ended_by_error = kind is not None
        super().__exit__(kind, error, traceback)  # type: ignore[no-untyped-call]  # torch

    def start(self) -> None:
        if self.running:
            raise RecordingError("the profiler runs already; call prof.stop() before prof.start()")
        self.running, self._ended_by_error = True, False
        self._recording.steps = 0  # a new recording starts with none
        try:
            with self.pitfalls.deferred_callback_errors(), self._without_torch_step_annotations():
                super().start()
        except RecordingError:
            self.running = False
            raise
        self._open_step_annotation()

    def stop(self) -> None:
        """Stops recording; results come from the last recording with a complete step.

        A repeating schedule starts another recording, which is empty if the loop ends soon after.
        """
        if not self.running:  # torch would lose the recording
            if self.step_num == 0 and not self._recording_count:
                message = "prof.stop() ends nothing: call prof.start() before"
                self.pitfalls.warn_once("stop", message)
            return
        self.pitfalls.check_recording_thread("stop")
        self._close_step_annotation()
        self.running = False
        is_cut_short = self.current_action in RECORDING_ACTIONS and self.record_steps
        steps = self._recording.steps
        with self.pitfalls.deferred_callback_errors():
            super().stop()
        if self._previous_recording is not None and not self._recording.steps:
            self._recording = self._previous_recording
            self._recording.restore_results(self)
        self._previous_recording = None
        if self._ended_by_error:
            return
        if self.record_steps and not self._recording_count:
            self.pitfalls.warn_never_recorded(self)
        if is_cut_short:
            self.pitfalls.warn_recording_cut_short(self, steps)

    def prepare_trace(self) -> None:
        self.pitfalls.check_no_other_recording()
        if self.with_stack and (reason := reason_to_skip_frames()) is not None:
            self.with_stack = self.with_modules = False
            self.skipped_frames = self.pitfalls.pending["frames"] = reason
        if self._recording.steps:
            self._previous_recording = self._recording
        self._recording = RecordingState()
        with torch.profiler.record_function("warm-up"):  # imports code that is read once freed
            pass
        in_user_code = self.with_stack and self.recorder_work is None  # may make an optimizer
        with self.pitfalls.deferred_torch_warnings(), compiler_import(before_frames=in_user_code):
            super().prepare_trace()
        self.pitfalls.register_recording()

    def start_trace(self) -> None:
        if self.current_action in RECORDING_ACTIONS:
            self._recording_count += 1
            if self.on_trace_ready is not None:  # it has handled that one
                self._previous_recording = None
        if self.with_stack:
            self._recording.running_frames = running_python_frames()
        self._paging.start_counting()
        self._usage.read_at_start()
        workers.on_recording_begin()
        self._denormal_watch.start_watching()
        self.pitfalls.remember_compiled_graph_count()
        super().start_trace()
        if self.recorder_work is not None:
            self.recorder_work.on_recording_start()
        self.pitfalls.remember_recording_thread()

    def stop_trace(self) -> None:
        # Frames are recorded until the stop, so do only what cannot wait.
        if self.recorder_work is not None:
            self.recorder_work.on_recording_stop()
        self._paging.stop_counting()
        self._usage.read_at_end()
        workers.on_recording_end()
        denormals = self._denormal_watch.has_detected_denormals()
        recording, was_ours = self._recording, self.pitfalls.is_torch_still_recording()
        with readable_sys_path():
            self.pitfalls.stop_recording(super().stop_trace)
        # Read while the program's contexts are still entered.
        recording.settings = {**pytorch_settings(), "denormals": denormals}
        recording.usage, recording.paging = self._usage.usage_facts(), self._paging.fault_facts()
        self.pitfalls.check_finished_recording(self, was_ours=was_ours)
        recording.keep_results(self)
        if recording.steps:
            self._previous_recording = None
        memory_release.return_freed_memory()

    def step(self) -> None:
        now = time.perf_counter_ns()
        if not self.running:  # torch would start recording, or crash
            self.pitfalls.warn_once(
                "step", "prof.step() marks nothing: the profiler does not run; call prof.start()"
            )
            return
        if self.pitfalls.thread != threading.get_ident():
            self.pitfalls.check_recording_thread("step")
        self._close_step_annotation()
        if not self.record_steps:
            self.pitfalls.warn_once(
                "plan",
                "prof.step() marks no step without a schedule; pass schedule=selftime.schedule("
                "wait=1, warmup=1, active=3, repeat=1) to the profiler",
            )
        # From here on calls are recorded as frames, so there are few.
        if self.current_action in RECORDING_ACTIONS:
            self._recording.steps += 1
            if self._step_start_ns is not None:  # the first step is a warm-up
                self.step_times.profiled.append(now - self._step_start_ns)
        elif self.current_action == ProfilerAction.NONE and self._step_start_ns is not None:
            faults = allocator.page_fault_count_since(self._step_start_page_faults)
            self.step_times.add_unprofiled(now - self._step_start_ns, faults)
        try:
            self._advance_schedule()
        except AlreadyRecording:
            # Continue without: torch cannot stop a recording that it never started.
            self.current_action = self._prev_schedule_action = ProfilerAction.NONE
            raise
        finally:
            if self.current_action == ProfilerAction.NONE:
                self._step_start_page_faults = allocator.page_fault_count()
            self._open_step_annotation()
            self._step_start_ns = time.perf_counter_ns()

    def _open_step_annotation(self) -> None:
        """Begins a step's annotation in the trace, after selftime's and torch's own work."""
        if self.record_steps:
            self.step_rec_fn = torch.profiler.record_function(f"ProfilerStep#{self.step_num}")
            self.step_rec_fn.__enter__()  # type: ignore[no-untyped-call]  # torch

    def _close_step_annotation(self) -> None:
        """Ends a step's annotation in the trace, before selftime's and torch's own work."""
        mark, self.step_rec_fn = self.step_rec_fn, None
        if mark is not None:
            mark.__exit__(None, None, None)

    @contextmanager
    def _without_torch_step_annotations(self) -> Iterator[None]:
        """Prevents torch's own annotations of steps, whose times are inexact."""
        marked, self.record_steps = self.record_steps, False
        try:
            yield
        finally:
            self.record_steps = marked

    def _advance_schedule(self) -> None:
        """Advances torch's profiler to the next step of its schedule."""
        try:
            with self._without_torch_step_annotations():
                super().step()
        finally:
            if self.pitfalls.callback_error is not None:
                self.pitfalls.raise_callback_error()
        if self.pitfalls.pending:
            self.pitfalls.show_pending_warnings()

    def _trace_ready(self) -> None:
        with self.pitfalls.trace_ready_callback(self.schedule):
            super()._trace_ready()

    def write_trace(self, path: str | os.PathLike[str], *, use_python_export: bool = False) -> None:
        """Writes the last recording to a trace file; compressed if the name ends in `.gz`.

        The file appears when it is complete. A RecordingError says why it cannot be written.
        """
        trace_files.checked_local_path(path)
        self.pitfalls.warn_if_overwritten(path, self._recording_count)
        recording = self._recording
        if use_python_export:
            json_file = recording.make_temporary_folder() / "trace.json"
            super().export_chrome_trace(str(json_file), use_python_export=True)
            trace_files.write_trace_with_facts(json_file, path, self.facts())
            shutil.rmtree(json_file.parent)
            return
        if recording.json_file is None:
            self._results()
            json_file = recording.make_temporary_folder() / "trace.json"
            super().export_chrome_trace(str(json_file))
            recording.json_file = json_file
        facts = self.facts()  # finds the corrections
        trace_files.write_trace_with_facts(recording.json_file, path, facts, recording.correct_json)

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Writes the last recording to a trace file; same as `write_trace`."""
        self.write_trace(path, use_python_export=use_python_export)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes Python stacks, outermost frame first, with self times in ns, for flame graphs."""
        stacks.check_metric(metric)
        if not self.with_stack:
            raise RecordingError("no stacks were recorded; pass with_stack=True to the profiler")
        events = None if metric == "self_cpu_time_total" else self._results().events()
        times = None if events is None else stacks.device_time_by_operator(events)
        lines = list(stacks.folded_stacks(self._event_tree(), device_times=times))
        trace_files.write_text_file(path, "".join(f"{line}\n" for line in lines))
        if not lines:
            why = f"no operator under a Python frame has `{metric}`: {path} is empty"
            warnings.warn(why, stacklevel=2)

    def facts(self) -> dict[str, Any]:
        """Returns what selftime adds to torch's trace of the last recording, by name."""
        recording = self._recording
        if recording.facts is None:
            events = self.recorded_events()  # slow, so read once
            recording.corrections = TraceCorrections.from_events(events)
            recording.take_times(self.recorded_times, events, self.step_times)
            operators = read_operator_facts(events)
            lines, sources = RecordedLines({}, {}), SourceFiles(self.user_packages)
            if self.with_stack:
                lines = read_recorded_lines(
                    self._event_tree(),
                    sources=sources,
                    running_frames=recording.running_frames,
                    forward_operator=operators.forward_operator,
                    marked_lines=self.marked_lines,
                )
            recording.facts = {
                **process_facts(),
                "flags": option_flags(self),
                "settings": recording.settings,
                "steps": self.step_times.step_duration_facts(),
                "overhead": self.step_times.overhead_ratio_and_medians(),
                "usage": recording.usage,
                "workers": workers.current_worker_facts(),
                "allocator": {"devices": allocator.device_memory_stats(), **recording.paging},
                "compiler": torch_compile_facts(),
                "partial": recording.partial,
                "ledger": self.ledger_name,
                "slow_step": self.slow_step,
                "cells": notebook_cells.cell_facts(sources.user_files(), recording.first_cell),
                **lines.facts(),
                "ops": operators.columns(),
            }
        return recording.facts

    @property
    def last_recording(self) -> RecordingState:
        """Returns what is known of the last recording besides its events."""
        return self._recording

    def recorded_events(self) -> list[_KinetoEvent]:
        """Returns the events of the last recording as torch has them in memory."""
        return older_events.complete_events(self._results())

    def _results(self) -> Any:
        results = None if self.profiler is None else self.profiler.kineto_results
        if results is None:
            raise self.pitfalls.no_results_error(self)
        return results

    def _event_tree(self) -> list[_ProfilerEvent]:
        tree: list[_ProfilerEvent] = self._results().experimental_event_tree()
        return tree

    def events(self) -> Any:
        """Returns the events of the last recording as torch's `FunctionEvent` objects."""
        self._results()
        return super().events()  # type: ignore[no-untyped-call]  # torch

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool | None = None,
    ) -> Any:
        """Returns torch's own table of operator averages for the last recording."""
        self._results()
        options = torchs_table_options(group_by_overload_name, include_python_functions)
        return super().key_averages(group_by_input_shape, group_by_stack_n, **options)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Writes torch's memory timeline of the last recording, a format that torch deprecates."""
        self._results()
        super().export_memory_timeline(path, device)

    def forget(self) -> None:
        """Deletes the data and files of the last recording."""
        self._recording.forget()
        if self.recorded_times is not None:
            self.recorded_times.forget()
        self._previous_recording = None
