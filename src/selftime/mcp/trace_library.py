"""Finds the traces below given paths that an AI agent may read, and opens them by id."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from selftime.errors import UnreadableTrace, UsageError
from selftime.ingest.load import load
from selftime.ingest.trace_listing import ListedTrace
from selftime.trace import Trace
from selftime.web.caches import SharedCache
from selftime.web.sources import TracesAtPaths

_MAX_TRACE_CACHE_BYTES: Final = 2 << 30
"""Largest memory size in bytes of all traces that stay open."""
_MAX_QUOTED_NAME_CHARACTERS: Final = 80
"""Largest number of characters of a name that an error message quotes."""


class TraceLibrary:
    """Opens traces below local paths for an agent; refuses links to files elsewhere.

    Raises:
        UsageError: A path is an address, which would need the network.
        UnreadableTrace: A path does not exist, or there is no trace below it.
    """

    def __init__(self, paths: Iterable[str], *, may_be_empty: bool = False) -> None:
        given = tuple(paths)
        for path in given:
            if "://" in path:
                raise UsageError(f"`{path}` is an address; give a file or folder of this machine")
        self._files = TracesAtPaths(given, may_be_empty=may_be_empty)
        self._roots = tuple(Path(path).resolve() for path in given)
        self._open: SharedCache[tuple[str, str], Trace] = SharedCache(
            _MAX_TRACE_CACHE_BYTES, _trace_memory_bytes
        )

    def listed_traces(self) -> list[ListedTrace]:
        """Returns the traces that exist below the library's paths at this moment."""
        return [
            listed_trace
            for listed_trace in self._files.listed_traces()
            if self._is_below_library_paths(self._files.path_of(listed_trace.id))
        ]

    def trace_id_of(self, id_or_name: str) -> str:
        """Returns the id of the trace with this id, or of the only trace with this name.

        Raises:
            UsageError: No trace has this id or name, or several have the name.
        """
        listed = self.listed_traces()
        matching_ids = [
            listed_trace.id
            for listed_trace in listed
            if id_or_name in (listed_trace.id, listed_trace.name)
        ]
        if len(matching_ids) > 1:
            raise UsageError(
                f"{len(matching_ids)} traces have this name; give an id of `list_traces`"
            )
        if not matching_ids:
            quoted = id_or_name[:_MAX_QUOTED_NAME_CHARACTERS]
            raise UsageError(
                f"there is no trace `{quoted}` below the paths of this server; "
                "`list_traces` gives the ids"
            )
        return matching_ids[0]

    def trace_cache_key(self, id_or_name: str) -> tuple[str, str]:
        """Returns (trace id, fingerprint that changes with the file's content)."""
        trace_id = self.trace_id_of(id_or_name)
        return trace_id, self._files.fingerprint(trace_id)

    def path_of(self, id_or_name: str) -> str:
        """Returns the path of a trace's file."""
        return self._files.path_of(self.trace_id_of(id_or_name))

    def open(self, id_or_name: str) -> Trace:
        """Returns the trace, from a cache; reads the file again if it has changed."""
        key = self.trace_cache_key(id_or_name)
        path = self._files.path_of(key[0])
        return self._open.get(key, lambda: _read_only_trace(path))

    def _is_below_library_paths(self, path: str) -> bool:
        """Returns whether a path, with links resolved, is below one of the library's paths."""
        real_path = Path(path).resolve()
        return any(real_path == root or real_path.is_relative_to(root) for root in self._roots)


def _read_only_trace(path: str) -> Trace:
    """Returns the single trace in a file; raises UnreadableTrace if the file has several."""
    loaded = load(path, cache=False)
    if not isinstance(loaded, Trace):
        raise UnreadableTrace(f"`{path}` holds {len(loaded.traces)} traces; give them as files")
    return loaded


def _trace_memory_bytes(trace: Trace) -> int:
    """Returns the estimated size of a trace in memory, in bytes."""
    return sum(int(table.estimated_size()) for table in trace.tables().values())
