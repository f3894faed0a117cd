"""The record of a program's workers: switched on, read as facts, switched off."""

import json
import multiprocessing
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from torch.utils.data._utils import worker

from selftime.capture.lines.sources import SourceFiles
from selftime.capture.patches import Patches
from selftime.capture.workers.batch_arrivals import Takes
from selftime.capture.workers.clock import Reading, between
from selftime.capture.workers.columns import told_as_columns
from selftime.capture.workers.loop import RecordedLoop
from selftime.capture.workers.sampler import LONGEST_PERIOD, WRITTEN_EVERY_NS

MOST_FILES: Final = 256
"""Workers whose files are kept, the latest: a program may start new ones each epoch."""

LONGEST_WAIT_NS: Final = WRITTEN_EVERY_NS + int(LONGEST_PERIOD * 1e9)
"""A worker that is not held up has written what it counted after so long."""

POLL: Final = 0.02
"""Seconds between two looks for that."""

_on: list["WorkerRecord"] = []
"""The record that is on, if one is."""


def current() -> "WorkerRecord | None":
    """The record that is on in this process."""
    return _on[0] if _on and _on[0].process == os.getpid() else None


def begin() -> None:
    """A recording begins in this process."""
    record = current()
    if record is not None:
        record.begin()


def end() -> None:
    """A recording ends in this process."""
    record = current()
    if record is not None:
        record.end()


def facts() -> dict[str, Any] | None:
    """What workers of this process told; None if no record is on, or no loader started any."""
    record = current()
    return None if record is None else record.facts()


class WorkerRecord:
    """While it is on, workers of DataLoaders that start tell what they do.

    Those that run already do not; those that were started while it was on stop when it ends.
    """

    def __init__(self, own_code: Callable[[], tuple[str, ...]] = tuple) -> None:
        self.process = os.getpid()
        self._loop = RecordedLoop(None, own_code)
        self._takes = Takes(self._make_folder)
        self._patches = Patches()
        self._begun = Reading.now()
        self._ended: int | None = None
        self._failure: str | None = None

    def start(self) -> None:
        """Begin, unless one is on; one that came along with a fork is that of the parent."""
        if current() is not None:
            return
        while _on:
            _on.pop().release()
        self._loop.original = worker._worker_loop  # noqa: SLF001 - what a DataLoader starts
        self._patches.put(worker, "_worker_loop", self._loop)
        self._takes.watch()
        _on.append(self)

    def stop(self) -> None:
        """End; what was told goes, and workers that see it gone look no more."""
        if current() is self:
            _on.remove(self)
            self.release()
            if self._loop.folder is not None:
                shutil.rmtree(self._loop.folder, ignore_errors=True)

    def release(self) -> None:
        """Leave torch as it was; a wrapper that others wrapped since does nothing more."""
        self._patches.undo()
        self._takes.release()

    def begin(self) -> None:
        """A recording begins."""
        self._begun, self._ended = Reading.now(), None

    def end(self) -> None:
        """A recording ends."""
        self._ended = time.perf_counter_ns()

    def facts(self) -> dict[str, Any] | None:
        """What the workers told until now; None if no loader started any.

        Workers that live are given the time to write what they counted before `end`.
        """
        if not self._takes.iterators:
            return None
        files = self._files()
        late = time.perf_counter_ns() + LONGEST_WAIT_NS
        while self._lacks_the_end(files) and time.perf_counter_ns() < late:
            time.sleep(POLL)
            files = self._files()
        clock = between(self._begun, Reading.now())
        found = told_as_columns(files, self._takes, self._begun.counter, clock)
        return {**found, "failure": self._failure}

    def _lacks_the_end(self, files: list[dict[str, Any]]) -> bool:
        """Whether a worker lives that has not told yet what was before `end`."""
        told = {one["pid"]: one["told"] for one in files}
        ours = {pid for iterator in self._takes.iterators for pid in iterator.pids}
        live = ours & {child.pid for child in multiprocessing.active_children()}
        return self._ended is not None and any(told.get(pid, 0) < self._ended for pid in live)

    def _make_folder(self) -> None:
        if self._loop.folder is not None or os.getpid() != self.process:
            return
        try:
            folder = tempfile.mkdtemp(prefix="selftime-workers-")
        except OSError as error:
            self._failure = (
                f"workers could not be recorded: no folder can be made in "
                f"`{tempfile.gettempdir()}`: {error.strerror}; set TMPDIR to another place"
            )
            return
        self._loop.folder = folder
        self._loop.sources = SourceFiles(self._loop.own_code())
        weakref.finalize(self, _remove, folder, self.process)

    def _files(self) -> list[dict[str, Any]]:
        """What each worker wrote, those that began first first."""
        if self._loop.folder is None:
            return []
        names = sorted(Path(self._loop.folder).glob("*.json"), key=lambda path: path.name)
        told = [json.loads(path.read_text()) for path in names]
        return sorted(told, key=lambda one: int(one["began"]))[-MOST_FILES:]


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # a child that was forked ends without its parent's folders
        shutil.rmtree(folder, ignore_errors=True)
