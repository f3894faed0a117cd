"""One recording of a few steady steps, from the first step that is looked at to the last.

Boundaries come between steps. Of a training loop's steps, by default:

    1   sets the program up, and is not looked at
    2   is recorded for the case that the program ends soon; it shows how large steps are
    3.. are timed without the recorder, until they are steady
    then 1 warms the recorder up, 5 are recorded, and 5 are timed without the recorder; where steps
    are short, 1 among these is recorded again, under line marks

Nobody can know whether another step will come. A program that ends sooner leaves what was recorded
last, marked as partial.
"""

import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from torch._C._autograd import _profiler_enabled
from torch.profiler import ProfilerAction, schedule

from selftime.capture.chatter import without_marks
from selftime.capture.facts.allocator import faults_since
from selftime.capture.facts.overhead import StepTimes
from selftime.capture.lines.sources import SourceFiles
from selftime.capture.lines.stamps import Stamps
from selftime.capture.profile import Profile
from selftime.capture.recorder.budget import Budget
from selftime.capture.recorder.run_options import RunOptions
from selftime.capture.recorder.steadiness import is_steady
from selftime.capture.steps import Source
from selftime.errors import RecordingError

STEPS_AFTER: Final = 5
"""Steps that are timed after a recording."""

MARKED_STEP: Final = 3
"""How many times as long as a recorded step one under line marks is taken to be."""


class _State(Enum):
    WAITING = auto()
    EARLY = auto()
    SKIPPING = auto()
    WARMING = auto()
    RECORDING = auto()
    MARKING = auto()
    AFTER = auto()
    DONE = auto()


_AT_WORK: Final = (_State.EARLY, _State.WARMING, _State.RECORDING, _State.MARKING)


