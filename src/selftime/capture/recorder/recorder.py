"""Records a few steady steps of a program whose steps are told from outside.

One recording after another is made where a trigger asks for them, else one. Boundaries between
steps come from several sources, and a better source begins anew.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from torch._C._autograd import _enable_record_function

from selftime.capture.facts.allocator import page_faults
from selftime.capture.recorder.cycle import Cycle, steps
from selftime.capture.recorder.run_options import RunOptions
from selftime.capture.recorder.writer import Writer
from selftime.capture.steps import Source
from selftime.capture.workers.record import WorkerRecord
from selftime.errors import RecordingError

_MARK: Final = (
    "to mark steps yourself, put its loop in `with selftime.profile(schedule="
    "selftime.schedule(wait=1, warmup=1, active=5, repeat=1)) as prof:`, end each round with "
    "`prof.step()`, `print(prof.advise())` after the loop, and run it with `python`"
)
"""What to do where nothing tells the steps of a program."""


class Recorder:
    """Hands each boundary between steps to the recording under way, and writes what comes of it.

    Nothing is recorded while something is written: the frames of the writing would be in it.
    """

    def __init__(
        self, options: RunOptions, own_code: Callable[[], tuple[str, ...]] = tuple
    ) -> None:
        self.options = options
        self._own_code = own_code
        self.source: Source | None = None
        self.seen = 0
        """Boundaries of the recording that was made last, or is under way."""
        self.recorded = 0
        """Whole steps in the trace that was written last."""
        self.traces: list[Path] = []
        self.partial: str | None = None
        """Why the trace holds less than was asked for."""
        self.reason: str | None = None
        """Why there is no trace."""
        self.abandoned = False
        """Whether this is a child that was forked while something was recorded or written."""
        self._cycle: Cycle | None = None
        self._writer = Writer(options.folder)
        self._lesser: list[Path] = []
        """Traces that a better source of steps may replace."""
        self._spare: Cycle | None = None
        """A whole recording by a lesser source, for the case that the better one leaves none."""
        self._written: tuple[Source, int, int, str | None] | None = None
        self._busy = False
        self._closed = False
        self._ended = False
        self._told_done = False
        self._is_unlike = False
        self._step_began = 0
        self._step_faults: int | None = None
        self._process = os.getpid()
        self._workers = WorkerRecord(own_code)
        if options.workers:
            self._workers.start()
        self.on_start: Callable[[], None] = _nothing
        """Called when a recording starts."""
        self.on_done: Callable[[], None] = _nothing
        """Called when nothing more will be recorded, and everything is written."""
        self.asked: Callable[[], bool] | None = None
        """Asked at each boundary whether to record now; None records once, from the beginning."""

    @property
    def recording(self) -> bool:
        return self._cycle is not None and self._cycle.recording

    @property
    def ended(self) -> bool:
        """Whether nothing more will be recorded; it may still be being written."""
        return self._ended

    @property
    def final(self) -> bool:
        """Whether no better source of steps can come."""
        return self._closed or (self.source is not None and self.source.is_final)

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
            if source == self.source:
                self._advance(now - self._step_began)
        finally:
            self._busy = self._is_unlike = False
            self._step_faults = page_faults()
            self._step_began = time.perf_counter_ns()

    def unlike(self) -> None:
        """In the step that is about to end something happened that happens in few."""
        self._is_unlike = True

    def abandon(self) -> None:
        """In a forked child: what the fork left running records for nobody."""
        self.abandoned = self.recording or not self._writer.idle
        if self.recording:
            _enable_record_function(False)
            sys.setprofile(None)

    def pulse(self) -> None:
        """Time passes within a step: a recording that takes too long is ended here."""
        cycle = self._cycle
        if self._busy or cycle is None or not cycle.overdue or os.getpid() != self._process:
            return
        self._busy = True
        try:
            cycle.finish(f"the limit of {self.options.seconds:g} s was reached within a step")
            self._hand_over(cycle, at_once=False)
        finally:
            self._busy = False

    def leave_to(self, rival: str) -> None:
        """Something else records from now on: end for good."""
        if not self._busy and os.getpid() == self._process:
            self.finish(f"{rival} began to record")
            self._closed = True
            if not self.traces:
                self.reason = f"{rival} began to record, and only one recorder can run at a time"

    def finish(self, reason: str | None) -> None:
        """End now: write what there is; `reason` tells why if the program did not simply end."""
        if self._busy or os.getpid() != self._process:
            return
        self._busy = True
        try:
            self._writer.wait()
            if self._cycle is not None:
                self._cycle.finish(reason)
                self._hand_over(self._cycle, at_once=True)
            if not self._ended and self.asked is None:
                self._give_up(self._why_nothing())
            elif not self.traces and self.reason is None:
                self.reason = "nothing asked for a recording while steps were made"
            self._end()
            self._workers.stop()
        finally:
            self._busy = False

    def state(self) -> dict[str, Any]:
        """How it stands, for whoever asks from outside."""
        return {
            "process": os.getpid(),
            "steps_from": None if self.source is None else self.source.label,
            "recording": self._cycle is not None,
            "writing": not self._writer.idle,
            "traces": [str(path) for path in self.traces],
        }

    def _believe(self, source: Source) -> None:
        """Begin anew with a better source of steps: what was recorded by a lesser one goes."""
        self._writer.wait()  # rarely: only if the lesser source was done a moment ago
        cycle, self.source = self._cycle, source
        if cycle is not None and cycle.whole:  # and nobody knows whether better comes
            cycle.finish(None)
            self._keep(cycle)
        elif cycle is not None:
            cycle.drop()
        self._cycle = None
        self._ended = self._told_done = False

    def _advance(self, elapsed: int) -> None:
        """`elapsed` is the duration of the step that has just ended."""
        if self._ended:
            if self._writer.idle:
                self._end()
            return
        if self._cycle is None and self._writer.idle and (self.asked is None or self.asked()):
            self._cycle = self._new_cycle()
        cycle = self._cycle
        if cycle is None:
            return
        was = cycle.recording
        cycle.advance(elapsed, self._step_faults, usual=not self._is_unlike)
        self.seen = cycle.seen
        if cycle.recording and not was:
            self.on_start()
        while cycle.told:
            self._say(cycle.told.pop(0))
        if cycle.done:
            self._hand_over(cycle, at_once=False)

    def _new_cycle(self) -> Cycle:
        assert self.source is not None  # noqa: S101 - a boundary has just come from it
        return Cycle(self.options, self.source, self._own_code)

    def _hand_over(self, cycle: Cycle, *, at_once: bool) -> None:
        """Let what was recorded be written; another recording comes if somebody asks for it."""
        self._cycle = None
        self.seen = cycle.seen
        if cycle.profile is None:
            self._give_up(cycle.reason or self._why_nothing())
            return
        self._ended = self.asked is None
        if at_once:
            self._wrote(cycle, self._writer.now(cycle.profile, cycle.read_marks))
        else:
            self._writer.later(
                cycle.profile, cycle.read_marks, lambda result: self._wrote(cycle, result)
            )

    def _wrote(self, cycle: Cycle, result: Path | RecordingError) -> None:
        if isinstance(result, RecordingError):
            self._give_up(str(result))
            return
        self._keep(None)
        for lesser in self._lesser:
            lesser.unlink(missing_ok=True)
            self.traces.remove(lesser)
        self._lesser = [result] if self.asked is None else []
        self.traces.append(result)
        self._say(f"recorded {steps(cycle.recorded)} in {result}")
        self._written = cycle.source, cycle.seen, cycle.recorded, cycle.partial
        self.recorded, self.partial = cycle.recorded, cycle.partial

    def _give_up(self, reason: str) -> None:
        if self.asked is not None:  # somebody waits for it, and may ask again
            self._say(f"nothing was recorded: {reason}")
            self.reason = reason
            return
        self._ended = True
        spare, self._spare = self._spare, None
        if spare is not None and spare.profile is not None:
            self.source, self.seen = spare.source, spare.seen
            self._wrote(spare, self._writer.now(spare.profile, spare.read_marks))
        elif self._written is not None:  # by a lesser source of steps; better than nothing
            self.source, self.seen, self.recorded, self.partial = self._written
        else:
            self.reason = reason

    def _keep(self, cycle: Cycle | None) -> None:
        """Keep this recording in place of the one that was kept."""
        if self._spare is not None and self._spare.profile is not None:
            self._spare.profile.forget()
        self._spare = cycle

    def _why_nothing(self) -> str:
        if self.source is None:
            return (
                "no step was found: this process made no optimizer step, no backward pass, no "
                f"repeated module call and no DataLoader loop; {_MARK}"
            )
        return f"the program made {steps(self.seen)}, and one of them sets it up; make at least 2"

    def _end(self) -> None:
        if not self._told_done:
            self._told_done = True
            self.on_done()
            if self.final and self.asked is None:
                self._workers.stop()

    def _say(self, sentence: str) -> None:
        if self.options.notify is not None:
            self.options.notify(sentence)


def _nothing() -> None:
    pass
