"""Clients that hold connections to the server, and take or send nothing."""

import select
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any, Final

import pytest
from waitress import wasyncore

from selftime.web.connection_limits import ConnectionLimits, LimitedServer

HALF: Final = b"GET / HTTP/1.1\r\nHost: loc"
WHOLE: Final = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n"
LARGE_MIB: Final = 32
"""Size in MiB of an answer that no buffer between server and client holds."""
PATIENCE_S: Final = 30.0

Connect = Callable[[], socket.socket]


class App:
    """Answers `/large` with many bytes, `/slow` when it is told to, and all else at once."""

    def __init__(self) -> None:
        self.may_go_on = Event()
        self.ended = Event()
        self.slow: list[str] = []

    def wait_until_slow(self, count: int) -> None:
        until = monotonic() + PATIENCE_S
        while len(self.slow) < count:
            assert monotonic() < until
            sleep(0.01)

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        parts = [b"here", *([b"x" * (1 << 20)] * (LARGE_MIB if path == "/large" else 0))]
        length = str(sum(map(len, parts)))
        start("200 OK", [("Content-Type", "text/plain"), ("Content-Length", length)])
        if path == "/slow":
            self.slow.append(path)
            assert self.may_go_on.wait(PATIENCE_S)
        try:
            yield from parts
        finally:
            self.ended.set()


@contextmanager
def serving(app: App, limits: ConnectionLimits) -> Iterator[Connect]:
    listening = socket.create_server(("127.0.0.1", 0))
    server = LimitedServer(app, listening, threads=2, limits=limits)
    running = Thread(target=server.run)
    running.start()
    with ExitStack() as opened:

        def connect() -> socket.socket:
            address = ("127.0.0.1", int(server.effective_port))
            return opened.enter_context(socket.create_connection(address, timeout=PATIENCE_S))

        yield connect
        app.may_go_on.set()
        server.trigger.pull_trigger(lambda: wasyncore.close_all(server._map))
        running.join()
        server.task_dispatcher.shutdown()


def answer(asking: socket.socket, path: bytes = b"") -> bytes:
    asking.sendall(WHOLE % path)
    return received(asking)


def received(asking: socket.socket) -> bytes:
    """What is received up to the word of the answer, or up to the end."""
    told = b""
    while b"here" not in told and (part := asking.recv(1 << 16)):
        told += part
    return told


def is_readable(connection: socket.socket, seconds: float) -> bool:
    return bool(select.select([connection], [], [], seconds)[0])


def is_closed(connection: socket.socket) -> bool:
    """Whether the server closes a connection, once what it had sent is read."""
    try:
        while connection.recv(1 << 20):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


def test_a_new_connection_takes_the_place_of_the_one_that_waits_longest() -> None:
    with serving(App(), ConnectionLimits(connections=4)) as connect:
        silent = [connect() for _ in range(2)]
        half = [connect() for _ in range(2)]
        for one in half:
            one.sendall(HALF)
        assert b"here" in answer(connect())
        assert is_closed(silent[0])
        for _ in range(20):
            connect().sendall(HALF)
        assert b"here" in answer(connect())
        assert all(map(is_closed, [*silent, *half]))


def test_a_request_that_is_answered_keeps_its_place() -> None:
    app = App()
    with serving(app, ConnectionLimits(connections=2)) as connect:
        waiting = [connect() for _ in range(2)]
        for one in waiting:
            one.sendall(WHOLE % b"slow")
        app.wait_until_slow(2)
        late = connect()
        late.sendall(WHOLE % b"")
        app.may_go_on.set()
        assert all(b"here" in received(one) for one in [*waiting, late])


@pytest.mark.parametrize("piece", [HALF, b""], ids=["half", "silent"])
def test_a_request_is_sent_in_time_or_not_at_all(piece: bytes) -> None:
    with serving(App(), ConnectionLimits(seconds_for_request=1.0)) as connect:
        slow = connect()
        slow.sendall(piece)
        until = monotonic() + PATIENCE_S
        while not is_readable(slow, 0.1):  # bytes that come now and then give no more time
            slow.sendall(piece[-1:])
            assert monotonic() < until
        assert is_closed(slow)


def test_who_takes_no_answer_does_not_hold_the_thread_that_answers() -> None:
    app = App()
    with serving(app, ConnectionLimits(seconds_for_answer=1.0)) as connect:
        stuck = connect()
        stuck.sendall(WHOLE % b"large")
        assert app.ended.wait(PATIENCE_S)
        assert is_closed(stuck)


def test_an_idle_connection_is_closed() -> None:
    with serving(App(), ConnectionLimits(seconds_idle=0.5)) as connect:
        idle = connect()
        assert b"here" in answer(idle)
        assert is_closed(idle)
