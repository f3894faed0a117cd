"""The traces that an agent may open: those below some paths, by id."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from selftime.errors import UnreadableTrace, UsageError
from selftime.ingest.load import load
from selftime.reports.page_data.listing import Listed
from selftime.trace import Trace
from selftime.web.caches import Shelf
from selftime.web.sources import Files

_TRACES: Final = 2 << 30
"""The most bytes of tables of open traces that are cached."""
_SHOWN: Final = 80


class Library:
    """The traces below some local paths; links that lead elsewhere are not followed.

    Raises:
        UsageError: A path is an address, which would need the network.
        UnreadableTrace: A path does not exist, or there is no trace below it.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        given = tuple(paths)
        for path in given:
            if "://" in path:
                raise UsageError(f"`{path}` is an address; give a file or folder of this machine")
        self._files = Files(given)
        self._roots = tuple(Path(path).resolve() for path in given)
        self._open: Shelf[tuple[str, str], Trace] = Shelf(_TRACES, _weight)

    def listed(self) -> list[Listed]:
        """Returns the current traces."""
        return [
            listed_trace
            for listed_trace in self._files.listed()
            if self._is_below(self._files.place(listed_trace.id))
        ]

    def id_of(self, word: str) -> str:
        """Returns a trace's id, from its id or from a name that only one trace has.

        Raises:
            UsageError: No trace has this id or name, or several have the name.
        """
        listed = self.listed()
        named = [
            listed_trace.id
            for listed_trace in listed
            if word in (listed_trace.id, listed_trace.name)
        ]
        if len(named) > 1:
            raise UsageError(f"{len(named)} traces have this name; give an id of `list_traces`")
        if not named:
            raise UsageError(
                f"there is no trace `{word[:_SHOWN]}` below the paths of this server; "
                "`list_traces` gives the ids"
            )
        return named[0]

    def key(self, word: str) -> tuple[str, str]:
        """Returns a cache key, which changes with the trace's id and its file's content."""
        known = self.id_of(word)
        return known, self._files.mark(known)

    def open(self, word: str) -> Trace:
        """Returns the trace; it is cached, and read again when its file has changed."""
        key = self.key(word)
        place = self._files.place(key[0])
        return self._open.get(key, lambda: _read(place))

    def _is_below(self, place: str) -> bool:
        real = Path(place).resolve()
        return any(real == root or real.is_relative_to(root) for root in self._roots)


def _read(place: str) -> Trace:
    found = load(place, cache=False)
    if not isinstance(found, Trace):
        raise UnreadableTrace(f"`{place}` holds {len(found.traces)} traces; give them as files")
    return found


def _weight(trace: Trace) -> int:
    return sum(int(table.estimated_size()) for table in trace.tables().values())
