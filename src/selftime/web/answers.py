"""What the page may ask for, as JSON: traces, views, tables, advice, comparisons, rules, source."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import Any, Final, cast, get_args

import msgspec
import polars as pl

from selftime.advice import Advice, advise, registry
from selftime.advice.advise import health_of
from selftime.compare import Metric
from selftime.errors import SelftimeError, UsageError
from selftime.reports.page_data.advice import advised, health_told
from selftime.reports.page_data.compare import compared
from selftime.reports.page_data.jobs import told
from selftime.reports.page_data.rows import OPS, Filter, Prepared, Query, prepare
from selftime.reports.page_data.snippets import places, snippet
from selftime.reports.page_data.view_description import described
from selftime.reports.tables import tabular
from selftime.trace import Trace
from selftime.views import VIEWS, View, find
from selftime.views.base import FARTHEST, Subject
from selftime.web.caches import Kept, Shelf
from selftime.web.jobs import Jobs
from selftime.web.sources import Sources

_LONGEST: Final = 8192
"""Characters of a word."""
_MOST_FILTERS: Final = 50
_ROWS: Final = frozenset({".trace", ".sort", ".find", ".where", ".from", ".rows", ".columns"})
"""Words that tell which rows and columns are wanted."""

_SHAPE: Final = (
    '`.where` is no list of filters; write [{"column": "name", "op": "has", "value": "mm"}]'
)
_TRACES: Final = 2 << 30
"""Bytes of tables of open traces."""
_TABLES: Final = 512 << 20
"""Bytes of views' tables."""
_ADVICE: Final = 16 << 20
_COMPARISONS: Final = 64 << 20
_PATIENCE_S: Final = 0.2
"""What took longer to find out is kept on disk for the next time."""
_MOST_SOURCES: Final = 500
"""Files of source whose change makes kept advice untrue; the advice reads fewer."""
_log: Final = logging.getLogger(__name__)
_Key = tuple[str, str]
"""A trace's id, and the mark of its content."""
_TableKey = tuple[_Key, str, tuple[tuple[str, Any], ...]]


@dataclass(frozen=True, slots=True)
class Question:
    """A view of a trace with all of its options, and the rows that are wanted."""

    trace: str
    view: View[Any]
    options: Mapping[str, Any]
    query: Query


def question(view: str, words: Mapping[str, str]) -> Question:
    """The words by their meaning: options by their names, the rest after a dot."""
    for name, word in words.items():
        if len(word) > _LONGEST:
            raise UsageError(f"`{name[:40]}` is {len(word)} characters long; write {_LONGEST}")
    asked = {name: word for name, word in words.items() if name.startswith(".")}
    unknown = asked.keys() - _ROWS
    if unknown:
        raise UsageError(f"there is no `{min(unknown)[:40]}` to ask for")
    found = find(view[:100])
    given = found.read({name: word for name, word in words.items() if name not in asked})
    defaults = {name: option.default for name, option in found.options.items()}
    options = {**defaults, **given}
    rows = number(asked, ".rows")
    query = Query(
        sort=asked.get(".sort", ""),
        find=asked.get(".find", ""),
        where=_filters(asked.get(".where", "")),
        start=number(asked, ".from") or 0,
        rows=rows,
        columns=tuple(dict.fromkeys(filter(None, asked.get(".columns", "").split(",")))),
    )
    return Question(asked.get(".trace", ""), found, options, query)


def number(words: Mapping[str, str], name: str) -> int | None:
    """A count from a word, None where there is none."""
    word = words.get(name, "")
    if not word:
        return None
    if not (word.isascii() and word.isdigit()) or len(word) > len(str(FARTHEST)):
        raise UsageError(f"`{name}` is `{word[:40]}`; write a whole number from 0")
    return min(int(word), FARTHEST)


def metric(words: Mapping[str, str]) -> Metric | None:
    """Whose time two trees are compared by, None where that is left to the recordings."""
    word = words.get("metric", "")
    if not word:
        return None
    if word not in get_args(Metric):
        known = " or ".join(get_args(Metric))
        raise UsageError(f"there is no metric `{word[:40]}`; ask for {known}")
    return cast("Metric", word)


