"""Which traces there are to show, and how one is opened."""

import os
from collections.abc import Iterable, Iterator
from glob import has_magic
from pathlib import Path, PurePosixPath
from time import monotonic
from typing import Final, Protocol

from selftime.errors import UnreadableTrace, UsageError
from selftime.ingest.cache import file_stamp
from selftime.ingest.load import load
from selftime.ingest.paths import TraceFiles, trace_files
from selftime.ingest.text.sniff import looks_like_trace
from selftime.reports.page_data.listing import SUFFIXES, Listed, identified
from selftime.trace import Trace

__all__ = ["Files", "Listed", "Sources", "identified", "read"]

_RECORDED: Final = tuple(f".pt.trace{suffix}" for suffix in SUFFIXES)
"""How names end that PyTorch's own handler and `selftime run` write."""
_TOGETHER_S: Final = 60.0
"""Recordings of one job end within this of each other."""
_FRESH_S: Final = 5.0
"""An address is not asked again within this: one page asks many questions."""


class Sources(Protocol):
    """Where the traces come from: files that a command names, a folder that TensorBoard watches.

    Questions come from several threads at once.
    """

    def listed(self) -> list[Listed]:
        """The traces that there are now, in the order in which they are offered."""

    def mark(self, trace: str) -> str:
        """What changes when the trace's content does; empty if nothing tells, so nothing is kept.

        Raises:
            UsageError: There is no trace of that id.
        """

    def place(self, trace: str) -> str:
        """Its path or address.

        Raises:
            UsageError: There is no trace of that id.
        """

    def open(self, trace: str) -> Trace:
        """The trace itself, read anew at each call."""


class Files:
    """The traces at some paths: files, folders with traces at any depth, patterns, addresses."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._given = tuple(paths)
        self._places: dict[str, str] = {}
        self._glanced: dict[str, bool] = {}
        self._matched: dict[str, tuple[float, TraceFiles]] = {}
        for given in self._given:
            if not (_means_several(given) or Path(given).exists()):
                raise UnreadableTrace(
                    f"`{given}` cannot be read: there is no such file or folder; give a trace or "
                    "a folder of them"
                )
        if not self.listed():
            named = ", ".join(f"`{given}`" for given in self._given) or "nothing"
            raise UnreadableTrace(f"{named} holds no trace; record one with `selftime run`")

    def listed(self) -> list[Listed]:
        """The traces that are there now; in a folder those of the newest recording first."""
        found: dict[str, tuple[str, Listed]] = {}
        for given in self._given:
            for place, run in self._at(given):
                listed = identified(place, run=run)
                found.setdefault(listed.id, (place, listed))
        self._places = {known: place for known, (place, _) in found.items()}
        return [listed for _, listed in found.values()]

    def mark(self, trace: str) -> str:
        place = self.place(trace)
        if "://" in place:
            return ""
        try:
            return file_stamp(Path(place))
        except OSError as error:
            raise UnreadableTrace(f"`{place}` cannot be read: {error.strerror}") from error

    def open(self, trace: str) -> Trace:
        return read(self.place(trace))

    def place(self, trace: str) -> str:
        if trace not in self._places:
            self.listed()
        if trace not in self._places:
            raise UsageError(f"there is no trace `{trace[:40]}` here; load the page again")
        return self._places[trace]

    def _at(self, given: str) -> Iterable[tuple[str, str]]:
        """The traces at a given path, each with the run that it belongs to."""
        root = Path(given)
        if root.is_dir():
            found = [path for path in _files(root) if self._is_trace(path)]
            return [(str(path), _run(path, root)) for path in _newest_first(found)]
        if root.exists() or not _means_several(given):
            return [(given, "")]
        matched = self._matching(given)
        if not matched.is_collection:
            return [(given, "")]
        return [(place, _below(place, matched.root)) for place in matched.files]

    def _matching(self, given: str) -> TraceFiles:
        """The files of a pattern or at an address."""
        asked, found = self._matched.get(given, (-_FRESH_S, None))
        if found is None or monotonic() - asked > _FRESH_S:
            found = trace_files(given)
            self._matched[given] = monotonic(), found
        return found

    def _is_trace(self, path: Path) -> bool:
        """Whether to offer a file of a folder; one that was recorded even if it is damaged."""
        if path.name.endswith(_RECORDED):
            return True
        try:
            known = file_stamp(path)
        except OSError:
            return False
        if known not in self._glanced:
            self._glanced[known] = looks_like_trace(path)
        return self._glanced[known]


def read(place: str) -> Trace:
    """The one trace at a place."""
    found = load(place)
    if not isinstance(found, Trace):
        raise UnreadableTrace(f"`{place}` is a folder now; load the page again")
    return found


def _files(root: Path) -> Iterator[Path]:
    """Files of a folder that may be traces, by their names; hidden folders hold none."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            if name.endswith(SUFFIXES) and path.is_file():
                yield path


def _newest_first(paths: Iterable[Path]) -> list[Path]:
    """Recordings from the newest; those that ended together, as a job's ranks do, by name."""
    timed = sorted(((_time(path), path) for path in paths), reverse=True)
    ordered: list[Path] = []
    together: list[Path] = []
    last = 0.0
    for time, path in timed:
        if together and last - time > _TOGETHER_S:
            ordered += sorted(together)
            together = []
        together.append(path)
        last = time
    return ordered + sorted(together)


def _time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _means_several(given: str) -> bool:
    return "://" in given or has_magic(given)


def _run(path: Path, root: Path) -> str:
    inside = path.parent.relative_to(root).as_posix()
    return root.absolute().name if inside == "." else inside


def _below(place: str, root: str) -> str:
    """The folder of a file below that of an address or pattern; if it is that, its name."""
    inside, above = PurePosixPath(place).parent, PurePosixPath(root)
    return above.name if inside == above else inside.relative_to(above).as_posix()
