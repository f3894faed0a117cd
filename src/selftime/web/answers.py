"""Answers the page's requests as JSON: traces, views, advice, comparisons, rules and source."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from time import perf_counter
from typing import Any, Final, cast, get_args

import msgspec
import polars as pl

from selftime.advice import rule_registry
from selftime.advice.advise import health_from_checks
from selftime.compare import Metric
from selftime.errors import SelftimeError, UsageError
from selftime.ingest.job_grouping import are_unrelated, other_of_named_pair
from selftime.reports.page_data.advice import health_data
from selftime.reports.page_data.compare import prepare_comparison
from selftime.reports.page_data.jobs import page_data_of_job
from selftime.reports.page_data.snippets import source_snippet
from selftime.reports.page_data.table_queries import (
    FILTER_OPERATORS,
    ColumnFilter,
    PreparedTable,
    RowQuery,
    prepare_table,
)
from selftime.reports.page_data.views import view_description_data
from selftime.reports.tables import tabular
from selftime.trace import Trace
from selftime.views import VIEWS, View, find_view
from selftime.views.view_declaration import MAX_OPTION_VALUE, TraceJobOrRanks
from selftime.web.advice_answers import AdviceAnswers
from selftime.web.caches import AnswerStore, SharedCache
from selftime.web.client_presence import require_client
from selftime.web.contents import ContentsIndex
from selftime.web.jobs import JobIndex
from selftime.web.readings import TraceKey, TraceReadings
from selftime.web.sources import TraceSources

_MAX_REQUEST_PARAMETER_CHARACTERS: Final = 8192
"""Length in characters above which a request parameter is refused."""
_MAX_FILTERS: Final = 50
"""Largest number of filters in one request."""
_NON_OPTION_PARAMETERS: Final = frozenset(
    {".trace", ".sort", ".find", ".where", ".from", ".rows", ".columns"}
)
"""Request parameters that select the trace, rows and columns; any other one is a view option."""
_INVALID_FILTERS_MESSAGE: Final = (
    '`.where` is not a list of filters; write [{"column": "name", "op": "has", "value": "mm"}]'
)
"""Error message for a list of filters that cannot be parsed."""
_MAX_TABLE_CACHE_BYTES: Final = 512 << 20
"""Largest size of the cache of views' tables, in bytes."""
_MAX_COMPARISON_CACHE_BYTES: Final = 64 << 20
"""Largest size of the cache of comparisons, in bytes."""
_MIN_COMPUTATION_TIME_TO_STORE_S: Final = 0.2
"""Shortest computation, in s, whose result is stored on disk."""
_log: Final = logging.getLogger(__name__)
_TableKey = tuple[TraceKey, str, tuple[tuple[str, Any], ...]]


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """A parsed request for a table: the trace's id, the view, its options, and the rows."""

    trace: str
    view: View[Any]
    options: Mapping[str, Any]
    query: RowQuery


def parse_view_request(view_name: str, parameters: Mapping[str, str]) -> ViewRequest:
    """Returns a parsed table request: `.name` parameters select rows, others set view options."""
    for name, value in parameters.items():
        if len(value) > _MAX_REQUEST_PARAMETER_CHARACTERS:
            raise UsageError(
                f"`{name[:40]}` is {len(value)} characters long; "
                f"write at most {_MAX_REQUEST_PARAMETER_CHARACTERS}"
            )
    row_parameters = {name: value for name, value in parameters.items() if name.startswith(".")}
    unknown_parameters = row_parameters.keys() - _NON_OPTION_PARAMETERS
    if unknown_parameters:
        raise UsageError(f"there is no parameter `{min(unknown_parameters)[:40]}`")
    view = find_view(view_name[:100])
    given_options = view.parse_options(
        {name: value for name, value in parameters.items() if name not in row_parameters}
    )
    defaults = {name: option.default for name, option in view.options.items()}
    options = {**defaults, **given_options}
    row_count = parse_count(row_parameters, ".rows")
    query = RowQuery(
        sort=row_parameters.get(".sort", ""),
        find=row_parameters.get(".find", ""),
        where=_parse_filters_json(row_parameters.get(".where", "")),
        start=parse_count(row_parameters, ".from") or 0,
        rows=row_count,
        columns=tuple(dict.fromkeys(filter(None, row_parameters.get(".columns", "").split(",")))),
    )
    return ViewRequest(row_parameters.get(".trace", ""), view, options, query)


