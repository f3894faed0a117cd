"""Search a logdir for traces, on a background thread, on request."""

import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from selftime.reports.page_data.listing import SUFFIXES
from selftime.tensorboard.logdirs import Logdir

MOST_FOLDERS: Final = 200_000
"""The most folders that are searched: a logdir with more is likely a whole disk."""

_COARSE_NS: Final = 2_000_000_000
"""Resolution of file system times in ns: a later change within it may not be visible."""
_RELIST_S: Final = 120.0
"""Seconds after which a folder is listed again in any case: some file systems lack its time."""
_TRACES: Final = tuple(f".pt.trace{suffix}" for suffix in SUFFIXES)

_log: Final = logging.getLogger(__name__)

MOST_TRACES: Final = 10_000
"""The most traces that are listed."""
_REST_S: Final = 1.0
"""Least seconds between two searches."""
_REMOTE_REST_S: Final = 60.0
"""Least seconds between two searches of remote storage, which may cost money."""
_SHARE: Final = 10
"""The pause after a search, as a multiple of the search's duration."""
_WORK_S: Final = 0.02
"""Seconds of work after which the thread pauses as long, so that TensorBoard can respond."""
_NEWS_S: Final = 0.25
"""Seconds between updates of what the first search has found so far."""
_SETTLED_NS: Final = 2_000_000_000
"""Time in ns without a change after which a file counts as complete."""
_MOST_PEEKS: Final = 2_000
"""The most files whose start is read in one search; the others follow in the next."""


@dataclass(frozen=True, slots=True)
class File:
    """A file that may be a trace."""

    place: str
    folder: str
    bytes: int
    changed: int
    """The modification time, in ns as the file system has it."""


@dataclass(slots=True)
class _Folder:
    """The contents of a folder when it was listed."""

    changed: int
    listed: float
    is_settled: bool
    """Whether a later change would be visible in its modification time."""
    folders: list[str]
    files: list[str]


class Walk:
    """Finds the files below a folder whose names may be those of traces."""

    def __init__(self, root: str, *, rest: Callable[[], None] = lambda: None) -> None:
        """Search below `root`; `rest` is called between folders, and may sleep."""
        self.root = root
        self.rest = rest
        self._known: dict[str, _Folder] = {}

    def files(self) -> Iterator[File]:
        """Yields the current files, without those that vanish or cannot be read."""
        before, self._known = self._known, {}
        waiting, visited = [self.root], set()
        while waiting:
            place = waiting.pop()
            self.rest()
            try:
                state = os.stat(place)  # noqa: PTH116 - paths are made in thousands
                identity = state.st_dev, state.st_ino
                if (
                    identity in visited and state.st_ino
                ):  # a cycle of links; the number is 0 where unknown
                    continue
                folder = self._listed(place, state.st_mtime_ns, before.get(place))
            except OSError as error:
                _log.debug("`%s` is left out: %s", place, error)
                continue
            visited.add(identity)
            if len(visited) > MOST_FOLDERS:
                _log.warning("`%s` has too many folders; traces may be missing", self.root)
                return
            self._known[place] = folder
            waiting.extend(reversed(folder.folders))
            yield from filter(None, (_file(path, place) for path in folder.files))

    def _listed(self, place: str, changed: int, known: _Folder | None) -> _Folder:
        now = time.monotonic()
        if (
            known is not None
            and known.is_settled
            and known.changed == changed
            and now - known.listed < _RELIST_S
        ):
            return known
        folders, files = [], []
        is_settled = time.time_ns() - changed > _COARSE_NS
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.name.startswith("."):  # a file that is being written, or not a log
                    continue
                if entry.is_dir():
                    folders.append(entry.path)
                elif entry.name.endswith(SUFFIXES):
                    files.append(entry.path)
        return _Folder(changed, now, is_settled, sorted(folders), sorted(files))


def is_named_as_trace(place: str) -> bool:
    """Returns whether a file's name is one that PyTorch's handler or selftime gives traces.

    >>> is_named_as_trace("runs/gpu1_77.1723.pt.trace.json.gz")
    True
    """
    return place.endswith(_TRACES)


def _file(place: str, folder: str) -> File | None:
    try:
        state = os.stat(place)  # noqa: PTH116 - likewise
    except OSError:
        return None
    if not stat.S_ISREG(state.st_mode):
        return None
    return File(place, folder, state.st_size, state.st_mtime_ns)


