"""The traces that an agent may open: those below some paths, by their ids."""

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
"""Bytes of tables of open traces."""
_SHOWN: Final = 80


class Library:
    """Traces below some paths of this machine; links that lead elsewhere are not followed.

    Raises:
        UsageError: A path is an address: nothing is asked of the network.
        UnreadableTrace: There is no such path, or no trace below it.
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
        """The traces that there are now."""
        return [one for one in self._files.listed() if self._is_below(self._files.place(one.id))]

    def id_of(self, word: str) -> str:
        """The id of a trace by its id, or by its name where only one has it.

        Raises:
            UsageError: No trace has it, or several have the name.
        """
        listed = self.listed()
        named = [one.id for one in listed if word in (one.id, one.name)]
        if len(named) > 1:
            raise UsageError(f"{len(named)} traces are called so; give an id of `list_traces`")
        if not named:
            raise UsageError(
                f"there is no trace `{word[:_SHOWN]}` below the paths of this server; "
                "`list_traces` gives the ids"
            )
        return named[0]

    def key(self, word: str) -> tuple[str, str]:
        """What changes when another trace is meant, or its content is another."""
        known = self.id_of(word)
        return known, self._files.mark(known)

    def open(self, word: str) -> Trace:
        """The trace, read when it is first asked for, and anew when its file has changed."""
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