def _filters(word: str) -> tuple[Filter, ...]:
    if not word:
        return ()
    try:
        told = msgspec.json.decode(word, type=list[dict[str, str]])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise UsageError(_SHAPE) from None
    if len(told) > _MOST_FILTERS:
        raise UsageError(f"there are {len(told)} filters; ask for at most {_MOST_FILTERS}")
    return tuple(_filter(one) for one in told)


def _filter(told: Mapping[str, str]) -> Filter:
    if told.keys() != {"column", "op", "value"}:
        raise UsageError(_SHAPE)
    if told["op"] not in OPS:
        raise UsageError(f"there is no filter `{told['op'][:40]}`; there are {', '.join(OPS)}")
    return Filter(told["column"], told["op"], told["value"])  # type: ignore[arg-type]  # just compared


@dataclass(frozen=True, slots=True)
class _Shown:
    """A view's table, and what the recording lacks for it."""

    table: Prepared
    lacks: tuple[str, ...]


class Answers:
    """Answers to questions about the traces of some sources, each made once and kept a while."""

    def __init__(
        self, sources: Sources, *, shows_source: bool = True, patience_s: float = _PATIENCE_S
    ) -> None:
        self.sources = sources
        self.shows_source = shows_source
        self.patience_s = patience_s
        self._kept = Kept()
        self._traces: Shelf[_Key, Trace] = Shelf(_TRACES, _trace_bytes)
        self._tables: Shelf[_TableKey, _Shown] = Shelf(_TABLES, _shown_bytes)
        self._advice: Shelf[_Key, bytes] = Shelf(_ADVICE, len)
        self._comparisons: Shelf[tuple[_Key, _Key, str], bytes] = Shelf(_COMPARISONS, len)
        self._jobs = Jobs(sources, self._kept, lambda trace: self._trace(self._key(trace)))

    def prepare_first(self) -> None:
        """Open the trace that is shown first, and find its advice, before anybody asks."""
        listed = self.sources.listed()
        if not listed:
            return
        try:
            key = self._key(listed[0].id)
            self._trace(key)
            self._advice.get(key, lambda: self._advise(key))
        except SelftimeError as error:
            _log.info("%s", error)  # told to the page, which asks for the same

    def traces(self) -> bytes:
        listed = [one.to_dict() for one in self.sources.listed()]
        return msgspec.json.encode({"traces": listed})

    def views(self) -> bytes:
        return _views()

    def page(self, view: str, words: Mapping[str, str]) -> bytes:
        asked = question(view, words)
        shown = self._shown(asked)
        return shown.table.answer(
            asked.query, view=asked.view.name, options=asked.options, lacks=shown.lacks
        )

    def csv(self, view: str, words: Mapping[str, str]) -> bytes:
        """All rows that match, whatever window was asked for."""
        asked = question(view, words)
        shown = self._shown(asked).table
        chosen = shown.table.select(shown.chosen(asked.query))
        return tabular.as_csv(chosen[shown.matching(asked.query)]).encode()

    def advice(self, words: Mapping[str, str]) -> bytes:
        key = self._key(words.get(".trace", ""))
        return self._advice.get(key, lambda: self._advise(key))

    def health(self, words: Mapping[str, str]) -> bytes:
        """Whether a trace is fit for advice: known long before the advice is."""
        shown = self._shown(question("health", words))
        return msgspec.json.encode(health_told(health_of(shown.table.table)))

    def compare(self, words: Mapping[str, str]) -> bytes:
        """Another trace held against one, as `selftime compare` does."""
        asked = metric(words)
        if not words.get(".with"):
            raise UsageError("`.with` is missing; name the trace to compare with by its id")
        before, after = (self._key(words.get(side, "")) for side in (".trace", ".with"))
        key = before, after, asked or ""
        return self._comparisons.get(key, lambda: self._compare(before, after, asked))

    def job(self, words: Mapping[str, str]) -> bytes:
        return msgspec.json.encode(told(self._jobs.of(words.get(".trace", "")).job))

    def rule(self, name: str) -> bytes:
        found = registry.find(name[:100])
        return msgspec.json.encode({"text": f"# {found.name}\n\n{found.doc}"})

    def source(self, words: Mapping[str, str]) -> bytes:
        first, rows = number(words, "from") or 1, number(words, "rows") or 1
        found = None
        if self.shows_source:
            trace = self._trace(self._key(words.get(".trace", "")))
            found = snippet(trace, words.get("file", ""), first, rows)
        return msgspec.json.encode({"source": found})

    def _key(self, trace: str) -> _Key:
        return trace, self.sources.mark(trace)

    def _trace(self, key: _Key) -> Trace:
        return self._traces.get(key, lambda: self.sources.open(key[0]))

    def _shown(self, asked: Question) -> _Shown:
        """A view across ranks is asked of the whole job that the trace belongs to."""
        key = self._key(asked.trace)
        subject: Callable[[], Subject] = lambda: self._trace(key)  # noqa: E731 - one of two
        if asked.view.across:
            found = self._jobs.of(asked.trace)
            key, subject = (found.key, found.mark), lambda: found.job.ranks
        options = tuple(sorted(asked.options.items()))
        return self._tables.get(
            (key, asked.view.name, options),
            lambda: self._show(subject, key[1], asked.view, asked.options),
        )

    def _show(
        self,
        of: Callable[[], Subject],
        mark: str,
        view: View[Any],
        options: Mapping[str, Any],
    ) -> _Shown:
        given = msgspec.json.encode(sorted(options.items())).decode()
        question = ("view", mark, view.name, given)
        known = self._kept.find(*question) if mark else None
        shown = None if known is None else _unpacked(known, view)
        if shown is not None:
            return shown
        subject = of()
        begin = perf_counter()
        table = view(subject, **options)
        shown = _Shown(prepare(table, view.columns, sums=view.sums), tuple(view.lacks(subject)))
        if mark and perf_counter() - begin >= self.patience_s:
            self._kept.keep(_packed(shown), *question)
        return shown

    def _advise(self, key: _Key) -> bytes:
        question = ("advised", key[1], str(Path.cwd()))
        known = self._kept.find(*question) if key[1] else None
        if known is not None:
            return known
        trace = self._trace(key)
        begin = perf_counter()
        advice = advise(trace)
        answer = msgspec.json.encode(advised(advice))
        if key[1] and perf_counter() - begin >= self.patience_s:
            self._kept.keep(answer, *question, made_from=_read_by(trace, advice))
        return answer

    def _compare(self, before: _Key, after: _Key, metric: Metric | None) -> bytes:
        question = ("compared", before[1], after[1], metric or "")
        is_marked = bool(before[1] and after[1])
        known = self._kept.find(*question) if is_marked else None
        if known is not None:
            return known
        sides = self._trace(before), self._trace(after)
        begin = perf_counter()
        answer = compared(*sides, metric).answer()
        if is_marked and perf_counter() - begin >= self.patience_s:
            self._kept.keep(answer, *question)
        return answer


