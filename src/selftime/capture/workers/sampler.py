"""A thread in a worker process that looks, about twenty times a second, which line runs there.

Samples are weighed by the time since the one before: a call that holds the interpreter for long
delays the thread, and counts for as long. The line seen then is that of the call, which the
interpreter has not left. The thread also writes what was counted, twice a second.
"""

import json
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

from torch.utils.data._utils import fetch, worker

from selftime.capture.lines.sources import SourceFiles
from selftime.capture.workers import phase_marks as marks_module
from selftime.capture.workers.phase_marks import Marks
from selftime.capture.workers.tally import Line, Phase, Tally

PERIOD: Final = 0.045
"""Seconds between two looks, without the nap before each, unless they cost too much."""

LONGEST_PERIOD: Final = 0.25

LONGEST_NAP: Final = 0.005
"""Seconds, as after which the interpreter gives a waiting thread its turn."""

SHARE: Final = 0.01
"""Looks may cost so much of the main thread's time: beyond, they become fewer."""

LOOKS: Final = 20
"""Looks after which their cost is judged."""

PROMPT: Final = 1e-4
"""Seconds after which the interpreter gives this thread its turn, for a look."""

USUAL_THREADS: Final = 3
"""A worker's main thread, that of its queue, and this one: where the program has more, these take
their turns as it expects."""

WRITTEN_EVERY_NS: Final = 500_000_000

MOST_KNOWN: Final = 10_000
"""Lines that are kept as they were told."""

_LOOP: Final = frozenset({fetch.__file__, worker.__file__, marks_module.__file__})
"""Files of frames that are around what the loop calls."""

_LOOKED_AT: Final = (Phase.SAMPLES, Phase.COLLATE)
"""Phases in which the program's own code may run."""

_SERIALISES: Final = frozenset({"dumps", "_send", "_send_bytes", "send_bytes"})
"""Functions of multiprocessing that the queue's thread is in while it has something to do."""


class Pace:
    """How often to look, so that what it costs the main thread stays below a share of its time."""

    def __init__(self) -> None:
        self.period = PERIOD
        self._count = self._cost = 0
        self._since: int | None = None
        self._random = random.Random()  # noqa: S311 - no secret; the program's own stays as it is

    def nap(self) -> float:
        """Seconds from waking to the look, by chance.

        A thread wakes when another gives the interpreter away, so always at the same lines.
        """
        return self._random.uniform(0.0, LONGEST_NAP)

    def add(self, due: int, done: int, ran: float) -> None:
        """One look, from the instant in ns that it was due to its end.

        What it took counts as far as the main thread ran: to give the thread its turn
        the interpreter stops the other, and on a machine whose cores are taken it stays stopped
        until the thread gets one.
        """
        if self._since is None:
            self._since = due
        self._count += 1
        self._cost += int(ran * max(0, done - due - int(PROMPT * 1e9)))
        if self._count >= LOOKS:
            share = self._cost / max(done - self._since, 1)
            self.period = min(max(PERIOD, self.period * share / SHARE), LONGEST_PERIOD)
            self._count = self._cost = 0
            self._since = None


class Sampler:
    """Samples the thread that makes it, from `begin` to `end`."""

    def __init__(self, path: Path, tally: Tally, marks: Marks, sources: SourceFiles) -> None:
        self._path = path
        self._tally = tally
        self._marks = marks
        self._sources = sources
        self._lines: dict[tuple[Any, ...], Line] = {}
        self._thread = threading.Thread(target=self._run, name="selftime-worker", daemon=True)
        self._sampled = threading.get_ident()
        self._cpu_clock = _cpu_clock(self._sampled)
        self._cpu = 0
        self._root: CodeType | None = None
        self._queue: Any = None
        self._ended = False
        self._interval = self._set = self._asked = sys.getswitchinterval()
        """What the program has; what was set last, as it is told, and as it was asked for."""
        self.about: Callable[[], dict[str, Any]] = dict
        """What to write beside what was counted."""

    def begin(self, root: CodeType, queue: Any) -> None:
        """Look at frames within that of `root`, and at the thread of `queue`."""
        self._root, self._queue = root, queue
        self._thread.start()

    def end(self) -> None:
        self._ended = True
        self._wait_for_turn(at_most=self._interval)
        self._thread.join(LONGEST_PERIOD)
        self._write()

    def _run(self) -> None:
        pace, last, written = Pace(), time.perf_counter_ns(), 0
        while not self._ended:
            time.sleep(pace.period)
            alone = threading.active_count() <= USUAL_THREADS
            self._wait_for_turn(at_most=PROMPT if alone else self._interval)
            asked, nap = time.perf_counter_ns(), pace.nap()
            time.sleep(nap)
            now = time.perf_counter_ns()
            self._wait_for_turn(at_most=self._interval)
            ran = self._ran(now - last)
            self._look(now - last)
            last = now
            if now - written > WRITTEN_EVERY_NS and self._tally.first.batches + self._tally.failed:
                if not self._write():
                    return
                written = now
            pace.add(asked + int(nap * 1e9), time.perf_counter_ns(), ran)

    def _ran(self, passed: int) -> float:
        """The share of the time since the last look in which the main thread ran."""
        if self._cpu_clock is None:
            return float(self._marks.phase is not Phase.WAITING)
        before, self._cpu = self._cpu, time.clock_gettime_ns(self._cpu_clock)
        return min(1.0, (self._cpu - before) / max(passed, 1))

    def _wait_for_turn(self, *, at_most: float) -> None:
        """How long the interpreter may keep this thread waiting, in seconds.

        It gives a thread its turn when another waits itself, or after this time. The usual 5 ms are
        so long that lines which wait would be seen, and those that only compute would not. Less
        makes threads take turns more often, which costs them: it is set for a nap at a time.
        """
        if sys.getswitchinterval() == self._set and at_most != self._asked:
            sys.setswitchinterval(at_most)
            self._set, self._asked = sys.getswitchinterval(), at_most

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
        found: list[Line] = []
        outermost = None
        lines, root = self._lines, self._root
        while frame is not None:
            code = frame.f_code
            if code is root:
                break
            key = code.co_filename, frame.f_lineno, code.co_name, phase
            line = lines.get(key)
            if line is None:
                line = lines[key] = self._line(frame, phase)
            if line.own:
                found.append(line)
            elif line.file not in _LOOP:
                outermost = line
            frame = frame.f_back
        return found if found or outermost is None else [outermost]

    def _line(self, frame: FrameType, phase: Phase) -> Line:
        code = frame.f_code
        if len(self._lines) > MOST_KNOWN:  # a program that compiles code all the time
            self._lines.clear()
        file = self._sources.user_file(code.co_filename)
        line = frame.f_lineno or code.co_firstlineno
        return Line(phase, file or code.co_filename, line, code.co_name, file is not None)

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


def _cpu_clock(thread: int) -> int | None:
    """The clock of a thread's CPU time, where the system has one."""
    try:
        return time.pthread_getcpuclockid(thread)
    except (AttributeError, OSError):
        return None


def _doing(frame: FrameType | None) -> str | None:
    """What the queue's thread does of what it is there for; None while it waits."""
    while frame is not None:
        if frame.f_code.co_name in _SERIALISES:
            return "dumps" if frame.f_code.co_name == "dumps" else "send"
        frame = frame.f_back
    return None
