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

from selftime.capture.workers.clock import Reading, between
from selftime.capture.workers.columns import told_as_columns
from selftime.capture.workers.loop import RecordedLoop
from selftime.capture.workers.sampler import WRITTEN_EVERY_NS
from selftime.capture.workers.taken import Takes

__all__ = ["WorkerRecord", "current"]

MOST_FILES: Final = 256
"""Workers whose files are kept, the latest: a program may start new ones each epoch."""

_on: list["WorkerRecord"] = []


def current() -> "WorkerRecord | None":
    """The record that is on."""
    return _on[-1] if _on else None


class WorkerRecord:
    """While it is on, workers of DataLoaders that start tell what they do.

    Those that run already do not; those that were started while it was on stop when it ends.
    """

    def __init__(self, own_code: Callable[[], tuple[str, ...]] = tuple) -> None:
        self._own_code = own_code
        self._takes = Takes()
        self._folder: Path | None = None
        self._loop: RecordedLoop | None = None
        self._begun = Reading.now()
        self._ended: int | None = None
        self._process = os.getpid()

    def start(self) -> None:
        if _on:
            return
        self._folder = Path(tempfile.mkdtemp(prefix="selftime-workers-"))
        weakref.finalize(self, _remove, self._folder, self._process)
        self._loop = RecordedLoop(str(self._folder), self._own_code)
        worker._worker_loop = self._loop  # noqa: SLF001 - what a DataLoader starts
        self._takes.watch()
        _on.append(self)

    def stop(self) -> None:
        """End; what stays wrapped because others wrapped it since does nothing from now on."""
        if self not in _on or self._folder is None or os.getpid() != self._process:
            return
        _on.remove(self)
        if self._loop is not None and worker._worker_loop is self._loop:  # noqa: SLF001 - likewise
            worker._worker_loop = self._loop.original  # noqa: SLF001 - likewise
        self._takes.release()
        shutil.rmtree(self._folder, ignore_errors=True)

    def begin(self) -> None:
        """A recording begins."""
        self._begun = Reading.now()
        self._ended = None

    def end(self) -> None:
        """A recording ends."""
        self._ended = time.perf_counter_ns()

    def facts(self) -> dict[str, Any] | None:
        """What the workers told until now; null if no loader had any, or torch starts them anew.

        Workers that live are given the time to write what they counted before `end`.
        """
        takes = self._takes
        if self._folder is None or not takes.iterators:
            return None
        if self._ended is not None and _live(takes):
            late = self._ended + WRITTEN_EVERY_NS + WRITTEN_EVERY_NS // 10
            time.sleep(max(0, min(late - time.perf_counter_ns(), WRITTEN_EVERY_NS)) / 1e9)
        clock = between(self._begun, Reading.now())
        return told_as_columns(self._files(), takes, self._begun.counter, clock)

    def _files(self) -> list[dict[str, Any]]:
        """What each worker wrote, those that began first first."""
        assert self._folder is not None  # noqa: S101 - the caller has looked
        names = sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        for old in names[:-MOST_FILES]:
            old.unlink(missing_ok=True)
        told = [json.loads(path.read_text()) for path in names[-MOST_FILES:]]
        return sorted(told, key=lambda one: int(one["began"]))


def _live(takes: Takes) -> bool:
    """Whether a worker runs that may have more to tell."""
    pids = {pid for iterator in takes.iterators for pid in iterator.pids}
    return any(child.pid in pids for child in multiprocessing.active_children())


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a child that was forked ends without its parent's folders
        shutil.rmtree(folder, ignore_errors=True)
