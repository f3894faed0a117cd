"""Finds and opens the traces that the web page shows: given files, or those in folders."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from glob import has_magic
from pathlib import Path, PurePosixPath
from time import monotonic
from typing import Final, Protocol

from selftime.errors import UnreadableTrace, UsageError
from selftime.ingest.job_grouping import separate_jobs
from selftime.ingest.load import load
from selftime.ingest.text.format_detection import looks_like_trace
from selftime.ingest.text.trace_start import TraceStart, read_trace_start
from selftime.ingest.trace_cache import file_stamp
from selftime.ingest.trace_listing import TRACE_FILE_SUFFIXES, ListedTrace, listed_trace
from selftime.ingest.trace_paths import TraceFiles, ledgers_without_trace, trace_files
from selftime.ledger_format import LEDGER_SUFFIX, is_slow_step_file
from selftime.progress import ProgressCallback
from selftime.trace import Trace

__all__ = ["ListedTrace", "TraceSources", "TracesAtPaths", "listed_trace", "read_trace"]

_TRACE_HANDLER_FILE_SUFFIXES: Final = tuple(f".pt.trace{suffix}" for suffix in TRACE_FILE_SUFFIXES)
"""File name suffixes of traces that PyTorch's trace handler and `selftime run` write."""
_MAX_GAP_BETWEEN_ENDS_OF_ONE_JOB_S: Final = 60.0
"""Largest time in s between modification times of trace files that count as written together."""
_MAX_TRACES_WHOSE_STARTS_ARE_READ: Final = 2000
"""Largest number of listed traces of which the first bytes are read; of more the names must do."""
_MAX_AGE_OF_REUSED_FILE_LIST_S: Final = 5.0
"""Time in s for which a list of the files at a URL or glob pattern is reused."""


class TraceSources(Protocol):
    """The traces that the page shows: files given to a command, or files in a watched folder.

    Methods are called from several threads at once.
    """

    def listed_traces(self) -> list[ListedTrace]:
        """Returns the traces that now exist, in the order of the page's list."""

    def fingerprint(self, trace_id: str) -> str:
        """Returns a text that changes with the trace's content; empty if it cannot be known.

        Raises:
            UsageError: There is no trace of that id.
        """

    def path_of(self, trace_id: str) -> str:
        """Returns the path or URL of a trace by its id.

        Raises:
            UsageError: There is no trace of that id.
        """

    def open(self, trace_id: str, *, progress: ProgressCallback | None = None) -> Trace:
        """Reads a trace by its id, and returns it; `progress` is told the bytes read and all."""


def find_listed_trace(traces: Iterable[ListedTrace], trace_id: str) -> ListedTrace:
    """Returns a trace's entry in the list.

    Raises:
        UsageError: There is no trace of that id.
    """
    found = next((listed for listed in traces if listed.id == trace_id), None)
    if found is None:
        raise UsageError(f"there is no trace `{trace_id[:40]}` here; load the page again")
    return found