class Watch:
    """The traces in a logdir, as of the last search.

    A search starts only on request, except that one that found unfinished files is repeated until
    they are complete.
    """

    def __init__(self, logdir: Logdir) -> None:
        self.logdir = logdir
        self._state = threading.Condition()
        self._is_alive = self._is_looking = False
        self._next_look = 0.0
        self._found: tuple[File, ...] = ()
        # The following are used by the thread only.
        self._walk = Walk(logdir.place, rest=self._rest)
        self._worked = 0.0
        self._looks = 0
        self._is_done = True
        self._unsettled: dict[str, File] = {}
        self._peeked: dict[str, tuple[File, bool]] = {}

    def ask(self) -> None:
        """Start a search, unless one is running or has just ended."""
        with self._state:
            if self._is_alive or time.monotonic() < self._next_look:
                return
            self._is_alive = self._is_looking = True
        threading.Thread(target=self._run, name="selftime-logdir", daemon=True).start()

    def found(self, *, wait: float) -> tuple[File, ...]:
        """Returns the traces; those found so far if the search takes longer than `wait` seconds."""
        with self._state:
            self._state.wait_for(lambda: not self._is_looking, wait)
            return self._found

    def _run(self) -> None:
        """Search until all files found are complete."""
        while True:
            with self._state:
                self._is_looking = True
            begin = self._worked = time.monotonic()
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - whatever it is, TensorBoard goes on
                _log.warning("`%s` could not be searched for traces: %r", self.logdir.place, error)
                self._is_done = True
            rest = _REMOTE_REST_S if self.logdir.is_remote else _REST_S
            rest = max(rest, _SHARE * (time.monotonic() - begin))
            with self._state:
                self._looks += 1
                self._is_looking = False
                self._is_alive = not self._is_done
                self._next_look = time.monotonic() + rest
                self._state.notify_all()
            if self._is_done:
                return
            time.sleep(rest)

    def _look(self) -> None:
        self._is_done = True
        found: list[File] = []
        told = time.monotonic()
        for file in self._remote() if self.logdir.is_remote else self._local():
            if len(found) == MOST_TRACES:
                _log.warning("`%s` has more traces than %d", self.logdir.place, MOST_TRACES)
                break
            found.append(file)
            if not self._looks and time.monotonic() - told > _NEWS_S:
                self._tell(found)
                told = time.monotonic()
        self._tell(found)

    def _tell(self, found: Iterable[File]) -> None:
        with self._state:
            self._found = tuple(found)

    def _local(self) -> Iterable[File]:
        listed = {file.place for file in self._found}
        before, self._unsettled = self._unsettled, {}
        for file in self._recordings(self._walk.files()):
            if file.place in listed or before.get(file.place) == file or _is_settled(file):
                yield file
            else:
                self._unsettled[file.place] = file
                self._is_done = False

    def _recordings(self, files: Iterable[File]) -> Iterable[File]:
        """Yields the files that are traces by their name, or by their content."""
        before, self._peeked = self._peeked, {}
        left = _MOST_PEEKS
        for file in files:
            if not file.bytes:
                continue
            if is_named_as_trace(file.place):
                yield file
                continue
            known = before.get(file.place)
            if known is None or known[0] != file:
                if not left:
                    self._is_done = False
                    continue
                left -= 1
                self._rest()
                known = file, _begins_as_trace(file.place)
            self._peeked[file.place] = known
            if known[1]:
                yield file

    def _remote(self) -> Iterable[File]:
        from selftime.ingest.paths import files_below  # noqa: PLC0415 - only where one is

        for place, folder, size in files_below(self.logdir.place):
            if size and is_named_as_trace(place):
                yield File(place, folder, size, 0)

    def _rest(self) -> None:
        now = time.monotonic()
        if now - self._worked > _WORK_S:
            time.sleep(now - self._worked)
            self._worked = time.monotonic()


def _is_settled(file: File) -> bool:
    """Returns whether a file is complete, judging by its modification time."""
    return time.time_ns() - file.changed > _SETTLED_NS


def _begins_as_trace(place: str) -> bool:
    from selftime.ingest.text.sniff import looks_like_torch_trace  # noqa: PLC0415 - loads much, if at all

    return looks_like_torch_trace(Path(place))