def parse_count(parameters: Mapping[str, str], name: str) -> int | None:
    """Returns a request parameter as an integer of at least 0; None if it is missing."""
    value = parameters.get(name, "")
    if not value:
        return None
    if not (value.isascii() and value.isdigit()) or len(value) > len(str(MAX_OPTION_VALUE)):
        raise UsageError(f"`{name}` is `{value[:40]}`; write a whole number from 0")
    return min(int(value), MAX_OPTION_VALUE)


def parse_metric_parameter(parameters: Mapping[str, str]) -> Metric | None:
    """Returns the request's parameter `metric`: host or device time; None if it is missing."""
    value = parameters.get("metric", "")
    if not value:
        return None
    if value not in get_args(Metric):
        metrics = " or ".join(get_args(Metric))
        raise UsageError(f"there is no metric `{value[:40]}`; ask for {metrics}")
    return cast("Metric", value)


def _parse_filters_json(filters_json: str) -> tuple[ColumnFilter, ...]:
    """Returns the column filters of a request, parsed from their JSON text."""
    if not filters_json:
        return ()
    try:
        filters = msgspec.json.decode(filters_json, type=list[dict[str, str]])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise UsageError(_INVALID_FILTERS_MESSAGE) from None
    if len(filters) > _MAX_FILTERS:
        raise UsageError(f"there are {len(filters)} filters; ask for at most {_MAX_FILTERS}")
    return tuple(_parse_filter_object(column_filter) for column_filter in filters)


def _parse_filter_object(fields: Mapping[str, str]) -> ColumnFilter:
    """Returns one filter of a request from its JSON object."""
    if fields.keys() != {"column", "op", "value"}:
        raise UsageError(_INVALID_FILTERS_MESSAGE)
    if fields["op"] not in FILTER_OPERATORS:
        raise UsageError(
            f"there is no filter `{fields['op'][:40]}`; there are {', '.join(FILTER_OPERATORS)}"
        )
    return ColumnFilter(fields["column"], fields["op"], fields["value"])  # type: ignore[arg-type]  # just compared


@dataclass(frozen=True, slots=True)
class _ViewTable:
    """A view's table, and texts on data that the view needs and the recording lacks."""

    table: PreparedTable
    lacks: tuple[str, ...]


