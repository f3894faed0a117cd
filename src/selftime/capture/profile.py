"""`torch.profiler.profile`, with files that hold what the recorder alone knows.

`Profile` takes every argument of torch's class and has its methods, so a tutorial's code runs with
its import changed. Its traces carry exact source lines and facts of the run (see `facts`).
"""

import inspect
import os
import shutil
import threading
import time
import warnings
from collections.abc import Callable
from types import MethodType, TracebackType
from typing import Any
from weakref import WeakMethod

import torch
from torch._C._profiler import _ProfilerEvent
from torch.profiler import ProfilerAction

from selftime.capture import profiler_pitfalls, trace_files
from selftime.capture.facts import allocator
from selftime.capture.facts.operators import read_operators
from selftime.capture.facts.overhead import StepTimes
from selftime.capture.facts.process import process_facts
from selftime.capture.facts.settings import Watch, compiler_facts, settings
from selftime.capture.facts.usage import Usage
from selftime.capture.heap import give_back
from selftime.capture.lines import stacks
from selftime.capture.lines.line_marks import Marks
from selftime.capture.lines.operator_lines import columns, read_lines
from selftime.capture.lines.sources import SourceFiles, readable_path
from selftime.capture.lines.walk import open_frames
from selftime.capture.profiler_options import records_collections, switched_on
from selftime.capture.recording import Recording
from selftime.capture.workers import record as workers
from selftime.errors import RecordingError, UsageError

RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class Profile(torch.profiler.profile):
    """Records what operators, devices and Python do; every argument is torch's own.

    `write_trace` writes what was recorded last, as often as wanted, also from `on_trace_ready`.
    """

    __signature__ = inspect.signature(torch.profiler.profile)

    def __init__(self, **options: Any) -> None:
        profiler_pitfalls.check_options(options)
        if options.get("experimental_config") is None:
            options["experimental_config"] = switched_on(frames=bool(options.get("with_stack")))
        self.traps = profiler_pitfalls.Traps()
        with self.traps.settled(), self.traps.torchs_warnings():
            super().__init__(**options)
        _hold_weakly(self.action_map)
        self.step_times = StepTimes("prof.step()")
        self.own_code: tuple[str, ...] = ()
        """Folders of installed code that counts as the user's."""
        self.stamps: Marks | None = None
        """What a step under line marks tells of the lines; set it before the facts are read."""
        self.running = False
        """Between `start` and `stop`."""
        self._recording = Recording()
        self._whole: Recording | None = None
        """The recording before this one, for the case that this one ends without a whole step."""
        self._denormals = Watch()
        self._step_began: int | None = None
        self._step_faults: int | None = None
        self._recordings = 0
        self._ended_by_error = False
        self._paging = allocator.Paging()
        self._usage = Usage()

    @property
    def partial(self) -> str | None:
        """Why the recording ended before its time, if it did."""
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
        if kind is not None and self.running and self.current_action in RECORDING:
            self.partial = f"ended by {kind.__name__}"
        self._ended_by_error = kind is not None
        super().__exit__(kind, error, traceback)  # type: ignore[no-untyped-call]  # torch

    def start(self) -> None:
        if self.running:
            raise RecordingError("the profiler runs already; call prof.stop() before prof.start()")
        self.running, self._ended_by_error = True, False
        self._recording.steps = 0  # what was stopped before is no part of what begins
        try:
            with self.traps.settled():
                super().start()
        except RecordingError:
            self.running = False
            raise

    def stop(self) -> None:
        """End; what is asked for now is of the last recording that holds a whole step.

        A schedule that repeats begins another recording, and a loop that ends soon after leaves
        nothing in it.
        """
        if not self.running:  # torch would lose what was recorded
            if self.step_num == 0 and not self._recordings:
                self.traps.tell("stop", "prof.stop() ends nothing: call prof.start() before")
            return
        self.traps.check_thread("stop")
        self.running = False
        cut = self.current_action in RECORDING and self.record_steps
        steps = self._recording.steps
        with self.traps.settled():
            super().stop()
        if self._whole is not None and not self._recording.steps:
            self._recording = self._whole
            self._recording.restore(self)
        self._whole = None
        if self._ended_by_error:
            return
        if self.record_steps and not self._recordings:
            self.traps.never_recorded(self)
        if cut:
            self.traps.cut_short(self, steps)

    def prepare_trace(self) -> None:
        self.traps.before_prepare()
        if self._recording.steps:
            self._whole = self._recording
        self._recording = Recording()
        # torch imports a module at the first annotation. A recorder that sees an import reads the
        # name of its code when that is gone.
        with torch.profiler.record_function("warm-up"):
            pass
        with self.traps.torchs_warnings():
            super().prepare_trace()
        self.traps.after_prepare()

    def start_trace(self) -> None:
        if self.current_action in RECORDING:
            self._recordings += 1
            if self.on_trace_ready is not None:  # it was told; two at once cost memory
                self._whole = None
        if self.with_stack:
            self._recording.opened = open_frames()
        self._paging.begin()
        self._usage.begin()
        workers.begin()
        self._denormals.begin()
        self.traps.before_record()
        super().start_trace()
        self.traps.after_start()

    def stop_trace(self) -> None:
        # A recorder of stacks records what is called before it stops: only what cannot wait.
        self._paging.end()
        self._usage.end()
        workers.end()
        denormals = self._denormals.met()
        recording, ours = self._recording, self.traps.before_stop()
        with readable_path():
            self.traps.stopping(super().stop_trace)
        # The program's own contexts are open still.
        recording.settings = {**settings(), "denormals": denormals}
        recording.usage, recording.paging = self._usage.facts(), self._paging.facts()
        self.traps.after_stop(self, ours=ours)
        recording.hold(self)
        if recording.steps:
            self._whole = None
        give_back()

    def step(self) -> None:
        now = time.perf_counter_ns()
        if not self.running:  # torch would begin to record, or crash
            self.traps.tell(
                "step", "prof.step() marks nothing: the profiler does not run; call prof.start()"
            )
            return
        if self.traps.thread != threading.get_ident():
            self.traps.check_thread("step")
        if not self.record_steps:
            self.traps.tell(
                "plan",
                "prof.step() marks no step without a schedule; pass schedule=selftime.schedule("
                "wait=1, warmup=1, active=3, repeat=1) to the profiler",
            )
        # A recorder of stacks records each call from here on: there are few.
        if self.current_action in RECORDING:
            self._recording.steps += 1
            if self._step_began is not None:  # the first step warms the program up: not timed
                self.step_times.profiled.append(now - self._step_began)
        elif self.current_action == ProfilerAction.NONE and self._step_began is not None:
            faults = allocator.faults_since(self._step_faults)
            self.step_times.add_unprofiled(now - self._step_began, faults)
        try:
            self._advance()
        except (
            profiler_pitfalls.TwoRecorders
        ):  # go on without: torch cannot stop what it never began
            self.current_action = self._prev_schedule_action = ProfilerAction.NONE
            raise
        if self.current_action == ProfilerAction.NONE:
            self._step_faults = allocator.page_faults()
        self._step_began = time.perf_counter_ns()

    def _advance(self) -> None:
        """Let torch go on to the next step, as `settled` does, but for the cost of it."""
        try:
            super().step()
        finally:
            if self.traps.failed is not None:
                self.traps.raise_failed()
        if self.traps.pending:
            self.traps.tell_pending()

    def _trace_ready(self) -> None:
        with self.traps.callback(self.schedule):
            super()._trace_ready()

    def write_trace(self, path: str | os.PathLike[str], *, use_python_export: bool = False) -> None:
        """Write the trace of the last recording, facts inside; gzip if the name ends in `.gz`.

        The file appears when it is whole. Writing again gives the same contents.
        """
        trace_files.local_path(path)
        self.traps.file_written(path, self._recordings)
        recording = self._recording
        if use_python_export:
            folder = recording.folder()
            super().export_chrome_trace(str(folder / "trace.json"), use_python_export=True)
            trace_files.write(folder / "trace.json", path, self.facts())
            shutil.rmtree(folder)
            return
        if recording.body is None:
            self._results()
            body = recording.folder() / "trace.json"
            super().export_chrome_trace(str(body))
            recording.body = body
        trace_files.write(recording.body, path, self.facts())

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Write the trace of the last recording: torch's name for `write_trace`."""
        self.write_trace(path, use_python_export=use_python_export)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write Python stacks, root first, with the self time of their operators in nanoseconds."""
        if metric not in stacks.METRICS:
            known = ", ".join(stacks.METRICS)
            raise UsageError(f"`metric` is `{metric}`; choose one of {known}")
        if not self.with_stack:
            raise RecordingError("no stacks were recorded; pass with_stack=True to the profiler")
        results = self._results()
        host = metric == "self_cpu_time_total"
        device = None if host else stacks.device_times(results.events())
        lines = list(stacks.folded(self._tree(), device=device))
        trace_files.write_text(path, "".join(f"{line}\n" for line in lines))
        if not lines:
            text = f"no operator under a Python frame has `{metric}`: {path} is empty"
            warnings.warn(text, UserWarning, stacklevel=2)

    def facts(self) -> dict[str, Any]:
        """What the trace of the last recording lacks; see docs/formats.md."""
        recording = self._recording
        if recording.facts is None:
            operators = read_operators(self._results().events())
            places = {}
            if self.with_stack:
                sources = SourceFiles(self.own_code)
                places = read_lines(
                    self._tree(),
                    sources=sources,
                    opened=recording.opened,
                    forward=operators.forward,
                    stamps=self.stamps,
                )
            recording.facts = {
                **process_facts(),
                "flags": self._flags(),
                "settings": recording.settings,
                "steps": self.step_times.facts(),
                "overhead": self.step_times.overhead(),
                "usage": recording.usage,
                "workers": workers.facts(),
                "allocator": {"devices": allocator.devices(), **recording.paging},
                "compiler": compiler_facts(),
                "partial": recording.partial,
                "lines": columns(places),
                "ops": operators.columns(),
            }
        return recording.facts

    def event_count(self) -> int:
        """How many events the last recording holds."""
        return len(self._results().events())

    def _flags(self) -> dict[str, bool | None]:
        return {
            "record_shapes": self.record_shapes or self.with_flops,
            "profile_memory": self.profile_memory,
            "with_stack": self.with_stack,
            "with_flops": self.with_flops,
            "with_modules": self.with_modules,
            "record_python_gc_info": self.with_stack
            and records_collections(self.experimental_config),
        }

    def _results(self) -> Any:
        results = None if self.profiler is None else self.profiler.kineto_results
        if results is None:
            raise self.traps.unread(self)
        return results

    def _tree(self) -> list[_ProfilerEvent]:
        tree: list[_ProfilerEvent] = self._results().experimental_event_tree()
        return tree

    def events(self) -> Any:
        """The events of the last recording, as torch's `FunctionEvent`."""
        self._results()
        return super().events()  # type: ignore[no-untyped-call]  # torch

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> Any:
        """Torch's own table of the last recording."""
        self._results()
        return super().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Write torch's own timeline of memory; torch will drop it."""
        self._results()
        super().export_memory_timeline(path, device)

    def forget(self) -> None:
        """Drop what is kept of the last recording, its files too."""
        self._recording.forget()
        self._whole = None


def _hold_weakly(actions: dict[Any, list[Any]]) -> None:
    """Let a profiler not hold itself: what it recorded is freed as soon as nobody has it."""
    for listed in actions.values():
        listed[:] = [_weakly(act) if isinstance(act, MethodType) else act for act in listed]


def _weakly(method: MethodType) -> Callable[[], Any]:
    reference = WeakMethod(method)

    def act() -> Any:
        found = reference()
        return None if found is None else found()

    return act
