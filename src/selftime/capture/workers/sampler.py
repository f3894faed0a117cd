"""A thread in a worker process that looks, some hundred times a second, which line runs there.

Samples are weighed by the time since the one before: a call that holds the interpreter for long
delays the thread, and counts for as long. The line seen then is that of the call, which the
interpreter has not left. The thread also writes what was counted, twice a second.
"""

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

from torch.utils.data._utils import fetch, worker

from selftime.capture.sources import SourceFiles
from selftime.capture.workers import marks as marks_module
from selftime.capture.workers.marks import Marks
from selftime.capture.workers.tally import Line, Phase, Tally

__all__ = ["Sampler"]

PERIOD: Final = 0.005
"""Seconds between two looks, unless they cost too much."""

LONGEST_PERIOD: Final = 0.1

SHARE: Final = 0.01
"""Of its process's time the thread may compute for so much: beyond, it looks less often."""

WRITTEN_EVERY_NS: Final = 500_000_000

_LOOP: Final = frozenset({fetch.__file__, worker.__file__, marks_module.__file__})
"""Files of frames that are around what the loop calls."""

_LOOKED_AT: Final = (Phase.SAMPLES, Phase.COLLATE)
"""Phases in which the program's own code may run."""

_SERIALISES: Final = frozenset({"dumps", "_send", "_send_bytes", "send_bytes"})
"""Functions of multiprocessing that the queue's thread is in while it has something to do."""


class Sampler:
    """Samples the thread that makes it, from `begin` to `end`."""

    def __init__(self, path: Path, tally: Tally, marks: Marks, own_code: tuple[str, ...]) -> None:
        self._path = path
        self._tally = tally
        self._marks = marks
        self._own_code = own_code
        self._files: dict[str, str | None] = {}
        self._thread = threading.Thread(target=self._run, name="selftime-worker", daemon=True)
        self._sampled = threading.get_ident()
        self._root: CodeType | None = None
        self._queue: Any = None
        self._ended = False
        self.about: Callable[[], dict[str, Any]] = dict
        """What to write beside what was counted."""

    def begin(self, root: CodeType, queue: Any) -> None:
        """Look at frames within that of `root`, and at the thread of `queue`."""
        self._root, self._queue = root, queue
        self._thread.start()

    def end(self) -> None:
        self._ended = True
        self._thread.join(LONGEST_PERIOD)
        self._write()

    def _run(self) -> None:
        period, last, written = PERIOD, time.perf_counter_ns(), 0
        began, spent = last, time.thread_time_ns()
        count = 0
        while not self._ended:
            time.sleep(period)
            now = time.perf_counter_ns()
            self._look(now - last)
            last = now
            if now - written > WRITTEN_EVERY_NS and self._tally.first.batches + self._tally.failed:
                if not self._write():
                    return
                written = now
            count += 1
            if count % 100 == 0:
                busy = (time.thread_time_ns() - spent) / max(now - began, 1)
                period = min(max(PERIOD, period * busy / SHARE), LONGEST_PERIOD)
                began, spent = now, time.thread_time_ns()

    def _look(self, passed: int) -> None:
        frames = sys._current_frames()  # noqa: SLF001 - the only way to another thread's frame
        phase, times = self._marks.phase, self._tally.times
        frame = frames.get(self._sampled)
        if frame is not None and phase in _LOOKED_AT:
            times.lines.add(self._stack(frame, phase), passed)
        sends = frames.get(getattr(getattr(self._queue, "_thread", None), "ident", None) or 0)
        doing = _doing(sends)
        if doing == "dumps":
            times.serialising += passed
        elif doing is not None:
            times.sending += passed

    def _stack(self, frame: FrameType | None, phase: Phase) -> list[Line]:
        """The user's lines of the stack, innermost first; else the library's outermost line."""
        found, outermost = [], None
        while frame is not None and frame.f_code is not self._root:
            code = frame.f_code
            file = self._user_file(code.co_filename)
            if file is not None:
                line = frame.f_lineno or code.co_firstlineno
                found.append(Line(phase, file, line, code.co_name, True))
            elif code.co_filename not in _LOOP:
                outermost = frame
            frame = frame.f_back
        if found or outermost is None:
            return found
        code, line = outermost.f_code, outermost.f_lineno or outermost.f_code.co_firstlineno
        return [Line(phase, code.co_filename, line, code.co_name, False)]

    def _user_file(self, recorded: str) -> str | None:
        if recorded not in self._files:
            # A new one each time: samples load modules, and may change `sys.path`.
            self._files[recorded] = SourceFiles(self._own_code).user_file(recorded)
        return self._files[recorded]

    def _write(self) -> bool:
        """Write what was counted; False if nobody wants it any more."""
        told = {**self.about(), **self._tally.told()}
        temporary = self._path.with_suffix(".tmp")
        try:
            temporary.write_text(json.dumps(told))
            temporary.replace(self._path)
        except OSError:  # the folder went: the main process has its answer, or has ended
            return False
        return True


def _doing(frame: FrameType | None) -> str | None:
    """What the queue's thread does of what it is there for; None while it waits."""
    while frame is not None:
        if frame.f_code.co_name in _SERIALISES:
            return "dumps" if frame.f_code.co_name == "dumps" else "send"
        frame = frame.f_back
    return None
