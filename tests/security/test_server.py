"""The server as somebody meets it who means harm: odd addresses, odd words, odd clients."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from werkzeug.test import Client

from selftime.views import VIEWS, View
from selftime.web import PageApp, TracesAtPaths

NUMBERS: Final = (str(1 << 62), "9" * 400, "nan", "\0")
ADDRESSES: Final = (
    "/../../etc/passwd",
    "/..%2f..%2fetc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/app.js/../../../etc/passwd",
    "//evil.example/x",
    "/api/view/..%2f..%2fx",
    "/api/rule/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "/api/view/%0d%0aSet-Cookie:%20a=b.csv",
    "/api/view/operators%00.csv",
    "/index.html%00",
    "/static/app.js",
    "/.git/config",
)


@pytest.fixture(scope="module")
def client(folder: Path) -> Client:
    return Client(PageApp(TracesAtPaths([str(folder / "trace.json")])))


@pytest.fixture(scope="module")
def trace(client: Client) -> str:
    told: Any = client.get("/api/traces").json
    return str(told["traces"][0]["id"])


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.sweep(10)
def test_no_word_breaks_a_view(view: View[Any], client: Client, trace: str) -> None:
    for option in view.options:
        for word in NUMBERS:
            answer = client.get(f"/api/view/{view.name}", query_string={
                ".trace": trace, option: word})  # fmt: skip
            assert answer.status_code in {200, 400}, (option, word)
            assert len(answer.data) < 5_000_000


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_address_leads_out(address: str, client: Client) -> None:
    answer = client.get(address)
    assert answer.status_code in {400, 404}
    assert set(answer.json or {}) == {"error"}
    assert "Set-Cookie" not in answer.headers
    assert "root:" not in answer.text


@pytest.mark.parametrize("header", ["X-Forwarded-Prefix", "X-Forwarded-Host", "X-Original-URL"])
def test_no_header_changes_where_it_leads(header: str, client: Client) -> None:
    answer = client.get("", headers={header: "//evil.example"})
    assert "evil.example" not in str(answer.headers)
    assert "evil.example" not in answer.text


def test_a_method_is_not_overridden(client: Client) -> None:
    answer = client.post("/api/traces", headers={"X-HTTP-Method-Override": "GET"})
    assert answer.status_code == 405


def test_no_other_origin_may_read(client: Client) -> None:
    for address in ("/", "/api/traces"):
        answer = client.get(address, headers={"Origin": "https://evil.example"})
        assert not [name for name, _ in answer.headers if name.startswith("Access-Control-")]
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert answer.headers["Referrer-Policy"] == "no-referrer"


class Server:
    """A `selftime serve` in a process of its own, asked byte by byte."""

    def __init__(self, port: int) -> None:
        self.port = port

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def ask(self, text: bytes) -> bytes:
        """What comes back until the server closes."""
        with self.connect() as asking:
            asking.sendall(text)
            parts = []
            while part := asking.recv(1 << 16):
                parts.append(part)
        return b"".join(parts)

    def get(self, *headers: bytes, address: bytes = b"/api/views") -> bytes:
        lines = [b"GET %s HTTP/1.1" % address, b"Connection: close", *headers, b"", b""]
        return self.ask(b"\r\n".join(lines))


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    command = [sys.executable, "-m", "selftime", "serve", "--port", "0", str(folder / "trace.json")]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(  # noqa: S603 - our own command
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        try:
            assert running.stdout is not None
            found = re.search(r":(\d+)/", running.stdout.readline())
            assert found is not None
            yield Server(int(found[1]))
            assert running.poll() is None
        finally:
            running.terminate()


HOST: Final = b"Host: localhost"


def test_it_answers_by_its_name_only(server: Server) -> None:
    assert server.get(HOST).startswith(b"HTTP/1.1 200")
    assert server.get(b"Host: evil.example").startswith(b"HTTP/1.1 421")
    assert server.get().startswith(b"HTTP/1.1 421")
    assert server.get(HOST, b"Host: evil.example").startswith((b"HTTP/1.1 400", b"HTTP/1.1 421"))


def test_it_does_not_say_what_it_is(server: Server) -> None:
    head = server.get(HOST).partition(b"\r\n\r\n")[0].lower()
    assert b"waitress" not in head
    assert b"python" not in head
    assert b"werkzeug" not in head


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 200_000 + b"\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n\r\n", b"413"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", b"400"),
        (b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"421"),
        (b"TRACE / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"405"),
    ],
    ids=["headers", "length", "no length", "TLS", "proxy", "TRACE"],
)
def test_odd_questions_are_refused(sent: bytes, status: bytes, server: Server) -> None:
    with server.connect() as asking:
        asking.sendall(sent)
        assert asking.recv(1 << 16).split(b" ")[1] == status


def test_the_slow_do_not_stop_the_quick(server: Server) -> None:
    with ExitStack() as slow:
        for _ in range(500):
            waiting = slow.enter_context(server.connect())
            waiting.sendall(b"GET / HTTP/1.1\r\nHost: loc")
        assert server.get(HOST).startswith(b"HTTP/1.1 200")
