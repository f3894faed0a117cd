"""Which traces there are to show, and how one is opened."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from selftime import ingest
from selftime.errors import UnreadableTrace, UsageError
from selftime.ingest.cache import stamp
from selftime.reports.listed import SUFFIXES, Listed, identified
from selftime.trace import Trace

__all__ = ["Files", "Listed", "Sources", "identified"]


class Sources(Protocol):
    """Where the traces come from: files that a command names, a folder that TensorBoard watches.

    Questions come from several threads at once.
    """

    def listed(self) -> list[Listed]:
        """The traces that there are now, in the order in which they are offered."""

    def mark(self, trace: str) -> str:
        """What changes when the trace's content does.

        Raises:
            UsageError: There is no trace of that id.
        """

    def path(self, trace: str) -> str:
        """Where it is read from: a path of this machine, or an address."""

    def open(self, trace: str) -> Trace:
        """The trace itself, read anew at each call."""


class Files:
    """The traces at some paths: files, addresses, and folders with traces at any depth."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._given = tuple(paths)
        for given in self._given:
            if "://" not in given and not Path(given).exists():
                raise UnreadableTrace(
                    f"`{given}` cannot be read: there is no such file or folder; give a trace or "
                    "a folder of them"
                )
        if not self.listed():
            raise UnreadableTrace(
                f"{', '.join(f'`{given}`' for given in self._given) or 'nothing'} holds no trace: "
                "no name in it ends in .json, .json.gz or .json.zst; record one with "
                "`selftime run`"
            )

    def listed(self) -> list[Listed]:
        return [listed for _, listed in self._found()]

    def path(self, trace: str) -> str:
        for place, listed in self._found():
            if listed.id == trace:
                return place
        raise UsageError(f"there is no trace `{trace[:40]}` here; load the page again")

    def mark(self, trace: str) -> str:
        place = self.path(trace)
        if "://" in place:
            return place
        try:
            return stamp(Path(place))
        except OSError as error:
            raise UnreadableTrace(f"`{place}` cannot be read: {error.strerror}") from error

    def open(self, trace: str) -> Trace:
        return read(self.path(trace))

    def _found(self) -> Iterator[tuple[str, Listed]]:
        seen = set()
        for given in self._given:
            for place, run in _places(given):
                listed = identified(place, run=run)
                if listed.id not in seen:
                    seen.add(listed.id)
                    yield place, listed


def read(place: str) -> Trace:
    """The one trace at a place."""
    found = ingest.load(place)
    if not isinstance(found, Trace):
        raise UnreadableTrace(f"`{place}` is a folder now; load the page again")
    return found


def _places(given: str) -> Iterator[tuple[str, str]]:
    """Each trace at a given path, with the run that it belongs to: its folder from there."""
    root = Path(given)
    if "://" in given or not root.is_dir():
        yield given, ""
        return
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            if name.endswith(SUFFIXES) and path.is_file():
                run = path.parent.relative_to(root).as_posix()
                yield str(path), root.absolute().name if run == "." else run
