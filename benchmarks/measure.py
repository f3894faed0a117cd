"""One whole process, measured: time, CPU time, peak memory, or how it failed.

Memory is that of the process and all its descendants. On Linux it is sampled: the sum of PSS, in
which a page that several processes share counts once, and the anonymous part of it, which is what
they hold themselves rather than mapped from files. Between samples the sampler rests twenty times
as long as a sample took, so it takes at most a twentieth of one core. What falls between two
samples is caught for the largest process by the kernel's own `ru_maxrss`, exactly; elsewhere than
on Linux that is all there is. The kernel counts the starting process into it, so who measures must
be small: this module and what imports it need nothing but the standard library.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Final

__all__ = ["HOW", "Measured", "measure", "memory_there"]

REST: Final = 20
"""The sampler rests so many times as long as it worked."""
SHORTEST_S: Final = 0.005
"""And at least this long: shorter stretches of memory are not told apart from noise."""
FOLDERS: Final = re.compile(r"(?<![\w.])/(?:[\w.+-]+/)+")
"""Of a path: they say where this machine keeps its files, not what went wrong."""
LONGEST: Final = 160
"""Characters of a failure that are told."""
MAXRSS_UNIT: Final = 1 if sys.platform == "darwin" else 1024
HOW: Final = "PSS of all processes" if sys.platform == "linux" else "ru_maxrss of the largest"


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of a process."""

    wall_s: float
    cpu_s: float
    """User and system time, of descendants that were waited for as well."""
    memory: int
    """Bytes at the peak, as the module describes."""
    own_memory: int | None
    """Bytes at the peak of the anonymous part alone; None where it cannot be told."""
    failure: str | None = None
    """How it ended, with the last line that it wrote; None if it ended well."""
    told: Mapping[str, Any] = field(default_factory=dict)
    """What its last line of output says, if that is a JSON object."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def measure(
    command: Sequence[str | Path],
    *,
    limit_s: float = 3600,
    limit_memory: int | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Measured:
    """Run a command to its end, or until it passes a limit, and say what it took.

    Args:
        command: The program and its arguments.
        limit_s: It is killed, with its descendants, when it has run for so many seconds.
        limit_memory: Likewise when they hold more bytes; by default nine tenths of what is free.
        environment: What is added to this process's environment.
        folder: Where it runs.
    """
    if limit_memory is None:
        limit_memory = memory_there() * 9 // 10
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.perf_counter()
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
        sampler = Sampler(process.pid, limit_s, limit_memory)
        sampler.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        sampler.stop()
        process.returncode = os.waitstatus_to_exitcode(status)
        _end(process.pid)  # what it left behind must not disturb the next
        failure = _failure(process.returncode, sampler.stopped, err, out)
        return Measured(
            wall_s=wall,
            cpu_s=usage.ru_utime + usage.ru_stime,
            memory=max(sampler.memory, usage.ru_maxrss * MAXRSS_UNIT),
            own_memory=sampler.own_memory or None,
            failure=failure,
            told={} if failure else _told(out),
        )


class Sampler:
    """Watches a process and its descendants, and ends them when they pass a limit."""

    def __init__(self, pid: int, limit_s: float, limit_memory: int) -> None:
        self.memory = self.own_memory = 0
        self.stopped: str | None = None
        """Which limit was passed."""
        self._pid, self._limit_s, self._limit_memory = pid, limit_s, limit_memory
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        begin = time.perf_counter()
        rest = 0.0
        while not self._over.wait(max(rest, SHORTEST_S)):
            before = time.perf_counter()
            memory, own = _held(self._pid)
            self.memory, self.own_memory = max(self.memory, memory), max(self.own_memory, own)
            if memory > self._limit_memory:
                self.stopped = f"stopped at {memory / 1e9:.1f} GB of memory"
            elif before - begin > self._limit_s:
                self.stopped = f"stopped after {self._limit_s:.0f} s"
            if self.stopped:
                _end(self._pid)
                return
            rest = min(REST * (time.perf_counter() - before), 1.0)


def memory_there() -> int:
    """Bytes that programs can still take without others losing theirs."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _held(pid: int) -> tuple[int, int]:
    """Bytes that a process and its descendants hold, and the anonymous part of them."""
    memory = own = 0
    for one in _family(pid):
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text("ascii").splitlines()
        except OSError:  # it is gone, or this is not Linux
            continue
        held = {name: int(rest.split()[0]) for name, _, rest in map(_parted, lines[1:])}
        memory += held.get("Pss", 0) * 1024
        own += held.get("Pss_Anon", 0) * 1024
    return memory, own


def _parted(line: str) -> tuple[str, str, str]:
    return line.partition(":")


def _family(pid: int) -> Iterator[int]:
    yield pid
    for child in _children(pid):
        yield from _family(child)


def _children(pid: int) -> list[int]:
    """The processes that a process has started; none if it is gone."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):  # a thread that ended
                found.extend(map(int, (task / "children").read_text("ascii").split()))
    return found


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _failure(status: int, stopped: str | None, *written: IO[bytes]) -> str | None:
    if stopped:
        return stopped
    if status == 0:
        return None
    how = f"status {status}" if status > 0 else signal.Signals(-status).name
    last = next((lines[-1] for file in written if (lines := _lines(file))), None)
    return how if last is None else f"{how}: {FOLDERS.sub('', last.strip())[:LONGEST]}"


def _lines(file: IO[bytes]) -> list[str]:
    file.seek(0)
    return [line for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]


def _told(out: IO[bytes]) -> dict[str, Any]:
    for line in reversed(_lines(out)):
        with contextlib.suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict):
                return found
    return {}
