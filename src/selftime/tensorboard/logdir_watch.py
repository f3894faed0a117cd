"""Searches a TensorBoard logdir for traces, in a background thread."""

import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from selftime.ingest.trace_listing import TRACE_FILE_SUFFIXES
from selftime.ledger_format import is_slow_step_file
from selftime.tensorboard.logdirs import Logdir

MAX_FOLDERS_PER_LOGDIR: Final = 200_000
"""Largest number of folders searched in a logdir; one with more is probably a whole disk."""

_MAX_RESOLUTION_OF_FILE_TIMES_NS: Final = 2_000_000_000
"""Coarsest resolution in ns of modification times: two changes within it may have the same time."""
_MAX_FOLDER_LISTING_AGE_S: Final = 120.0
"""Seconds after which a folder is listed again although its modification time has not changed."""
_TRACE_HANDLER_FILE_SUFFIXES: Final = tuple(f".pt.trace{suffix}" for suffix in TRACE_FILE_SUFFIXES)
"""Suffixes of the files that PyTorch's trace handler and `selftime run` write."""

_log: Final = logging.getLogger(__name__)

MAX_TRACES_PER_LOGDIR: Final = 10_000
"""Largest number of traces in a logdir that are shown."""
_MIN_PAUSE_BETWEEN_SEARCHES_S: Final = 1.0
"""Shortest time in seconds between two searches of a local logdir."""
_MIN_PAUSE_BETWEEN_REMOTE_SEARCHES_S: Final = 60.0
"""Shortest time in seconds between two searches of remote storage, where requests may cost
money."""
_MIN_RATIO_OF_PAUSE_TO_SEARCH_TIME: Final = 10
"""Shortest pause after a search, as a multiple of the search's duration."""
_MAX_SEARCH_TIME_WITHOUT_SLEEP_S: Final = 0.02
"""Seconds of searching after which the search sleeps equally long, so that TensorBoard can
respond."""
_FIRST_SEARCH_UPDATE_INTERVAL_S: Final = 0.25
"""Seconds after which the list of traces is updated during the first search."""
_MIN_NS_SINCE_CHANGE_OF_COMPLETE_FILE: Final = 2_000_000_000
"""Time in ns without a change after which a file counts as completely written."""
_MAX_FILES_OPENED_PER_SEARCH: Final = 2_000
"""Largest number of files whose first bytes one search reads; the next search reads further
files."""


@dataclass(frozen=True, slots=True)
class PossibleTraceFile:
    """A file that may be a trace: its path, folder, modification time and size."""

    path: str
    folder: str
    bytes: int
    modified_ns: int
    """Modification time of the file in ns, as the file system reports it."""


@dataclass(slots=True)
class _FolderListing:
    """The files and folders in a folder, and when it was listed and last modified."""

    modified_ns: int
    listed_at: float
    is_settled: bool
    """Whether any later change of the folder will change its modification time."""
    folders: list[str]
    files: list[str]


