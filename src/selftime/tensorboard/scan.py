"""What is in a folder, at any depth: a walk that remembers what did not change.

A folder's time changes when a file comes or goes, so one whose time is as it was is not listed
again: looking again at 100,000 files of events costs one question to the system.
"""

import logging
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from selftime.reports.page_data.listing import SUFFIXES

MOST_FOLDERS: Final = 200_000
"""Beyond this a logdir is a disk, and nobody wants to wait for its end."""

_COARSE_NS: Final = 2_000_000_000
"""File systems tell times as coarse as this: what changed so shortly ago may change unseen."""
_RELIST_S: Final = 120.0
"""Some file systems do not tell a folder's time: after this it is listed in any case."""
_TRACES: Final = tuple(f".pt.trace{suffix}" for suffix in SUFFIXES)

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class File:
    """A file that may be a trace."""

    place: str
    folder: str
    bytes: int
    changed: int
    """When, in nanoseconds as its system counts them."""


@dataclass(slots=True)
class _Folder:
    """What a folder held when it was listed."""

    changed: int
    listed: float
    is_settled: bool
    """Whether a later change would show in its time."""
    folders: list[str]
    files: list[str]


class Walk:
    """The files below a folder whose names may be those of traces."""

    def __init__(self, root: str, *, rest: Callable[[], None] = lambda: None) -> None:
        """Walk below `root`; `rest` is called between folders, and may take its time."""
        self.root = root
        self.rest = rest
        self._known: dict[str, _Folder] = {}

    def files(self) -> Iterator[File]:
        """What is there now. What vanishes or cannot be read is left out."""
        before, self._known = self._known, {}
        waiting, visited = [self.root], set()
        while waiting:
            place = waiting.pop()
            self.rest()
            try:
                state = os.stat(place)  # noqa: PTH116 - paths are made in thousands
                identity = state.st_dev, state.st_ino
                if identity in visited and state.st_ino:  # a link in a circle; 0 where none is told
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
                if entry.name.startswith("."):  # a file that is being written, or no logs
                    continue
                if entry.is_dir():
                    folders.append(entry.path)
                elif entry.name.endswith(SUFFIXES):
                    files.append(entry.path)
        return _Folder(changed, now, is_settled, sorted(folders), sorted(files))


def is_named_as_trace(place: str) -> bool:
    """Whether a file is called as PyTorch's handler and `selftime run` call traces.

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