class Cycle:
    """Goes from one state to the next at each boundary between steps, until it is `done`."""

    def __init__(
        self,
        options: RunOptions,
        source: Source,
        own_code: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self.options = options
        self.source = source
        self.seen = 0
        """Boundaries so far."""
        self.recorded = 0
        """Whole steps in the recording."""
        self.profile: Profile | None = None
        """What is to be written, once it is done; None if there is nothing."""
        self.partial: str | None = None
        """Why the recording holds less than was asked for."""
        self.reason: str | None = None
        """Why it could not be made."""
        self.told: list[str] = []
        """Sentences for whoever waits; whoever reads them takes them out."""
        self._own_code = own_code
        self._state = _State.WAITING
        self._times = StepTimes(source.label)
        self._early: Profile | None = None
        self._early_step: list[int] = []
        """The duration of the step in it."""
        self._stamps: Stamps | None = None
        self._frames = options.with_stack
        self._hold_ns = 0
        """How long the end of a recording of one step holds the program, as far as it is known."""
        self._active = options.active
        self._after = 0
        self._began = 0.0

    @property
    def done(self) -> bool:
        return self._state is _State.DONE

    @property
    def whole(self) -> bool:
        """Whether all that was asked for is recorded, and steps are only timed."""
        return self._state in (_State.MARKING, _State.AFTER)

    @property
    def recording(self) -> bool:
        return self._state in _AT_WORK

    @property
    def overdue(self) -> bool:
        """Whether it has been recording for too long."""
        return self.recording and time.monotonic() - self._began > self.options.seconds

    def advance(self, elapsed: int, faults: int | None, *, usual: bool = True) -> None:
        """A step has ended: its duration in nanoseconds, and the page faults before it.

        One that is not `usual`, such as one with an evaluation in it, tells nothing of others.
        """
        self.seen += 1
        if self._state is _State.WAITING and self.options.warmup != 1:
            self._start_early()
        elif self._state is _State.EARLY:
            self._end_early(elapsed)
        elif self._state is _State.SKIPPING:
            if usual:
                self._times.add_unprofiled(elapsed, faults_since(faults))
        elif self._state is _State.WARMING:
            self._state = _State.RECORDING
            self._began = time.monotonic()
            self._step()
        elif self._state is _State.RECORDING:
            self._step_recorded(elapsed)
        elif self._state is _State.MARKING:
            self._end_marks()
        elif self._state is _State.AFTER:
            self._step_after(elapsed if usual else None, faults)
        if self._state in (_State.WAITING, _State.SKIPPING) and self._is_warm():
            self._warm_up()

    def finish(self, reason: str | None) -> None:
        """End now, with what there is; `reason` tells why if the program did not simply end."""
        if self.done:
            return
        if self._state is _State.MARKING:
            self._end_marks()
        state = self._state
        if not self._stop():
            self._fail(
                "the program ended while a thread of its own was recorded, which alone can end "
                "that; make more steps, or make them on the main thread"
            )
            return
        # Where a boundary ends a step, the end of the program ends none.
        closed = not self.source.ends_steps and reason is None
        if state is _State.AFTER:
            self._end(None)
        elif state is _State.RECORDING and (self.recorded or reason or closed):
            self._end(reason or self._short())
        elif self._early is not None and (state is not _State.EARLY or reason or closed):
            self.recorded = len(self._early_step) or int(closed)
            self._times.profiled = self._early_step
            self.profile = self._early
            self._end(reason or self._short())
        else:
            self.drop()

    def drop(self) -> None:
        """End now, and keep nothing."""
        self._end_marks()
        self._stop()
        for profile in (self._early, self.profile):
            if profile is not None:
                profile.forget()
        self._early = self.profile = None
        self._state = _State.DONE

    def _end(self, partial: str | None) -> None:
        if self._early is not None and self._early is not self.profile:
            self._early.forget()
        self._early = None
        self._state = _State.DONE
        self.partial = partial
        if self.profile is not None:
            self.profile.partial = partial
            self.profile.step_times = self._times

    def _is_warm(self) -> bool:
        if self.options.warmup is not None:
            return self.seen >= max(self.options.warmup, 1)
        return is_steady(self._times.unprofiled)

    def _start_early(self) -> None:
        self._early = self._start(lambda _: ProfilerAction.RECORD)
        if self._early is not None:
            self._state = _State.EARLY

    def _end_early(self, elapsed: int) -> None:
        assert self._early is not None  # noqa: S101 - the state says so
        _stop(self._early)
        self._early_step = [elapsed]
        self._state = _State.SKIPPING
        budget = Budget(self.options, self._early.event_count())
        self._active, self._hold_ns = budget.steps, budget.hold_ns
        self._frames = budget.frames
        if sentence := budget.told():
            self.told.append(sentence)

    def _warm_up(self) -> None:
        plan = schedule(wait=0, warmup=1, active=self._active, repeat=1)
        self.profile = self._start(plan)
        if self.profile is not None:
            self._state = _State.WARMING

    def _start(self, plan: Callable[[int], ProfilerAction]) -> Profile | None:
        if _profiler_enabled():
            self._fail("the program records itself with a profiler of its own; leave one out")
            return None
        options = self.options
        profile = Profile(
            schedule=plan,
            record_shapes=options.record_shapes,
            profile_memory=options.profile_memory,
            with_stack=self._frames,
        )
        profile.own_code = self._own_code()
        profile.traps.attended = False
        self._began = time.monotonic()
        try:
            with without_marks():
                profile.start()
        except RuntimeError as error:
            self._fail(f"the recorder could not start: {error}")
            return None
        return profile

    def _fail(self, reason: str) -> None:
        self.drop()
        self.reason = reason

    def _step(self) -> None:
        if self.profile is not None:
            with without_marks():
                self.profile.step()

    def _step_recorded(self, elapsed: int) -> None:
        self._times.profiled.append(elapsed)
        self.recorded += 1
        if self._early is not None:
            self._early.forget()
        self._early = None
        if self.recorded >= self._active:
            self._step()
        elif not self.overdue:
            self._step()
            return
        _stop(self.profile)
        self._active = self.recorded
        self._state = _State.AFTER

    def _step_after(self, elapsed: int | None, faults: int | None) -> None:
        if elapsed is not None:
            self._times.add_unprofiled(elapsed, faults_since(faults))
        self._after += 1
        if self._after >= STEPS_AFTER:
            self._end(None)
        elif self._after == 1:
            self._begin_marks()

    def _begin_marks(self) -> None:
        """Record one more step under line marks, if it holds the program no longer than it may.

        A step lies between: torch closes an annotation that was opened in one recording, as the
        optimizer's around this boundary was, in the memory of that one, although it is gone when
        another recording runs.
        """
        if not self._frames:
            return
        slowest = max(self._times.profiled) * MARKED_STEP + self._hold_ns
        if slowest > self.options.hold * 1e9:
            return
        stamps = Stamps(lambda: SourceFiles(self._own_code()))
        if stamps.begin():
            self._stamps, self._state = stamps, _State.MARKING

    def _end_marks(self) -> None:
        if self._state is _State.MARKING and self._stamps is not None:
            self._stamps.end()
            self._state = _State.AFTER

    def read_marks(self) -> None:
        """Let the recording know what its step under line marks tells."""
        if self.profile is not None and self._stamps is not None:
            self.profile.stamps = self._stamps.marks
        self._stamps = None

    def _stop(self) -> bool:
        """Whether what was recorded could be stopped, and is there."""
        return all([_stop(self._early), _stop(self.profile)])

    def _short(self) -> str:
        return f"the program ended after {steps(self.seen)}, before {self._active} were recorded"


def _stop(profile: Profile | None) -> bool:
    """Whether it has stopped; only the thread that began it can do that."""
    if profile is not None and profile.running:
        try:
            with without_marks():
                profile.stop()
        except RecordingError:
            return False
    return True


def steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"
