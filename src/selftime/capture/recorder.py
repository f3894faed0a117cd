"""Records a few steady steps of a program whose steps are told from outside.

Boundaries come between steps. Of a training loop's steps, by default:

    1     sets the program up, and is not looked at
    2     is recorded for the case that the program ends soon, and dropped later
    3     is timed without the recorder
    4     warms the recorder up
    5-9   are recorded
    10-14 are timed without the recorder; then the trace is written

Nobody can know whether a tenth step will come. A program that ends sooner leaves what was recorded
last, marked as partial.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path
from typing import Final

from torch._C._autograd import _enable_record_function, _profiler_enabled
from torch.profiler import ProfilerAction, schedule

from selftime.capture import machine, trace_files
from selftime.capture.allocator import faults_since, page_faults
from selftime.capture.chatter import without_marks
from selftime.capture.overhead import StepTimes
from selftime.capture.profile import Profile
from selftime.capture.run_options import RunOptions
from selftime.capture.steps import Source
from selftime.errors import RecordingError
from selftime.units import bytes_text

__all__ = ["Recorder"]

EVENT_BYTES: Final = 400
"""Bytes of an event in the trace's JSON; 383 were measured with shapes and stacks."""

STEPS_AFTER: Final = 5
"""Steps that are timed after a recording."""

_MARK: Final = (
    "to mark steps yourself, put its loop in `with selftime.profile(schedule="
    "selftime.schedule(wait=1, warmup=1, active=5, repeat=1)) as prof:`, end each round with "
    "`prof.step()`, `print(prof.advise())` after the loop, and run it with `python`"
)
"""What to do where nothing tells the steps of a program."""


class _State(Enum):
    WAITING = auto()
    EARLY = auto()
    SKIPPING = auto()
    WARMING = auto()
    RECORDING = auto()
    AFTER = auto()
    DONE = auto()


