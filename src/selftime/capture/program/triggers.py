"""Ways to ask a running program for a recording: a file, a signal, a word on a port.

Each of them can be used as often as wanted; what is asked while a recording is under way counts for
that one. Nothing listens but on this machine, and no way carries anything but the wish.
"""

import json
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import Any, Final, Protocol

from selftime.errors import UsageError

EVERY_SECONDS: Final = 0.1
"""How often a file is looked at: soon for whoever waits, and no load."""

_PATIENCE_S: Final = 10.0
"""How long a thread of the program's waits for somebody who has begun to ask."""

LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")


class Trigger(Protocol):
    """Begins to listen, and tells once for each time that it was pulled."""

    def begin(self, state: Callable[[], dict[str, Any]]) -> str:
        """Listen from now on; a sentence says what to do. `state` is asked where one can ask."""

    def pulled(self) -> bool:
        """Whether somebody has asked since the last time that this was asked."""

    def end(self) -> None:
        """Listen no more."""


def made(words: str, folder: Path) -> Trigger:
    """The trigger that `file`, `file:PATH`, `signal`, `signal:NAME`, `http` or `http:PORT` names.

    A UsageError says which there are. The default file is `record` in the folder of the traces,
    the default signal SIGUSR2, the default port one that is free.
    """
    kind, _, value = words.partition(":")
    if kind == "file":
        return FileTrigger(Path(value).absolute() if value else folder / "record")
    if kind == "signal":
        return SignalTrigger(value or "SIGUSR2")
    if kind == "http" and (not value or value.isdecimal()):
        return HttpTrigger(int(value or 0))
    raise UsageError(
        f"`{words}` is no trigger; choose file, file:PATH, signal, signal:NAME, http or http:PORT"
    )


class FileTrigger:
    """Pulled by `touch`: the file is new, or newer than it was. It is left where it is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: int | None = None
        self._pull = threading.Event()
        self._over = threading.Event()

    def begin(self, _state: Callable[[], dict[str, Any]]) -> str:
        with suppress(OSError):  # it may appear later
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self._known = self._changed()
        threading.Thread(target=self._watch, name="selftime trigger", daemon=True).start()
        return f"to record, run: touch {self.path}"

    def pulled(self) -> bool:
        return _taken(self._pull)

    def end(self) -> None:
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(EVERY_SECONDS):
            changed = self._changed()
            if changed is not None and changed != self._known:
                self._pull.set()
            self._known = changed

    def _changed(self) -> int | None:
        try:
            return self.path.stat().st_mtime_ns
        except OSError:  # it is not there, or not yet
            return None


class SignalTrigger:
    """Pulled by a signal that the program does not handle itself."""

    def __init__(self, name: str) -> None:
        full = name if name.startswith("SIG") else f"SIG{name}"
        found = getattr(signal, full, None)
        if not isinstance(found, signal.Signals) or found in _NOT_OURS:
            raise UsageError(f"`{name}` is no signal to record on; choose SIGUSR1 or SIGUSR2")
        self.number = found
        self._pull = threading.Event()
        self._before: Any = None

    def begin(self, _state: Callable[[], dict[str, Any]]) -> str:
        if threading.current_thread() is not threading.main_thread():
            return f"{self.number.name} cannot be waited for: torch was imported in a thread"
        self._before = signal.getsignal(self.number)
        if self._before not in (signal.SIG_DFL, signal.SIG_IGN):
            return f"the program handles {self.number.name} itself; choose another signal"
        signal.signal(self.number, self._asked)
        return f"to record, run: kill -{self.number.name.removeprefix('SIG')} {os.getpid()}"

    def pulled(self) -> bool:
        return _taken(self._pull)

    def end(self) -> None:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(self.number) == self._asked:
            signal.signal(self.number, self._before)

    def _asked(self, _number: int, _frame: FrameType | None) -> None:
        self._pull.set()


_NOT_OURS: Final = frozenset(
    getattr(signal, name)
    for name in ("SIGKILL", "SIGSTOP", "SIGTERM", "SIGINT", "SIGCHLD", "SIGSEGV", "SIGABRT")
    if hasattr(signal, name)
)
"""Signals that mean something else, or cannot be handled."""


class HttpTrigger:
    """Pulled by `POST /record` on this machine; `GET /` tells how it stands, as JSON."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._pull = threading.Event()
        self._server: ThreadingHTTPServer | None = None

    def begin(self, state: Callable[[], dict[str, Any]]) -> str:
        handler = type("Handler", (_Handler,), {"pull": self._pull, "state": staticmethod(state)})
        try:
            self._server = _Server(("127.0.0.1", self._port), handler)
        except (OSError, OverflowError) as error:
            return f"port {self._port} cannot be used: {error}; choose another with http:PORT"
        serve = self._server.serve_forever
        threading.Thread(target=serve, name="selftime trigger", daemon=True).start()
        return f"to record, run: curl -X POST http://127.0.0.1:{self._server.server_port}/record"

    def pulled(self) -> bool:
        return _taken(self._pull)

    def end(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Nothing: stderr is the program's, and who asked has gone."""


class _Handler(BaseHTTPRequestHandler):
    pull: threading.Event
    state: Callable[[], dict[str, Any]]
    timeout = _PATIENCE_S

    def version_string(self) -> str:
        """Nothing of what runs here."""
        return "selftime"

    def do_GET(self) -> None:
        if self._may() and self.path == "/":
            self._answer(HTTPStatus.OK, self.state())
        elif self._may():
            self._answer(HTTPStatus.NOT_FOUND, {"error": "ask for / or post to /record"})

    def do_POST(self) -> None:
        if not self._may():
            return
        if self.path != "/record":
            self._answer(HTTPStatus.NOT_FOUND, {"error": "post to /record"})
            return
        self.pull.set()
        self._answer(HTTPStatus.ACCEPTED, {"asked": True, **self.state()})

    def _may(self) -> bool:
        """A page that somebody looks at in a browser may not ask: it names where it comes from."""
        host = self.headers.get("Host", "").rpartition(":")[0]
        if host in LOCAL and "Origin" not in self.headers:
            return True
        self._answer(HTTPStatus.FORBIDDEN, {"error": "ask from this machine, not from a page"})
        return False

    def _answer(self, status: HTTPStatus, told: dict[str, Any]) -> None:
        body = json.dumps(told).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: stderr is the program's."""


def _taken(event: threading.Event) -> bool:
    if not event.is_set():
        return False
    event.clear()
    return True