def _trace_bytes(trace: Trace) -> int:
    return sum(int(table.estimated_size()) for table in trace.tables().values())


def _shown_bytes(shown: _Shown) -> int:
    return int(shown.table.table.estimated_size() + shown.table.cells.estimated_size())


def _read_by(trace: Trace, advice: Advice) -> set[Path]:
    """The files of source that the advice may have read, whether they are there or not."""
    named = trace.lines["file"].drop_nulls().unique().cast(pl.String).sort().head(_MOST_SOURCES)
    found = {one.where.file for one in advice.findings if one.where.file is not None}
    return {place.absolute() for file in {*named, *found} for place in places(trace, file)}


def _packed(shown: _Shown) -> bytes:
    table = BytesIO()
    shown.table.table.write_ipc(table, compression="zstd")
    return msgspec.msgpack.encode((shown.lacks, table.getvalue()))


def _unpacked(body: bytes, view: View[Any]) -> _Shown | None:
    """The table that was kept; None of one that is not what the view declares."""
    try:
        lacks, packed = msgspec.msgpack.decode(body, type=tuple[tuple[str, ...], bytes])
        table = pl.read_ipc(BytesIO(packed))
    except (msgspec.DecodeError, pl.exceptions.PolarsError):
        return None
    if dict(table.schema) != {column.name: column.dtype for column in view.columns}:
        return None
    return _Shown(prepare(table, view.columns, sums=view.sums), lacks)


@cache
def _views() -> bytes:
    return msgspec.json.encode({"views": [described(view) for view in VIEWS.values()]})
