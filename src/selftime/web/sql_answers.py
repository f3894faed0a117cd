"""Answers the page's queries in SQL: `api/sql_schema`, `api/sql` and `api/sql_track`.

Each query runs in a process of its own, within limits; it is stopped when the page goes away.
"""

import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any, Final

import msgspec

from selftime.errors import UsageError
from selftime.reports.page_data.sql import failure_json, result_json, schema_data
from selftime.sql import QueryError
from selftime.sql.error_place import place_of_error, with_place
from selftime.sql.limited_query import LimitedQueries, QueryRequest, QueryResult, StoppedQuery
from selftime.sql.query_limits import QueryLimits
from selftime.web.answers import PageDataAnswers
from selftime.web.caches import SharedCache
from selftime.web.query_tracks import (
    MAX_ROWS_OF_TRACK,
    QueryTrack,
    query_track,
    query_track_json,
)

_MAX_ROWS: Final = 10_000
"""Largest number of rows of a result that the page is sent."""
_MAX_QUERY_CHARACTERS: Final = 8192
"""Largest number of characters of a query."""
_MAX_TRACK_CACHE_BYTES: Final = 256 << 20
"""Largest size of the results that are kept as tracks of the timeline, in bytes."""


class SqlAnswers:
    """Answers queries in SQL of the page over the traces that it shows."""

    def __init__(self, answers: PageDataAnswers, limits: QueryLimits | None = None) -> None:
        self._answers = answers
        self._queries = LimitedQueries(replace(limits or QueryLimits(), rows=_MAX_ROWS))
        self._tracks: SharedCache[tuple[str, str, str], QueryTrack] = SharedCache(
            _MAX_TRACK_CACHE_BYTES, lambda track: track.memory_bytes
        )

    def schema_json(self, parameters: Mapping[str, str]) -> bytes:
        """Returns what a query of a trace can read as JSON; a process then waits for the query."""
        trace = self._answers.open_trace(parameters.get(".trace", ""))
        self._queries.prepare()
        return msgspec.json.encode(schema_data(trace))

    def result_json(self, parameters: Mapping[str, str], is_cancelled: Callable[[], bool]) -> bytes:
        """Returns the result of a query as JSON.

        What cannot be answered is an answer with one sentence as `error`: the reader types queries,
        and a browser would write a refusal to its console.
        """
        started = perf_counter()
        result = self._result(parameters, is_cancelled, None)
        if isinstance(result, bytes):
            return result
        return result_json(result, perf_counter() - started)

    def track_json(self, parameters: Mapping[str, str], is_cancelled: Callable[[], bool]) -> bytes:
        """Returns what the timeline shows of a query's result as JSON, as `api/view/timeline` does.

        With a `row`, returns the values of that row of the result, as `api/view/slice` does.
        """
        trace_id, text = parameters.get(".trace", ""), parameters.get("query", "")
        key = trace_id, self._answers.sources.fingerprint(trace_id), text
        try:
            track = self._tracks.get(key, lambda: self._query_track(parameters, is_cancelled))
        except _Refusal as refusal:
            return refusal.answer
        return query_track_json(self._answers.open_trace(trace_id), track, parameters)

    def _query_track(
        self, parameters: Mapping[str, str], is_cancelled: Callable[[], bool]
    ) -> QueryTrack:
        """Returns a query's result as a track; raises `_Refusal` where there is none."""
        result = self._result(parameters, is_cancelled, MAX_ROWS_OF_TRACK)
        if isinstance(result, bytes):
            raise _Refusal(result)
        try:
            return query_track(result, parameters["query"])
        except UsageError as error:
            raise _Refusal(failure_json(str(error), None)) from None

    def _result(
        self,
        parameters: Mapping[str, str],
        is_cancelled: Callable[[], bool],
        rows: int | None,
    ) -> QueryResult | bytes:
        """Returns the result of a query, or why there is none as JSON."""
        text = parameters.get("query", "")
        if len(text) > _MAX_QUERY_CHARACTERS:
            raise UsageError(
                f"the query is {len(text)} characters long; write at most {_MAX_QUERY_CHARACTERS}"
            )
        trace_id = parameters.get(".trace", "")
        path = self._answers.sources.path_of(trace_id)
        self._answers.open_trace(trace_id)  # what cannot be read is told as everywhere
        try:
            return self._queries.run(QueryRequest(path, text), is_cancelled, rows)
        except UsageError as error:
            message = error.message if isinstance(error, QueryError) else str(error)
            place = place_of_error(text, message)
            return failure_json(with_place(str(error), place), place)
        except StoppedQuery as error:
            return failure_json(str(error), None)


class _Refusal(Exception):  # noqa: N818 - names what there is in place of a track
    """Carries the JSON that tells why a query makes no track."""

    def __init__(self, answer: bytes) -> None:
        super().__init__(answer)
        self.answer = answer


def client_check(environ: Mapping[str, Any]) -> Callable[[], bool]:
    """Returns a function that tells whether the client of a request has gone away.

    Waitress has one; Werkzeug's own server, which TensorBoard runs, only gives the socket.
    """
    check: Callable[[], bool] | None = environ.get("waitress.client_disconnected")
    if check is not None:
        return check
    connection: socket.socket | None = environ.get("werkzeug.socket")
    return lambda: connection is not None and _is_closed_by_peer(connection)


def _is_closed_by_peer(connection: socket.socket) -> bool:
    """Returns whether nothing more can come from the other side of a connection."""
    try:
        return connection.recv(1, socket.MSG_PEEK | getattr(socket, "MSG_DONTWAIT", 0)) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