class TraceFileSearch:
    """Finds the files below a folder that may be traces, judged by their names."""

    def __init__(
        self, root: str, *, rest_between_folders: Callable[[], None] = lambda: None
    ) -> None:
        """Sets the folder to search, and a function, called before each folder, that may sleep."""
        self.root = root
        self.rest_between_folders = rest_between_folders
        self._known: dict[str, _FolderListing] = {}

    def files(self) -> Iterator[PossibleTraceFile]:
        """Yields the files that may be traces; skips unreadable files and folders."""
        known_folders, self._known = self._known, {}
        pending_folders, visited = [self.root], set()
        while pending_folders:
            folder_path = pending_folders.pop()
            self.rest_between_folders()
            try:
                status = os.stat(folder_path)  # noqa: PTH116 - paths are made in thousands
                identity = status.st_dev, status.st_ino
                if (
                    identity in visited and status.st_ino
                ):  # a cycle of links; the number is 0 where unknown
                    continue
                folder = self._list_folder(
                    folder_path, status.st_mtime_ns, known_folders.get(folder_path)
                )
            except OSError as error:
                _log.debug("`%s` is left out: %s", folder_path, error)
                continue
            visited.add(identity)
            if len(visited) > MAX_FOLDERS_PER_LOGDIR:
                _log.warning("`%s` has too many folders; traces may be missing", self.root)
                return
            self._known[folder_path] = folder
            pending_folders.extend(reversed(folder.folders))
            yield from filter(
                None, (_possible_trace_file_at(path, folder_path) for path in folder.files)
            )

    def _list_folder(
        self, path: str, modified_ns: int, earlier_listing: _FolderListing | None
    ) -> _FolderListing:
        """Returns a folder's content; `earlier_listing` if the folder has not changed since."""
        now = time.monotonic()
        if (
            earlier_listing is not None
            and earlier_listing.is_settled
            and earlier_listing.modified_ns == modified_ns
            and now - earlier_listing.listed_at < _MAX_FOLDER_LISTING_AGE_S
        ):
            return earlier_listing
        folders, files = [], []
        is_settled = time.time_ns() - modified_ns > _MAX_RESOLUTION_OF_FILE_TIMES_NS
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name.startswith("."):  # a file that is being written, or not a log
                    continue
                if entry.is_dir():
                    folders.append(entry.path)
                elif entry.name.endswith(TRACE_FILE_SUFFIXES) and not is_slow_step_file(entry.name):
                    files.append(entry.path)
        return _FolderListing(modified_ns, now, is_settled, sorted(folders), sorted(files))


def is_named_as_trace(path: str) -> bool:
    """Returns whether a file has a suffix that PyTorch's trace handler or selftime gives traces.

    >>> is_named_as_trace("runs/gpu1_77.1723.pt.trace.json.gz")
    True
    """
    return path.endswith(_TRACE_HANDLER_FILE_SUFFIXES)


def _possible_trace_file_at(path: str, folder: str) -> PossibleTraceFile | None:
    """Returns a file's size and modification time; None if it is not a regular file."""
    try:
        status = os.stat(path)  # noqa: PTH116 - likewise
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return PossibleTraceFile(path, folder, status.st_size, status.st_mtime_ns)


