"""Records a few steady steps of a program that tells its steps: the core of every framework's part.

One recorder can run in a process. A watch that begins while another one runs, or while a profiler
of torch's does, says so once and does nothing. Under `selftime run` the watch tells the recorder of
the run where steps end, and makes no trace of its own.

Nothing here calls another process: each of a job's processes makes its own file.
"""

import atexit
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from torch._C._autograd import _profiler_enabled

from selftime.capture.program.termination import Termination
from selftime.capture.recorder.other_profilers import watch_rivals
from selftime.capture.recorder.recorder import Recorder
from selftime.capture.recorder.run_options import RunOptions
from selftime.capture.steps import Source

_BUSY: Final = (
    "{who} is recording already, and one recorder can run at a time: `{what}` records nothing"
)


class _Watch(Protocol):
    """What records at a time: one in a process."""

    name: str
    running: bool
    waits: bool

    def end(self, reason: str | None = None) -> None: ...

    def abandon(self) -> None: ...


class _Host(Protocol):
    """What is told of the steps of a program that runs under `selftime run` or `selftime bench`."""

    def boundary(self, source: Source) -> None: ...


class StepWatch:
    """From `begin` to `end` one recording of the steps between them, in one bounded file.

    It may begin again after its end, and then makes another file. Whatever fails in it is told in a
    sentence and ends the recording, never the program.
    """

    def __init__(self, options: RunOptions | None = None, *, name: str = "StepWatch") -> None:
        options = options or RunOptions()
        # The program may change the folder that it works in.
        self.options = replace(options, folder=options.folder.absolute())
        self.name = name
        """What the user wrote, for sentences."""
        self.recorded = 0
        """Whole steps in the trace of the last recording."""
        self.traces: tuple[Path, ...] = ()
        """The file of the last recording."""
        self.partial: str | None = None
        """Why that trace holds less than was asked for, if it does."""
        self.reason: str | None = None
        """Why there is no trace, if there is none."""
        self.running = False
        """Between `begin` and `end`, unless something else records."""
        self.waits = False
        """Whether it is between two loops that it records as one: what begins now goes first."""
        self.on_done: Callable[[StepWatch], None] = _nothing
        """Called when nothing more will be recorded; the program may still be in its loop."""
        self._recorder: Recorder | None = None
        self._boundary: Callable[[Source], None] | None = None
        self._thread = 0
        self._ignore_rivals: Callable[[], None] = _nothing
        self._termination = Termination(lambda: self._finish("ended by SIGTERM"))

    @property
    def done(self) -> bool:
        """Whether the steps that come will not be recorded."""
        ended = self._recorder is not None and self._recorder.ended
        return self._boundary is None or ended

    @property
    def follows(self) -> bool:
        """Whether `selftime run` or `bench` looks at this program, and is told its steps."""
        return self.running and PROCESS.host is not None

    def begin(self) -> None:
        """The first step begins; what was begun and not ended ends here."""
        if self.running:
            self.end("begun anew")
        self.traces, self.recorded, self.partial, self.reason = (), 0, None, None
        rival = PROCESS.claim(self)
        if rival is not None:
            self.reason = _BUSY.format(who=rival, what=self.name)
            PROCESS.say_once(self.reason, self.options)
            return
        self.running, self._thread = True, threading.get_ident()
        if PROCESS.host is not None:
            self.reason = "`selftime run` records this program"
            self._boundary = PROCESS.host.boundary
        else:
            self._recorder = recorder = Recorder(replace(self.options, notify=self._pass_on))
            recorder.on_start = self._termination.install
            recorder.on_done = self._done
            self._ignore_rivals = watch_rivals(recorder.leave_to)
            self._boundary = recorder.boundary
            atexit.register(self._at_exit)

    def step(self) -> None:
        """A step has ended and another begins."""
        if self._boundary is not None and threading.get_ident() == self._thread:
            self._guarded(self._boundary, Source.TOLD)

    def end(self, reason: str | None = None) -> None:
        """The last step has ended: write what there is; `reason` tells why if that was early."""
        if self.running:
            self.running = self.waits = False
            self._finish(reason)
            PROCESS.release(self)
            atexit.unregister(self._at_exit)

    def abandon(self) -> None:
        """In a forked child: the recording is its parent's."""
        if self._recorder is not None:
            self._recorder.abandon()
        self._recorder = self._boundary = None

    def _pass_on(self, sentence: str) -> None:
        """Say what the recorder says, but where its file lies: `on_done` knows whether it stays."""
        traces = self._recorder.traces if self._recorder is not None else []
        if self.options.notify is not None and not any(str(path) in sentence for path in traces):
            self.options.notify(sentence)

    def _done(self) -> None:
        self._boundary = None
        self._ignore_rivals()
        self._termination.remove()
        if self._recorder is not None:
            self._keep(self._recorder)
            self.on_done(self)

    def _finish(self, reason: str | None) -> None:
        if self._recorder is not None:
            self._guarded(self._recorder.finish, reason)
            self._ignore_rivals()
            self._keep(self._recorder)
        self._recorder = self._boundary = None

    def _keep(self, recorder: Recorder) -> None:
        self.traces = tuple(recorder.traces)
        self.recorded = recorder.recorded if recorder.traces else 0
        self.partial = recorder.partial
        self.reason = self.reason or recorder.reason

    def _at_exit(self) -> None:
        self.end("the program ended within the loop")

    def _guarded(self, call: Callable[[Any], None], argument: Any) -> None:
        try:
            call(argument)
        except Exception as error:  # noqa: BLE001 - a training run does not end for its recorder
            self._boundary = None
            self.reason = f"the recording failed: {type(error).__name__}: {error}"
            PROCESS.say_once(f"{self.reason}; the program goes on without it", self.options)


class _Process:
    """Who records in this process, and what has been said of it."""

    def __init__(self) -> None:
        self.host: _Host | None = None
        """The recorder of `selftime run`, or the clock of `selftime bench`, if there is one."""
        self._watch: _Watch | None = None
        self._said: set[str] = set()

    def claim(self, watch: _Watch, *, alone: bool = False) -> str | None:
        """Let this one record, or say what records instead.

        One that records `alone` tells the recorder of `selftime run` nothing.
        """
        if self._watch is not None and self._watch.waits:
            self._watch.end("another recording began")
        if self._watch is not None and self._watch.running:
            return f"`{self._watch.name}`"
        if alone and self.host is not None:
            return "`selftime run`"
        if self.host is None and _profiler_enabled():
            return "another profiler"
        self._watch = watch
        return None

    def release(self, watch: _Watch) -> None:
        if self._watch is watch:
            self._watch = None

    def say_once(self, sentence: str, options: RunOptions) -> None:
        if options.notify is not None and sentence not in self._said:
            self._said.add(sentence)
            options.notify(sentence)

    def leave(self) -> None:
        """In a forked child: nothing of this process is recorded so far."""
        if self._watch is not None:
            self._watch.abandon()
        self._watch = self.host = None


PROCESS: Final = _Process()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PROCESS.leave)


def _nothing(*_: Any) -> None:
    pass


def follow(host: _Host) -> None:
    """From now on tell it where the program says that steps end; it is of `run` or `bench`."""
    PROCESS.host = host