class Recorder:
    """Goes from one state to the next at each boundary between steps."""

    def __init__(
        self, options: RunOptions, own_code: Callable[[], tuple[str, ...]] = tuple
    ) -> None:
        self.options = options
        self._own_code = own_code
        self.source: Source | None = None
        self.seen = 0
        """Boundaries so far, of the source that is believed."""
        self.recorded = 0
        """Whole steps in the trace that was written."""
        self.traces: list[Path] = []
        self.partial: str | None = None
        """Why the trace holds less than was asked for."""
        self.reason: str | None = None
        """Why there is no trace."""
        self.abandoned = False
        """Whether this is a child that was forked within a recording."""
        self._state = _State.WAITING
        self._busy = False
        self._closed = False
        self._times = StepTimes("")
        self._early: Profile | None = None
        self._early_step: list[int] = []
        """The duration of the step in it."""
        self._profile: Profile | None = None
        self._active = options.active
        self._after = 0
        self._written: tuple[Source | None, int, str | None] | None = None
        self._step_began = 0
        self._step_faults: int | None = None
        self._recording_began = 0.0
        self._process = os.getpid()
        self.on_start: Callable[[], None] = _nothing
        """Called when the first recording starts."""
        self.on_done: Callable[[], None] = _nothing
        """Called when nothing more will be recorded."""
        self.beside: Callable[[], str] = str
        """Asked what to add where nothing was found."""

    @property
    def recording(self) -> bool:
        return self._state in (_State.EARLY, _State.WARMING, _State.RECORDING)

    @property
    def final(self) -> bool:
        """Whether no better source of steps can come."""
        return self._closed or (self.source is not None and self.source.ends_steps)

    @property
    def past_modules(self) -> bool:
        """Whether module calls can tell nothing better."""
        return self.source is not None and self.source >= Source.MODULE

    def boundary(self, source: Source) -> None:
        """A step has ended and another begins."""
        if self._busy or self._closed or os.getpid() != self._process:
            return
        now = time.perf_counter_ns()
        self._busy = True
        try:
            if self.source is None or source > self.source:
                self._believe(source)
            if source == self.source and self._state is not _State.DONE:
                self.seen += 1
                self._advance(now - self._step_began)
        finally:
            self._busy = False
            self._step_faults = page_faults()
            self._step_began = time.perf_counter_ns()

    def abandon(self) -> None:
        """In a forked child: what the fork left running records for nobody."""
        self.abandoned = self.recording
        if self.abandoned:
            _enable_record_function(False)
            sys.setprofile(None)

    def pulse(self) -> None:
        """Time passes within a step: a recording that takes too long is ended here."""
        if not self._busy and self.recording and self._overdue():
            self.finish(f"the limit of {self.options.seconds:g} s was reached within a step")

    def leave_to(self, rival: str) -> None:
        """Something else records from now on: end for good."""
        if not self._busy and os.getpid() == self._process:
            self.finish(f"{rival} began to record")
            self._state, self._closed = _State.DONE, True
            if not self.traces:
                self.reason = f"{rival} began to record, and only one recorder can run at a time"

    def finish(self, reason: str | None) -> None:
        """End now: write what there is; `reason` tells why if the program did not simply end."""
        if self._busy or self._state is _State.DONE or os.getpid() != self._process:
            return
        self._busy = True
        try:
            self._finish(reason)
        finally:
            self._busy = False

    def _believe(self, source: Source) -> None:
        """Begin anew with a better source of steps: what was recorded by a lesser one goes."""
        if self._state is _State.AFTER:  # it is whole, and nobody knows whether better comes
            self._write(self._profile, None)
        for profile in (self._early, self._profile):
            _stop(profile)
        self.source, self.seen, self.recorded = source, 0, 0
        self._early = self._profile = None
        self._times = StepTimes(source.label)
        self._state = _State.WAITING

    def _advance(self, elapsed: int) -> None:
        """`elapsed` is the duration of the step that has just ended."""
        warmup = max(self.options.warmup, 1)
        if self._state is _State.WAITING and warmup > 1:
            self._start_early()
        elif self._state is _State.EARLY:
            self._end_early(elapsed)
        elif self._state is _State.SKIPPING:
            self._times.add_unprofiled(elapsed, faults_since(self._step_faults))
        elif self._state is _State.WARMING:
            self._state = _State.RECORDING
            self._recording_began = time.monotonic()
            self._step()
        elif self._state is _State.RECORDING:
            self._step_recorded(elapsed)
        elif self._state is _State.AFTER:
            self._times.add_unprofiled(elapsed, faults_since(self._step_faults))
            self._after += 1
            if self._after >= STEPS_AFTER:
                self._write(self._profile, None)
        if self.seen >= warmup and self._state in (_State.WAITING, _State.SKIPPING):
            self._warm_up()

    def _start_early(self) -> None:
        self._early = self._start(lambda _: ProfilerAction.RECORD)
        self._state = _State.EARLY if self._early else _State.DONE

    def _end_early(self, elapsed: int) -> None:
        _stop(self._early)
        self._early_step = [elapsed]
        self._state = _State.SKIPPING
        self._fit_budget()

    def _warm_up(self) -> None:
        plan = schedule(wait=0, warmup=1, active=self._active, repeat=1)
        self._profile = self._start(plan)
        self._state = _State.WARMING if self._profile else _State.DONE

    def _start(self, plan: Callable[[int], ProfilerAction]) -> Profile | None:
        if _profiler_enabled():
            self._give_up("the program records itself with a profiler of its own; leave one out")
            return None
        options = self.options
        profile = Profile(
            schedule=plan,
            record_shapes=options.record_shapes,
            profile_memory=options.profile_memory,
            with_stack=options.with_stack,
        )
        profile.own_code = self._own_code()
        self._recording_began = time.monotonic()
        try:
            with without_marks():
                profile.start()
        except RuntimeError as error:
            self._give_up(f"the recorder could not start: {error}")
            return None
        self.on_start()
        return profile

    def _step(self) -> None:
        if self._profile is not None:
            with without_marks():
                self._profile.step()

    def _step_recorded(self, elapsed: int) -> None:
        self._times.profiled.append(elapsed)
        self.recorded += 1
        self._early = None
        if self.recorded >= self._active:
            self._step()
            _stop(self._profile)
            self._state = _State.AFTER
        elif self._overdue():
            _stop(self._profile)
            self._active = self.recorded
            self._state = _State.AFTER
        else:
            self._step()

    def _fit_budget(self) -> None:
        """Record fewer steps if the first one shows that all of them would be too large."""
        if self._early is None:
            return
        size = max(1, self._early.event_count() * EVENT_BYTES)
        self._active = min(self.options.active, max(1, self.options.max_bytes // size))
        if self._active < self.options.active:
            verb = "is" if self._active == 1 else "are"
            self._say(
                f"a step makes about {bytes_text(size)} of trace, so {self._active} of "
                f"{_steps(self.options.active)} {verb} recorded"
            )

    def _overdue(self) -> bool:
        return time.monotonic() - self._recording_began > self.options.seconds

    def _finish(self, reason: str | None) -> None:
        state = self._state
        _stop(self._early)
        _stop(self._profile)
        # Where a boundary ends a step, the end of the program ends none.
        closed = not (self.source is not None and self.source.ends_steps) and reason is None
        if state is _State.AFTER:
            self._write(self._profile, None)
        elif state is _State.RECORDING and (self.recorded or reason or closed):
            self._write(self._profile, reason or self._short())
        elif self._early is not None and (state is not _State.EARLY or reason or closed):
            self.recorded = len(self._early_step) or int(closed)
            self._times.profiled = self._early_step
            self._write(self._early, reason or self._short())
        else:
            self._give_up(self._why_nothing())

    def _short(self) -> str:
        return f"the program ended after {_steps(self.seen)}, before {self._active} were recorded"

    def _why_nothing(self) -> str:
        if self.source is None:
            return (
                "no step was found: this process made no optimizer step, no repeated module call "
                f"and no DataLoader loop; {_MARK}{self.beside()}"
            )
        return (
            f"the program made {_steps(self.seen)}, and one of them sets it up; make at least 2"
            f"{self.beside()}"
        )

    def _write(self, profile: Profile | None, partial: str | None) -> None:
        if profile is None:
            self._give_up(self._why_nothing())
            return
        profile.partial = self.partial = partial
        profile.step_times = self._times
        folder = self.options.folder
        try:
            trace_files.make_folder(folder)
            rank, _ = machine.rank_and_world()
            path = trace_files.free_path(folder, trace_files.run_name(rank))
            profile.write_trace(path)
        except RecordingError as error:
            self._give_up(str(error))
            return
        except OSError as error:  # the recorder's own file, which lies in the temporary folder
            where, why = error.filename or tempfile.gettempdir(), error.strerror or error
            self._give_up(f"`{where}` cannot be written: {why}; set TMPDIR to another place")
            return
        for lesser in self.traces:
            lesser.unlink(missing_ok=True)
        self.traces = [path]
        self._say(f"recorded {_steps(self.recorded)} in {path}")
        self._written = (self.source, self.recorded, partial)
        self._end()

    def _give_up(self, reason: str) -> None:
        if self._written is not None:  # by a lesser source of steps; better than nothing
            self.source, self.recorded, self.partial = self._written
        else:
            self.reason = reason
        self._end()

    def _end(self) -> None:
        self._state = _State.DONE
        for profile in (self._early, self._profile):
            if profile is not None:  # now, for a program may end without a chance to clean up
                profile.forget()
        self._early = self._profile = None
        self.on_done()

    def _say(self, sentence: str) -> None:
        if self.options.notify is not None:
            self.options.notify(sentence)


def _stop(profile: Profile | None) -> None:
    if profile is not None and profile.running:
        with without_marks():
            profile.stop()


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def _nothing() -> None:
    pass
