"""Keeps what each trace holds: in memory and on disk, so that a trace need not be opened for it."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec

from selftime.errors import SelftimeError, UnreadableTrace
from selftime.ingest.job_grouping import other_of_named_pair
from selftime.ingest.trace_listing import ListedTrace
from selftime.reports.page_data.trace_contents import (
    TraceContents,
    contents_data,
    contents_of_trace,
)
from selftime.trace import Trace
from selftime.web.caches import AnswerStore
from selftime.web.readings import TraceKey
from selftime.web.sources import TraceSources, find_listed_trace

_STORED_NAME = "contents"


class ContentsIndex:
    """What the served traces hold: a panel to land on, what views lack, device and steps."""

    def __init__(
        self, sources: TraceSources, store: AnswerStore, open_trace: Callable[[str], Trace]
    ) -> None:
        self._sources = sources
        self._store = store
        self._open_trace = open_trace
        self._contents: dict[TraceKey, TraceContents | None] = {}

    def contents_json(self, parameters: Mapping[str, str]) -> bytes:
        """Returns as JSON what a trace holds; opens it if that is not known.

        Raises:
            UsageError, UnreadableTrace: There is no such trace, or it cannot be read.
        """
        trace_id = parameters.get(".trace", "")
        all_listed = self._sources.listed_traces()
        listed = find_listed_trace(all_listed, trace_id)
        contents = self._contents_of(listed)
        has_other_ranks = sum(entry.job == listed.job for entry in all_listed) > 1
        after = other_of_named_pair(all_listed, trace_id)
        try:
            compared_with = None if after is None else self._contents_of(after)
        except UnreadableTrace:  # the list and the comparison tell
            compared_with = None
        data = contents_data(contents, has_other_ranks=has_other_ranks, compared_with=compared_with)
        return msgspec.json.encode(data)

    def _contents_of(self, listed: ListedTrace) -> TraceContents:
        """Returns what a trace holds; opens it if that is not known."""
        key = listed.id, self._sources.fingerprint(listed.id)
        contents = self._known(key)
        if contents is None:
            trace = self._open_trace(listed.id)
            contents = self._contents[key] = contents_of_trace(trace, listed)
            if key[1] and not trace.run.may_grow:
                self._store.store(msgspec.msgpack.encode(contents), _STORED_NAME, key[1])
        return contents

    def listed_with_contents(self) -> list[ListedTrace]:
        """Returns the list of traces, with device and steps of those that were opened before."""
        return [self._with_contents(listed) for listed in self._sources.listed_traces()]

    def _with_contents(self, listed: ListedTrace) -> ListedTrace:
        try:
            contents = self._known((listed.id, self._sources.fingerprint(listed.id)))
        except SelftimeError:  # it has just gone
            return listed
        if contents is None:
            return listed
        device = contents.device or listed.device
        return replace(listed, device=device, steps=contents.step_count)

    def _known(self, key: TraceKey) -> TraceContents | None:
        """Returns what a trace holds from memory or disk; None if that is not known."""
        if key not in self._contents:
            self._contents[key] = self._stored(key[1])
        return self._contents[key]

    def _stored(self, fingerprint: str) -> TraceContents | None:
        stored = self._store.find(_STORED_NAME, fingerprint) if fingerprint else None
        try:
            return None if stored is None else msgspec.msgpack.decode(stored, type=TraceContents)
        except msgspec.DecodeError:
            return None
