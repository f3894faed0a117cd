"""Answers the page's queries in SQL: `api/sql_schema` and `api/sql`.

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
from selftime.sql.limited_query import LimitedQueries, QueryRequest, StoppedQuery
from selftime.sql.query_limits import QueryLimits
from selftime.web.answers import PageDataAnswers

_MAX_ROWS: Final = 10_000
"""Largest number of rows of a result that the page is sent."""
_MAX_QUERY_CHARACTERS: Final = 8192
"""Largest number of characters of a query."""


class SqlAnswers:
    """Answers queries in SQL of the page over the traces that it shows."""

    def __init__(self, answers: PageDataAnswers, limits: QueryLimits | None = None) -> None:
        self._answers = answers
        self._queries = LimitedQueries(replace(limits or QueryLimits(), rows=_MAX_ROWS))

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
        text = parameters.get("query", "")
        if len(text) > _MAX_QUERY_CHARACTERS:
            raise UsageError(
                f"the query is {len(text)} characters long; write at most {_MAX_QUERY_CHARACTERS}"
            )
        trace_id = parameters.get(".trace", "")
        path = self._answers.sources.path_of(trace_id)
        self._answers.open_trace(trace_id)  # what cannot be read is told as everywhere
        started = perf_counter()
        try:
            result = self._queries.run(QueryRequest(path, text), is_cancelled)
        except UsageError as error:
            message = error.message if isinstance(error, QueryError) else str(error)
            place = place_of_error(text, message)
            return failure_json(with_place(str(error), place), place)
        except StoppedQuery as error:
            return failure_json(str(error), None)
        return result_json(result, perf_counter() - started)


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