class PageDataAnswers:
    """Answers HTTP requests about the served traces as JSON or CSV; results are cached."""

    def __init__(
        self,
        sources: TraceSources,
        *,
        shows_source: bool = True,
        store_after_s: float = _MIN_COMPUTATION_TIME_TO_STORE_S,
    ) -> None:
        self.sources = sources
        self.shows_source = shows_source
        self.store_after_s = store_after_s
        self._store = AnswerStore()
        self.readings = TraceReadings(sources)
        self._tables: SharedCache[_TableKey, _ViewTable] = SharedCache(
            _MAX_TABLE_CACHE_BYTES, _view_table_memory_bytes
        )
        self._comparisons: SharedCache[tuple[TraceKey, TraceKey, str], bytes] = SharedCache(
            _MAX_COMPARISON_CACHE_BYTES, len
        )
        self._jobs = JobIndex(sources, self._store, self.open_trace)
        self.advice = AdviceAnswers(self._jobs, self._store, self._open_trace, store_after_s)
        self.contents = ContentsIndex(sources, self._store, self.open_trace)

    def prepare_first_trace(self) -> None:
        """Prepares the trace that the page shows first, and its advice, or a comparison of two.

        Of unrelated traces the page shows the list, and opens none.
        """
        listed = self.sources.listed_traces()
        if not listed or are_unrelated(listed):
            return
        try:
            key = self.id_and_fingerprint(listed[0].id)
            self._open_trace(key)
            after = other_of_named_pair(listed, key[0])
            if after is None or after.job == listed[0].job:
                self.advice.advice_json(key)
            else:
                self.comparison_json({".trace": key[0], ".with": after.id})
        except SelftimeError as error:
            _log.info("%s", error)  # the page's own request reports it

    def traces_json(self) -> bytes:
        """Returns the list of traces as JSON."""
        listed_traces = self.contents.listed_with_contents()
        return msgspec.json.encode({"traces": [listed.to_dict() for listed in listed_traces]})

    def progress_json(self, parameters: Mapping[str, str]) -> bytes:
        """Returns as JSON how far the reading of a trace is; null if it is not being read."""
        trace_id = parameters.get(".trace", "")
        after = other_of_named_pair(self.sources.listed_traces(), trace_id)
        shared = self.readings.shared
        progress = shared.progress_of(trace_id) or self._jobs.readings.progress_of(trace_id)
        if progress is None and after is not None:
            progress = shared.progress_of(after.id)
        return msgspec.json.encode({"progress": progress})

    def views_json(self) -> bytes:
        """Returns the descriptions of all views as JSON."""
        return _all_views_as_json()

    def view_page_json(self, view_name: str, parameters: Mapping[str, str]) -> bytes:
        """Returns the requested rows of a view as JSON."""
        request = parse_view_request(view_name, parameters)
        answer = self._cached_view(request)
        return answer.table.page_json(
            request.query,
            view=request.view.name,
            options=request.options,
            missing_data=answer.lacks,
        )

    def view_csv(self, view_name: str, parameters: Mapping[str, str]) -> bytes:
        """Returns all rows of a view that match the request as CSV."""
        request = parse_view_request(view_name, parameters)
        answer = self._cached_view(request).table
        chosen = answer.table.select(answer.selected_columns(request.query))
        return tabular.as_csv(chosen[answer.matching_rows(request.query)]).encode()

    def advice_json(self, parameters: Mapping[str, str]) -> bytes:
        """Returns the advice on a trace as JSON."""
        return self.advice.advice_json(self.id_and_fingerprint(parameters.get(".trace", "")))

    def health_json(self, parameters: Mapping[str, str]) -> bytes:
        """Returns as JSON a verdict on the quality of the trace's data, and its defects."""
        shown = self._cached_view(parse_view_request("health", parameters))
        return msgspec.json.encode(health_data(health_from_checks(shown.table.table)))

    def comparison_json(self, parameters: Mapping[str, str]) -> bytes:
        """Returns the comparison of two traces as JSON, as `selftime compare` makes it."""
        metric = parse_metric_parameter(parameters)
        if not parameters.get(".with"):
            raise UsageError("`.with` is missing; name the trace to compare with by its id")
        before, after = (
            self.id_and_fingerprint(parameters.get(side, "")) for side in (".trace", ".with")
        )
        key = before, after, metric or ""
        return self._comparisons.get(key, lambda: self._load_or_compare(before, after, metric))

    def job_json(self, parameters: Mapping[str, str]) -> bytes:
        """Returns as JSON the job (the ranks of one run) that the requested trace belongs to."""
        return msgspec.json.encode(
            page_data_of_job(self._jobs.job_of_trace(parameters.get(".trace", "")).job)
        )

    def rule_json(self, rule_name: str) -> bytes:
        """Returns the documentation page of an advice rule as JSON."""
        rule = rule_registry.find(rule_name[:100])
        return msgspec.json.encode({"text": f"# {rule.name}\n\n{rule.doc}"})

    def source_json(self, parameters: Mapping[str, str]) -> bytes:
        """Returns lines of a source file as JSON, only from files that the trace names."""
        first, rows = (parse_count(parameters, "from") or 1, parse_count(parameters, "rows") or 1)
        snippet = None
        if self.shows_source:
            trace = self.open_trace(parameters.get(".trace", ""))
            snippet = source_snippet(trace, parameters.get("file", ""), first, rows)
        return msgspec.json.encode({"source": snippet})

    def id_and_fingerprint(self, trace_id: str) -> TraceKey:
        """Returns (id, fingerprint of the content) of a trace: the key of the trace in caches."""
        return trace_id, self.sources.fingerprint(trace_id)

    def open_trace(self, trace_id: str) -> Trace:
        return self._open_trace(self.id_and_fingerprint(trace_id))

    def _open_trace(self, key: TraceKey) -> Trace:
        """Returns a trace from the cache; if it is not there, reads the trace's file."""
        return self.readings.open(key)

    def _cached_view(self, request: ViewRequest) -> _ViewTable:
        """Returns a view's table from a cache; for views that compare ranks, of the whole job."""
        key = self.id_and_fingerprint(request.trace)
        subject: Callable[[], TraceJobOrRanks] = lambda: self._open_trace(key)  # noqa: E731 - one of two
        if request.view.compares_ranks:
            indexed_job = self._jobs.job_of_trace(request.trace)
            key, subject = (indexed_job.key, indexed_job.fingerprint), lambda: indexed_job.job.ranks
        options = tuple(sorted(request.options.items()))
        return self._tables.get(
            (key, request.view.name, options),
            lambda: self._load_or_compute_view(subject, key[1], request.view, request.options),
        )

    def _load_or_compute_view(
        self,
        get_subject: Callable[[], TraceJobOrRanks],
        fingerprint: str,
        view: View[Any],
        options: Mapping[str, Any],
    ) -> _ViewTable:
        """Returns a view's table from the disk cache; if it is missing, computes and stores it."""
        options_json = msgspec.json.encode(sorted(options.items())).decode()
        stored_key = ("view", fingerprint, view.name, options_json)
        stored = self._store.find(*stored_key) if fingerprint else None
        answer = None if stored is None else _decode_view_table(stored, view)
        if answer is not None:
            return answer
        subject = get_subject()
        require_client()
        started = perf_counter()
        table = view(subject, **options)
        answer = _ViewTable(
            prepare_table(table, view.columns, sums=view.sums), tuple(view.missing_data(subject))
        )
        is_storable = fingerprint and not (isinstance(subject, Trace) and subject.run.may_grow)
        if is_storable and perf_counter() - started >= self.store_after_s:
            self._store.store(_encode_view_table(answer), *stored_key)
        return answer

    def _load_or_compare(self, before: TraceKey, after: TraceKey, metric: Metric | None) -> bytes:
        """Returns a comparison as JSON from the disk cache; if missing, computes and stores it."""
        stored_key = ("compared", before[1], after[1], metric or "")
        has_fingerprints = bool(before[1] and after[1])
        stored = self._store.find(*stored_key) if has_fingerprints else None
        if stored is not None:
            return stored
        traces = self._open_trace(before), self._open_trace(after)
        require_client()
        started = perf_counter()
        answer = prepare_comparison(*traces, metric).comparison_json()
        is_storable = has_fingerprints and not any(trace.run.may_grow for trace in traces)
        if is_storable and perf_counter() - started >= self.store_after_s:
            self._store.store(answer, *stored_key)
        return answer


def _view_table_memory_bytes(answer: _ViewTable) -> int:
    """Returns the estimated size of a view's table in memory, in bytes."""
    return int(answer.table.table.estimated_size() + answer.table.cells.estimated_size())


def _encode_view_table(answer: _ViewTable) -> bytes:
    """Returns a view's table and missing data as bytes, to be stored on disk."""
    table = BytesIO()
    answer.table.table.write_ipc(table, compression="zstd")
    return msgspec.msgpack.encode((answer.lacks, table.getvalue()))


def _decode_view_table(encoded: bytes, view: View[Any]) -> _ViewTable | None:
    """Returns a view's table from stored bytes; None if its columns are not those of the view."""
    try:
        missing_data, packed = msgspec.msgpack.decode(encoded, type=tuple[tuple[str, ...], bytes])
        table = pl.read_ipc(BytesIO(packed))
    except (msgspec.DecodeError, pl.exceptions.PolarsError):
        return None
    if dict(table.schema) != {column.name: column.dtype for column in view.columns}:
        return None
    return _ViewTable(prepare_table(table, view.columns, sums=view.sums), missing_data)


@cache
def _all_views_as_json() -> bytes:
    return msgspec.json.encode({"views": [view_description_data(view) for view in VIEWS.values()]})
