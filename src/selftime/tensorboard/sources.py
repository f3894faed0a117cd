"""The traces that TensorBoard's log directories hold, as the page's server needs them."""

import time
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from selftime.errors import UnreadableTrace, UsageError
from selftime.ingest.cache import file_stamp
from selftime.reports.page_data.listing import Listed, identified
from selftime.tensorboard.watch import File, Watch
from selftime.trace import Trace
from selftime.web.sources import read

_PATIENCE_S: Final = 1.0
"""Seconds that a list of traces may wait for newly found ones."""


class Traces:
    """The traces that some watches found: newest run first, then by worker and time."""

    def __init__(self, watches: Iterable[Watch]) -> None:
        self._watches = tuple(watches)
        self._files: dict[str, File] = {}

    def listed(self) -> list[Listed]:
        found = list(self._found())
        self._files = {listed.id: file for listed, file in found}
        newest: dict[str, int] = {}
        for listed, file in found:
            newest[listed.run] = max(newest.get(listed.run, 0), file.changed)
        found.sort(key=lambda one: (-newest[one[0].run], _order(one[0])))
        return [listed for listed, _ in found]

    def mark(self, trace: str) -> str:
        file = self._file(trace)
        if "://" in file.place:
            return ""
        try:
            return file_stamp(Path(file.place))
        except OSError as error:
            raise UnreadableTrace(f"`{file.place}` cannot be read: {error.strerror}") from error

    def place(self, trace: str) -> str:
        return self._file(trace).place

    def open(self, trace: str) -> Trace:
        return read(self.place(trace))

    def _file(self, trace: str) -> File:
        if trace not in self._files:
            self.listed()
        try:
            return self._files[trace]
        except KeyError:
            raise UsageError(
                f"there is no trace `{trace[:40]}` in the logdir any more; choose another"
            ) from None

    def _found(self) -> Iterator[tuple[Listed, File]]:
        for watch in self._watches:
            watch.ask()
        until = time.monotonic() + _PATIENCE_S
        seen = set()
        for watch in self._watches:
            for file in watch.found(wait=max(0.0, until - time.monotonic())):
                listed = identified(file.place, run=watch.logdir.run(file.folder))
                if listed.id not in seen:
                    seen.add(listed.id)
                    yield listed, file


def _order(listed: Listed) -> tuple[list[tuple[int, str]], ...]:
    return _natural(listed.run), _natural(listed.worker), _natural(listed.span)


def _natural(text: str) -> list[tuple[int, str]]:
    """Returns a sort key that compares numbers in a text as numbers.

    >>> sorted(["rank10", "rank2"], key=_natural)
    ['rank2', 'rank10']
    """
    parts = ("".join(run) for _, run in groupby(text, key=str.isdecimal))
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
