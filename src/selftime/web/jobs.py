"""The job that a trace belongs to; what each of its traces tells of it is kept."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from hashlib import sha256
from io import BytesIO
from typing import Any, Final

import msgspec
import polars as pl

from selftime.analysis.ranks.rank_summary import RankSummary
from selftime.errors import SelftimeError, UnreadableTrace, UsageError
from selftime.ingest.ranks import Identity
from selftime.reports.page_data.jobs import Job, Told, alone, is_of_several, related, told_by
from selftime.reports.page_data.listing import Listed
from selftime.scale.engine import LostFile
from selftime.scale.local import Local
from selftime.trace import Trace
from selftime.web.caches import Kept, Shelf
from selftime.web.sources import Sources, read

_ROOM: Final = 256 << 20
"""Bytes of what the traces of jobs tell."""


@dataclass(frozen=True, slots=True)
class Marked:
    """A job."""

    key: str
    """Of this job and no other, nor of the same with another trace."""
    mark: str
    """What changes when one of its traces does; empty if nothing tells that."""
    job: Job
    ids: frozenset[str]
    """Its traces that count."""


class Jobs:
    """The jobs of some sources' traces, each put together once and kept a while."""

    def __init__(self, sources: Sources, kept: Kept, opened: Callable[[str], Trace]) -> None:
        self._sources = sources
        self._kept = kept
        self._opened = opened
        self._jobs: Shelf[str, Marked] = Shelf(_ROOM, _weight)
        self._several: dict[tuple[str, str], bool] = {}

    def of(self, trace: str) -> Marked:
        """The job of a trace: all traces of its folder that are of ranks, or it alone.

        Raises:
            UsageError: There is no trace of that id.
            UnreadableTrace: The trace itself cannot be read; others are told as refused.
        """
        own = self._sources.mark(trace)
        listed = {one.id: one for one in self._sources.listed()}
        if trace not in listed:
            raise UsageError(f"there is no trace `{trace[:40]}` here; load the page again")
        beside = [one for one in listed.values() if one.job == listed[trace].job]
        if len(beside) == 1 or not self._is_of_several(listed[trace], own):
            return self._alone(listed[trace], own)
        marks = {one.id: self._mark(one.id) for one in beside}
        key = _digest([listed[trace].job, *sorted(marks.items())])
        mark = key if all(marks.values()) else ""
        found = self._jobs.get(key, lambda: _marked(key, mark, self._read(beside)))
        return found if trace in found.ids else self._alone(listed[trace], own)

    def _alone(self, listed: Listed, mark: str) -> Marked:
        key = _digest([listed.id, mark])
        return self._jobs.get(
            key, lambda: _marked(key, mark, alone(listed, self._told(listed.id, self._opened)))
        )

    def _is_of_several(self, listed: Listed, mark: str) -> bool:
        known = self._several.get((listed.id, mark))
        if known is None:
            known = is_of_several(listed, self._told(listed.id, self._opened).identity)
            self._several[listed.id, mark] = known
        return known

    def _mark(self, trace: str) -> str:
        try:
            return self._sources.mark(trace)
        except UnreadableTrace as error:
            return str(error)

    def _read(self, beside: list[Listed]) -> Job:
        every = self._all_told(beside)
        found: dict[str, tuple[Listed, Told]] = {}
        refused: dict[str, str] = {}
        for one in beside:
            path = f"{one.run}/{one.name}".lstrip("/")
            if path in found or path in refused:  # of another folder that is called the same
                path = f"{one.id}/{path}"
            told = every[one.id]
            if isinstance(told, str):
                refused[path] = told
            elif is_of_several(one, told.identity):
                found[path] = (one, told)
        return related(found, refused)

    def _all_told(self, beside: list[Listed]) -> dict[str, Told | str]:
        """What each tells, or why it cannot be read: as kept, else read side by side."""
        every: dict[str, Told | str] = {}
        unread: dict[str, str] = {}
        for one in beside:
            known: Told | str | None
            try:
                known = self._known(one.id)
            except SelftimeError as error:
                known = str(error)
            if known is None:
                unread[self._sources.place(one.id)] = one.id
            else:
                every[one.id] = known
        for place, told in Local().map(_told_at, list(unread)):
            every[unread[place]] = told.why if isinstance(told, LostFile) else told
            if isinstance(told, Told):
                self._keep(unread[place], told)
        return every

    def _told(self, trace: str, opened: Callable[[str], Trace]) -> Told:
        """What a trace tells of its job: as it was kept, else of the trace itself."""
        told = self._known(trace)
        if told is None:
            told = told_by(opened(trace))
            self._keep(trace, told)
        return told

    def _known(self, trace: str) -> Told | None:
        mark = self._sources.mark(trace)
        body = self._kept.find("told", mark) if mark else None
        return None if body is None else unpacked(body)

    def _keep(self, trace: str, told: Told) -> None:
        if mark := self._sources.mark(trace):
            self._kept.keep(packed(told), "told", mark)


def _told_at(place: str) -> Told | str:
    """What the trace at a place tells, or why it cannot be read."""
    try:
        return told_by(read(place))
    except SelftimeError as error:
        return str(error)


def packed(told: Told) -> bytes:
    """What a trace tells as bytes: tables as Arrow, the rest as MessagePack."""
    body = {one.name: _plain(getattr(told.part, one.name)) for one in fields(RankSummary)}
    return msgspec.msgpack.encode((told.identity, body))


def unpacked(body: bytes) -> Told | None:
    """What was packed; None of what is not."""
    try:
        identity, part = msgspec.msgpack.decode(body, type=tuple[Identity, dict[str, Any]])
        read: dict[str, Any] = {
            name: pl.read_ipc(BytesIO(value)) if isinstance(value, bytes) else value
            for name, value in part.items()
        }
        return Told(identity, RankSummary(**read))
    except (msgspec.DecodeError, pl.exceptions.PolarsError, TypeError):
        return None


def _plain(value: Any) -> Any:
    if not isinstance(value, pl.DataFrame):
        return value
    table = BytesIO()
    value.write_ipc(table, compression="zstd")
    return table.getvalue()


def _marked(key: str, mark: str, job: Job) -> Marked:
    counting = (job.ids[path] for paths in job.of_key().values() for path in paths)
    return Marked(key, mark, job, frozenset(counting))


def _weight(marked: Marked) -> int:
    tables = (
        getattr(p, f.name) for p in marked.job.ranks.parts.values() for f in fields(RankSummary)
    )
    return sum(int(one.estimated_size()) for one in tables if isinstance(one, pl.DataFrame))


def _digest(told: Any) -> str:
    return sha256(msgspec.json.encode(told)).hexdigest()
