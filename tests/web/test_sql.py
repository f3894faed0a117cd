"""The page's queries in SQL: what can be asked, answers, sentences, and clients that go away."""

import socket
import sys
from collections.abc import Iterator
from threading import Thread
from time import sleep
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.sql.test_limited_query import ENDLESS
from tests.web.conftest import Write, operator
from waitress import wasyncore
from werkzeug.test import Client

from selftime.cli import serve
from selftime.sql import TABLES, VIEW_NAMES
from selftime.sql.examples import EXAMPLES
from selftime.sql.query_limits import QueryLimits
from selftime.web import PageApp, TracesAtPaths
from selftime.web.access_guard import AccessGuard
from selftime.web.sql_answers import client_check

NAMES = ("aten::mm", "aten::add", "aten::mul", "aten::sum")
MANY = [operator(NAMES[at % 4], 10.0 * at, 5) for at in range(80)]


def ask(client: Client, trace: str, query: str) -> Any:
    answer = client.get("/api/sql", query_string={".trace": trace, "query": query})
    assert answer.status_code == 200
    return answer.json


def test_all_that_a_query_can_read_is_described(client: Client, trace: str) -> None:
    told: Any = client.get("/api/sql_schema", query_string={".trace": trace}).json
    relations = {one["name"]: one for one in told["relations"]}
    assert len(relations) == len(TABLES) + len(VIEW_NAMES)
    assert (relations["slices"]["kind"], relations["slices"]["rows"]) == ("table", 4)
    assert relations["tables.lines"]["kind"] == "table"
    assert (relations["views.lines"]["kind"], relations["views.lines"]["rows"]) == ("view", None)
    [duration] = [one for one in relations["slices"]["columns"] if one["name"] == "duration"]
    assert (duration["type"], duration["unit"]) == ("integer", "ns")
    assert [one["question"] for one in told["examples"]] == [one.question for one in EXAMPLES]


def test_a_result_has_columns_with_the_units_that_their_names_tell(
    client: Client, trace: str
) -> None:
    told = ask(
        client,
        trace,
        "select name, count(*) as calls, sum(self) as self_ns, 1 < 2 as yes from slices "
        "group by name order by name",
    )
    units = {column["name"]: (column["type"], column["unit"]) for column in told["columns"]}
    assert units == {
        "name": ("text", "text"),
        "calls": ("integer", "id"),
        "self_ns": ("integer", "ns"),
        "yes": ("flag", "flag"),
    }
    assert told["row_count"] == told["page"]["rows"] == 3
    assert told["page"]["columns"]["calls"]["values"] == [1, 1, 2]


def test_what_cannot_be_answered_is_one_sentence_with_its_place(client: Client, trace: str) -> None:
    told = ask(client, trace, "select name\nfrom slices where nome = 1")
    assert told["error"].startswith('the query cannot be answered: unable to find column "nome"')
    assert told["error"].endswith(" (line 2, column 19)")
    assert told["place"] == {"line": 2, "column": 19, "start": 30, "end": 34}
    told = ask(client, trace, "delete from slices")
    assert told["place"] is None
    assert "is not a query" in told["error"]


def test_a_stopped_query_is_told_and_the_next_one_is_answered(write: Write) -> None:
    limits = QueryLimits(seconds=1.0)
    client = Client(PageApp(TracesAtPaths([str(write(events=MANY))]), query_limits=limits))
    listed: Any = client.get("/api/traces").json
    trace = listed["traces"][0]["id"]
    told = ask(client, trace, ENDLESS)
    assert ask(client, trace, "select 1 as one")["row_count"] == 1
    assert told == {
        "error": "the query was stopped after 1 s; ask for less, or allow it more time with "
        "`--query-seconds`",
        "place": None,
    }


@pytest.fixture
def served(write: Write) -> Iterator[tuple[PageApp, int]]:
    """An app, and the port at which it answers."""
    listening = serve._open_listening_socket("127.0.0.1", 0)
    port = listening.getsockname()[1]
    app = PageApp(
        TracesAtPaths([str(write(events=MANY))]), query_limits=QueryLimits(seconds=3600.0)
    )
    server = serve._make_waitress_server(AccessGuard(app), listening, threads=2)
    running = Thread(target=server.run)
    running.start()
    yield app, port
    server.trigger.pull_trigger(lambda: wasyncore.close_all(server._map))
    running.join()
    server.task_dispatcher.shutdown()


def test_a_query_ends_when_its_client_goes_away(served: tuple[PageApp, int]) -> None:
    app, port = served
    [listed] = app.answers.sources.listed_traces()
    words = urlencode({".trace": listed.id, "query": ENDLESS})
    free = app.sql._queries._free
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"GET /api/sql?{words} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        while free._value == free._initial_value:  # type: ignore[attr-defined]  # the semaphore's own
            sleep(0.01)
    while free._value < free._initial_value:  # type: ignore[attr-defined]  # likewise
        sleep(0.01)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pair of sockets")
def test_where_werkzeug_serves_the_socket_tells_who_is_gone() -> None:
    here, there = socket.socketpair()
    with here:
        is_gone = client_check({"werkzeug.socket": here})
        assert not is_gone()
        there.close()
        assert is_gone()
    assert not client_check({})()
