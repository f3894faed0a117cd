"""One process of a recorded program, from its import of torch to its end.

The process that `selftime run` runs the program in is told of the program's end. In any other one,
which was started by the program or forked from it, the end is seen by what Python runs last.
"""

import atexit
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from selftime.capture.program.after_import import after_import, forget
from selftime.capture.program.forks import end_without_destructors
from selftime.capture.program.job import Job, Report
from selftime.capture.program.termination import Termination
from selftime.capture.program.triggers import FileTrigger, SignalTrigger, Trigger, made
from selftime.capture.recorder.run_options import RunOptions

if TYPE_CHECKING:
    from selftime.capture.recorder.recorder import Recorder
    from selftime.capture.steps import Source, Steps

FIRST: Final = 100
"""The priority of our end among those of `multiprocessing`, whose own are at most 15."""


class RecordedProcess:
    """What watches a process once it has imported torch; a fork makes it watch the child too."""

    def __init__(
        self,
        options: RunOptions,
        job: Job | None = None,
        own_code: Callable[[], tuple[str, ...]] = tuple,
        *,
        told: bool = False,
    ) -> None:
        self.options = options
        self.job = job
        """The run to report to; without one, children are not recorded."""
        self.own_code = own_code
        self.recorder: Recorder | None = None
        self.steps: Steps | None = None
        self.trigger: Trigger | None = None
        self.failure: str | None = None
        """Why the process could not be watched."""
        self.said: list[str] = []
        """Sentences for the user, where they are passed on to the root."""
        self._told = os.getpid() if told else None
        """The process that calls `finish` by itself."""
        self._prepared: int | None = None
        """The process that was prepared to end."""
        self._rank: int | None = None
        self._has_recorded = False
        """Whether a recording was begun here, or where this process was forked."""

    def watch(self) -> None:
        after_import("torch", self._attach)

    @property
    def abandoned(self) -> bool:
        """Whether this is a child that was forked within a recording, and is not recorded."""
        return self.recorder is not None and self.recorder.abandoned

    def finish(self, reason: str | None) -> None:
        """Write what there is; `reason` tells why if the process did not simply end."""
        forget("torch")
        if self.recorder is not None:
            self.recorder.finish(reason)
        if self.steps is not None:
            self.steps.detach()
        if self.trigger is not None:
            self.trigger.end()

    def report(self) -> Report | None:
        """What was recorded here; None if torch was never imported."""
        recorder = self.recorder
        if recorder is None:
            return Report(os.getpid(), reason=self.failure) if self.failure else None
        return Report(
            process=os.getpid(),
            rank=self._rank,
            traces=tuple(recorder.traces),
            source=None if recorder.source is None else recorder.source.label,
            steps_seen=recorder.seen,
            steps_recorded=recorder.recorded,
            partial=recorder.partial,
            reason=recorder.reason,
            said=tuple(self.said),
        )

    @property
    def _is_told(self) -> bool:
        return os.getpid() == self._told

    def _attach(self) -> None:
        if not self._is_told:
            self._pass_on()
        try:
            from selftime.capture.recorder.other_profilers import watch_rivals  # noqa: PLC0415 - imports torch

            self._begin()
            watch_rivals(self._leave_to)
            if self.job is not None and hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=self._begin_in_child)
        except Exception as error:  # noqa: BLE001 - the program's `import torch` goes on
            self.failure = f"this torch cannot be watched: {type(error).__name__}: {error}"
        if self.job is not None and not self._is_told:
            self.job.report(Report(os.getpid(), reason=self.failure))

    def _begin(self) -> None:
        from selftime.capture.recorder.recorder import Recorder  # noqa: PLC0415 - imports torch
        from selftime.capture.recorder.watching import follow  # noqa: PLC0415 - likewise
        from selftime.capture.steps import Steps  # noqa: PLC0415 - likewise

        self.termination = Termination(lambda: self.finish("ended by SIGTERM"))
        recorder = Recorder(self.options, self.own_code)
        recorder.on_start, recorder.on_done = self._started, self._done
        steps = Steps(
            recorder.boundary if self._is_told else self._boundary,
            recorder.pulse,
            unlike=recorder.unlike,
            recording=lambda: recorder.recording,
        )
        steps.attach()
        self.recorder, self.steps = recorder, steps
        follow(recorder)
        self._listen(recorder)

    def _listen(self, recorder: "Recorder") -> None:
        """Record when somebody asks, if that is wanted."""
        if self.options.trigger is None:
            return
        self.trigger = made(self.options.trigger, self.options.folder)
        recorder.asked = self.trigger.pulled
        if self._is_told:
            self._say_now(self.trigger.begin(recorder.state))
        else:
            recorder.asked = self._asked_first

    def _asked_first(self) -> bool:
        """Begin to listen with the first step: few of a program's processes come to one."""
        if self.recorder is None or self.trigger is None:
            return False
        self.recorder.asked = self.trigger.pulled
        told = self.trigger.begin(self.recorder.state)
        if not isinstance(self.trigger, FileTrigger) or os.environ.get("RANK", "0") == "0":
            self._say_now(told)
        return self.trigger.pulled()

    def _say_now(self, sentence: str) -> None:
        """Tell the user at once: at the end it helps nobody."""
        if self._is_told and self.options.notify is not None:
            self.options.notify(sentence)
        elif self.job is not None and self.job.talks:
            sys.stderr.write(f"selftime: {sentence}\n")
            sys.stderr.flush()

    def _begin_in_child(self) -> None:
        """A forked child is a process of its own, if its parent was not recording just then."""
        recorder, steps = self.recorder, self.steps
        if recorder is None or steps is None:
            return
        if isinstance(self.trigger, SignalTrigger):
            self.trigger.end()
        self.trigger = None  # the threads that listen did not come along
        if self._has_recorded:
            end_without_destructors()
        if recorder.recording or recorder.abandoned:
            steps.idle = True
            recorder.abandon()
            return
        steps.detach()
        self._pass_on()
        self._begin()

    def _pass_on(self) -> None:
        """Say nothing on the program's streams: the root says it."""
        self.said = []
        self.options = replace(self.options, notify=self.said.append)

    def _boundary(self, source: "Source") -> None:
        from torch.utils.data import get_worker_info  # noqa: PLC0415 - torch is there by now

        if self.recorder is None or self.steps is None:
            return
        if get_worker_info() is None:
            self.recorder.boundary(source)
        else:  # it prepares the batches of steps that are made elsewhere
            self.steps.detach()

    def _leave_to(self, rival: str) -> None:
        if self.recorder is not None:
            self.recorder.leave_to(rival)

    def _started(self) -> None:
        from selftime.capture.facts.machine import rank_and_world  # noqa: PLC0415 - imports torch

        self._rank, _ = rank_and_world()
        self._has_recorded = True
        self.termination.install()
        if not self._is_told and self._prepared != os.getpid():
            self._prepared = os.getpid()
            at_the_end(self._end)

    def _done(self) -> None:
        self.termination.remove()
        if self.steps is None or self.recorder is None:
            return
        if self.recorder.final:
            self.steps.detach()
        elif self.recorder.past_modules:
            self.steps.stop_watching_modules()
        self._leave_word()

    def _end(self) -> None:
        if self._prepared == os.getpid():  # a forked child inherits the call
            self.finish(how_it_ended(sys.exc_info()[1] or getattr(sys, "last_value", None)))
            self._leave_word()

    def _leave_word(self) -> None:
        """Tell the root what there is, now: the process may be killed later."""
        report = self.report()
        if self.job is None or self._is_told or report is None or report.source is None:
            return
        if report.traces or report.reason:
            self.job.report(report)


def how_it_ended(error: BaseException | None) -> str | None:
    """What ended a program before its time; None if it simply ended."""
    if error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
        return None
    return f"ended by {type(error).__name__}"


def at_the_end(act: Callable[[], None]) -> None:
    """Call `act` when this process ends; one of `multiprocessing` may end without `atexit`."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        from multiprocessing.util import Finalize  # noqa: PLC0415 - it is loaded there

        Finalize(None, act, exitpriority=FIRST)
    else:
        atexit.register(act)
