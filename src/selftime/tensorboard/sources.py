"""Lists the traces in TensorBoard's logdirs for selftime's web page."""

import time
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from selftime.errors import UnreadableTrace, UsageError
from selftime.ingest.job_grouping import separate_jobs
from selftime.ingest.trace_cache import file_stamp
from selftime.ingest.trace_listing import ListedTrace, listed_trace
from selftime.progress import ProgressCallback
from selftime.tensorboard.logdir_watch import LogdirWatch, PossibleTraceFile
from selftime.trace import Trace
from selftime.web.sources import read_trace

_MAX_WAIT_FOR_SEARCH_S: Final = 1.0
"""Longest time in seconds that a request for the list of traces waits for a search."""


class LogdirTraces:
    """The traces in TensorBoard's logdirs, sorted by run (newest first), worker and time."""

    def __init__(self, watches: Iterable[LogdirWatch]) -> None:
        self._watches = tuple(watches)
        self._files: dict[str, PossibleTraceFile] = {}

    def listed_traces(self) -> list[ListedTrace]:
        """Returns the traces found so far, those of the newest run first."""
        listed_files = list(self._list_entry_and_file_of_each_trace())
        self._files = {listed.id: file for listed, file in listed_files}
        newest_time_by_run: dict[str, int] = {}
        for listed, file in listed_files:
            newest_time_by_run[listed.run_folder] = max(
                newest_time_by_run.get(listed.run_folder, 0), file.modified_ns
            )
        listed_files.sort(
            key=lambda listed_file: (
                -newest_time_by_run[listed_file[0].run_folder],
                _sort_key_within_run(listed_file[0]),
            )
        )
        return separate_jobs([listed for listed, _ in listed_files], {})

    def fingerprint(self, trace_id: str) -> str:
        file = self._found_file_of_trace(trace_id)
        if "://" in file.path:
            return ""
        try:
            return file_stamp(Path(file.path))
        except OSError as error:
            raise UnreadableTrace(f"`{file.path}` cannot be read: {error.strerror}") from error

    def path_of(self, trace_id: str) -> str:
        return self._found_file_of_trace(trace_id).path

    def open(self, trace_id: str, *, progress: ProgressCallback | None = None) -> Trace:
        return read_trace(self.path_of(trace_id), progress=progress)

    def _found_file_of_trace(self, trace_id: str) -> PossibleTraceFile:
        """Returns the file of the trace with the given id."""
        if trace_id not in self._files:
            self.listed_traces()
        try:
            return self._files[trace_id]
        except KeyError:
            raise UsageError(
                f"there is no trace `{trace_id[:40]}` in the logdir any more; choose another"
            ) from None

    def _list_entry_and_file_of_each_trace(self) -> Iterator[tuple[ListedTrace, PossibleTraceFile]]:
        """Yields (entry for the page's list, file) of each found trace, without duplicates."""
        for watch in self._watches:
            watch.request_search()
        deadline = time.monotonic() + _MAX_WAIT_FOR_SEARCH_S
        seen_ids = set()
        for watch in self._watches:
            for file in watch.found_traces(max_wait_s=max(0.0, deadline - time.monotonic())):
                listed = listed_trace(file.path, run_folder=watch.logdir.run_name(file.folder))
                if listed.id not in seen_ids:
                    seen_ids.add(listed.id)
                    yield listed, file


def _sort_key_within_run(listed_trace: ListedTrace) -> tuple[list[tuple[int, str]], ...]:
    """Returns a key that sorts the traces of a run by worker, then by time."""
    return (
        _natural_sort_key(listed_trace.run_folder),
        _natural_sort_key(listed_trace.worker),
        _natural_sort_key(listed_trace.span),
    )


def _natural_sort_key(text: str) -> list[tuple[int, str]]:
    """Returns a sort key that orders numbers within text by value: `rank2` before `rank10`.

    >>> sorted(["rank10", "rank2"], key=_natural_sort_key)
    ['rank2', 'rank10']
    """
    parts = ("".join(run) for _, run in groupby(text, key=str.isdecimal))
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