class TracesAtPaths:
    """The traces at some paths: files, folders with traces at any depth, glob patterns, URLs."""

    def __init__(self, paths: Iterable[str], *, may_be_empty: bool = False) -> None:
        self._paths = tuple(paths)
        self._path_by_id: dict[str, str] = {}
        self._is_trace_by_stamp: dict[str, bool] = {}
        self._start_by_file: dict[tuple[str, int, int | None], TraceStart] = {}
        self._matches: dict[str, tuple[float, TraceFiles]] = {}
        for path in self._paths:
            if not (_is_pattern_or_url(path) or Path(path).exists()):
                raise UnreadableTrace(
                    f"`{path}` cannot be read: there is no such file or folder; give a trace or "
                    "a folder of them"
                )
        if not may_be_empty and not self.listed_traces():
            quoted_paths = ", ".join(f"`{path}`" for path in self._paths) or "nothing"
            raise UnreadableTrace(f"{quoted_paths} holds no trace; record one with `selftime run`")

    def listed_traces(self) -> list[ListedTrace]:
        """Returns the traces that now exist; in a folder, the newest recording first."""
        traces_by_id: dict[str, tuple[str, ListedTrace]] = {}
        for path in self._paths:
            for trace_path, run in self._traces_and_runs_at_path(path):
                listed = listed_trace(trace_path, run_folder=run)
                traces_by_id.setdefault(listed.id, (trace_path, listed))
        self._path_by_id = {
            trace_id: trace_path for trace_id, (trace_path, _) in traces_by_id.items()
        }
        is_few = len(traces_by_id) <= _MAX_TRACES_WHOSE_STARTS_ARE_READ
        starts = {
            trace_id: self._start_of_trace(trace_path, listed) if is_few else TraceStart()
            for trace_id, (trace_path, listed) in traces_by_id.items()
        }
        traces = separate_jobs([listed for _, listed in traces_by_id.values()], starts)
        return [replace(listed, device=starts[listed.id].device) for listed in traces]

    def _start_of_trace(self, path: str, listed: ListedTrace) -> TraceStart:
        """Returns what the first bytes of a local file tell; it is read again once it changes."""
        key = path, listed.bytes, listed.modified
        if key not in self._start_by_file:
            is_readable = listed.modified is not None and not listed.is_ledger
            self._start_by_file[key] = read_trace_start(Path(path)) if is_readable else TraceStart()
        return self._start_by_file[key]

    def fingerprint(self, trace_id: str) -> str:
        path = self.path_of(trace_id)
        if "://" in path:
            return ""
        try:
            return file_stamp(Path(path))
        except OSError as error:
            raise UnreadableTrace(f"`{path}` cannot be read: {error.strerror}") from error

    def open(self, trace_id: str, *, progress: ProgressCallback | None = None) -> Trace:
        return read_trace(self.path_of(trace_id), progress=progress)

    def path_of(self, trace_id: str) -> str:
        if trace_id not in self._path_by_id:
            self.listed_traces()
        if trace_id not in self._path_by_id:
            raise UsageError(f"there is no trace `{trace_id[:40]}` here; load the page again")
        return self._path_by_id[trace_id]

    def _traces_and_runs_at_path(self, path: str) -> Iterable[tuple[str, str]]:
        """Yields (path of a trace, name of the run it belongs to) for each trace at a path."""
        root = Path(path)
        if root.is_dir():
            named = list(_files_named_like_traces(root))
            trace_files = [
                file
                for file in named
                if not file.name.endswith(LEDGER_SUFFIX) and self._is_trace(file)
            ]
            trace_files += ledgers_without_trace(named, trace_files)
            return [
                (str(file), _run_name_of_file(file, root))
                for file in _sort_newest_recordings_first(trace_files)
            ]
        if root.exists() or not _is_pattern_or_url(path):
            return [(path, "")]
        matches = self._matching_files(path)
        if not matches.is_collection:
            return [(path, "")]
        return [(match, _run_name_of_url(match, matches.root)) for match in matches.files]

    def _matching_files(self, pattern_or_url: str) -> TraceFiles:
        """Returns the files that match a glob pattern, or are below a URL."""
        listed_at, files = self._matches.get(
            pattern_or_url, (-_MAX_AGE_OF_REUSED_FILE_LIST_S, None)
        )
        if files is None or monotonic() - listed_at > _MAX_AGE_OF_REUSED_FILE_LIST_S:
            files = trace_files(pattern_or_url)
            self._matches[pattern_or_url] = monotonic(), files
        return files

    def _is_trace(self, path: Path) -> bool:
        """Returns whether a file in a folder is a trace, by its name or by its content."""
        if path.name.endswith(_TRACE_HANDLER_FILE_SUFFIXES):
            return True
        try:
            stamp = file_stamp(path)
        except OSError:
            return False
        if stamp not in self._is_trace_by_stamp:
            self._is_trace_by_stamp[stamp] = looks_like_trace(path)
        return self._is_trace_by_stamp[stamp]


def read_trace(path: str, *, progress: ProgressCallback | None = None) -> Trace:
    """Returns the only trace at a path or URL."""
    loaded = load(path, progress=progress)
    if not isinstance(loaded, Trace):
        raise UnreadableTrace(f"`{path}` is a folder now; load the page again")
    return loaded


def _files_named_like_traces(root: Path) -> Iterator[Path]:
    """Yields the files below a folder that are ledgers, or may be traces, by their name.

    Hidden folders and traces of slow steps are left out.
    """
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            is_named = name.endswith((*TRACE_FILE_SUFFIXES, LEDGER_SUFFIX))
            if is_named and not is_slow_step_file(name) and path.is_file():
                yield path


def _sort_newest_recordings_first(paths: Iterable[Path]) -> list[Path]:
    """Sorts trace files from newest to oldest; files of about the same time are sorted by name."""
    times_and_paths = sorted(((_modification_time_s(path), path) for path in paths), reverse=True)
    ordered: list[Path] = []
    same_recording: list[Path] = []
    previous_time = 0.0
    for time, path in times_and_paths:
        if same_recording and previous_time - time > _MAX_GAP_BETWEEN_ENDS_OF_ONE_JOB_S:
            ordered += sorted(same_recording)
            same_recording = []
        same_recording.append(path)
        previous_time = time
    return ordered + sorted(same_recording)


def _modification_time_s(path: Path) -> float:
    """Returns the modification time of a file in s; 0 if it cannot be read."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _is_pattern_or_url(path: str) -> bool:
    return "://" in path or has_magic(path)


def _run_name_of_file(path: Path, root: Path) -> str:
    """Returns a run's name: the trace's folder relative to `root`, or the name of `root`."""
    subfolder = path.parent.relative_to(root).as_posix()
    return root.absolute().name if subfolder == "." else subfolder


def _run_name_of_url(path: str, root: str) -> str:
    """Returns a run's name: the trace's folder relative to the URL or pattern's root."""
    folder, root_path = PurePosixPath(path).parent, PurePosixPath(root)
    return root_path.name if folder == root_path else folder.relative_to(root_path).as_posix()