class LogdirWatch:
    """Searches a logdir in a background thread, and holds the traces found last.

    A search starts only on request, except that one that found unfinished files is repeated until
    they are complete.
    """

    def __init__(self, logdir: Logdir) -> None:
        self.logdir = logdir
        self._state = threading.Condition()
        self._is_alive = self._is_searching = False
        self._next_search = 0.0
        self._found: tuple[PossibleTraceFile, ...] = ()
        # The following are used by the thread only.
        self._walk = TraceFileSearch(
            logdir.path, rest_between_folders=self._sleep_as_long_as_search_worked
        )
        self._worked = 0.0
        self._search_count = 0
        self._is_done = True
        self._unsettled: dict[str, PossibleTraceFile] = {}
        self._opened_files: dict[str, tuple[PossibleTraceFile, bool]] = {}

    def request_search(self) -> None:
        """Starts a search, unless one is running or the pause after the last has not ended."""
        with self._state:
            if self._is_alive or time.monotonic() < self._next_search:
                return
            self._is_alive = self._is_searching = True
        threading.Thread(
            target=self._search_until_complete, name="selftime-logdir", daemon=True
        ).start()

    def found_traces(self, *, max_wait_s: float) -> tuple[PossibleTraceFile, ...]:
        """Waits at most `max_wait_s` seconds for the search; returns the traces found so far."""
        with self._state:
            self._state.wait_for(lambda: not self._is_searching, max_wait_s)
            return self._found

    def _search_until_complete(self) -> None:
        """Searches repeatedly until all files found are completely written."""
        while True:
            with self._state:
                self._is_searching = True
            started = self._worked = time.monotonic()
            try:
                self._search_logdir_once()
            except Exception as error:  # noqa: BLE001 - whatever it is, TensorBoard goes on
                _log.warning("`%s` could not be searched for traces: %r", self.logdir.path, error)
                self._is_done = True
            pause_s = (
                _MIN_PAUSE_BETWEEN_REMOTE_SEARCHES_S
                if self.logdir.is_remote
                else _MIN_PAUSE_BETWEEN_SEARCHES_S
            )
            pause_s = max(
                pause_s, _MIN_RATIO_OF_PAUSE_TO_SEARCH_TIME * (time.monotonic() - started)
            )
            with self._state:
                self._search_count += 1
                self._is_searching = False
                self._is_alive = not self._is_done
                self._next_search = time.monotonic() + pause_s
                self._state.notify_all()
            if self._is_done:
                return
            time.sleep(pause_s)

    def _search_logdir_once(self) -> None:
        """Searches the logdir once; afterwards `found_traces` returns the traces found."""
        self._is_done = True
        found: list[PossibleTraceFile] = []
        published_at = time.monotonic()
        for file in (
            self._find_remote_traces()
            if self.logdir.is_remote
            else self._find_complete_local_traces()
        ):
            if len(found) == MAX_TRACES_PER_LOGDIR:
                _log.warning(
                    "`%s` has more traces than %d", self.logdir.path, MAX_TRACES_PER_LOGDIR
                )
                break
            found.append(file)
            if (
                not self._search_count
                and time.monotonic() - published_at > _FIRST_SEARCH_UPDATE_INTERVAL_S
            ):
                self._publish_found_traces(found)
                published_at = time.monotonic()
        self._publish_found_traces(found)

    def _publish_found_traces(self, found_files: Iterable[PossibleTraceFile]) -> None:
        """Makes `found_traces` return the given files."""
        with self._state:
            self._found = tuple(found_files)

    def _find_complete_local_traces(self) -> Iterable[PossibleTraceFile]:
        """Yields the traces of a local logdir, except files that are still being written."""
        published_paths = {file.path for file in self._found}
        unsettled_before, self._unsettled = self._unsettled, {}
        for file in self._select_trace_files(self._walk.files()):
            if (
                file.path in published_paths
                or unsettled_before.get(file.path) == file
                or _is_file_unchanged_and_so_complete(file)
            ):
                yield file
            else:
                self._unsettled[file.path] = file
                self._is_done = False

    def _select_trace_files(
        self, files: Iterable[PossibleTraceFile]
    ) -> Iterable[PossibleTraceFile]:
        """Yields those of the files that are traces, judged by name or by content."""
        opened_before, self._opened_files = self._opened_files, {}
        openings_left = _MAX_FILES_OPENED_PER_SEARCH
        for file in files:
            if not file.bytes:
                continue
            if is_named_as_trace(file.path):
                yield file
                continue
            opened = opened_before.get(file.path)
            if opened is None or opened[0] != file:
                if not openings_left:
                    self._is_done = False
                    continue
                openings_left -= 1
                self._sleep_as_long_as_search_worked()
                opened = file, _has_start_of_trace(file.path)
            self._opened_files[file.path] = opened
            if opened[1]:
                yield file

    def _find_remote_traces(self) -> Iterable[PossibleTraceFile]:
        """Yields the traces of a remote logdir, judged by name only."""
        from selftime.ingest.trace_paths import files_below_address  # noqa: PLC0415 - only where one is

        for path, folder, byte_count in files_below_address(self.logdir.path):
            if byte_count and is_named_as_trace(path) and not is_slow_step_file(path):
                yield PossibleTraceFile(path, folder, byte_count, 0)

    def _sleep_as_long_as_search_worked(self) -> None:
        """Sleeps as long as the search has worked since its last sleep, if over 20 ms."""
        now = time.monotonic()
        if now - self._worked > _MAX_SEARCH_TIME_WITHOUT_SLEEP_S:
            time.sleep(now - self._worked)
            self._worked = time.monotonic()


def _is_file_unchanged_and_so_complete(file: PossibleTraceFile) -> bool:
    """Returns whether a file has not changed for 2 s, and so counts as completely written."""
    return time.time_ns() - file.modified_ns > _MIN_NS_SINCE_CHANGE_OF_COMPLETE_FILE


def _has_start_of_trace(path: str) -> bool:
    """Returns whether the first bytes of a file look like those of a PyTorch trace."""
    from selftime.ingest.text.format_detection import looks_like_torch_trace  # noqa: PLC0415 - loads much, if at all

    return looks_like_torch_trace(Path(path))
