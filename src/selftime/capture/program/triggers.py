"""Listens for requests to record a running program: a touched file, a signal or HTTP.

Each can be used any number of times; a request during a recording counts for that one. Servers
listen on the local machine only.
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

TRIGGER_FILE_POLL_SECONDS: Final = 0.1
"""Seconds between two checks whether the trigger file was created or touched."""

_HTTP_REQUEST_TIMEOUT_S: Final = 10.0
"""Longest wait for the rest of an HTTP request, in seconds."""

LOCAL_HOSTS: Final = ("127.0.0.1", "localhost", "[::1]")


class RecordingTrigger(Protocol):
    """Interface of triggers: they receive the user's requests to record the running program."""

    def begin(self, state: Callable[[], dict[str, Any]]) -> str:
        """Starts to listen for requests, and returns instructions for the user."""

    def take_request(self) -> bool:
        """Returns whether a recording was requested since the last call of this method."""

    def end(self) -> None:
        """Stops listening for requests."""


def parse_trigger(text: str, folder: Path) -> RecordingTrigger:
    """Returns the trigger that a text names: `file`, `signal` or `http`, or with `:` and a value.

    The default file is `record` in the folder of the traces, the default signal SIGUSR2, the
    default port a free one.

    Raises:
        UsageError: There is no such trigger.
    """
    kind, _, value = text.partition(":")
    if kind == "file":
        return FileTrigger(Path(value).absolute() if value else folder / "record")
    if kind == "signal":
        return SignalTrigger(value or "SIGUSR2")
    if kind == "http" and (not value or value.isdecimal()):
        return HttpTrigger(int(value or 0))
    raise UsageError(
        f"`{text}` is no trigger; choose file, file:PATH, signal, signal:NAME, http or http:PORT"
    )


class FileTrigger:
    """Requests a recording when the user creates or touches a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last_change: int | None = None
        self._request = threading.Event()
        self._is_stopped = threading.Event()

    def begin(self, _state: Callable[[], dict[str, Any]]) -> str:
        with suppress(OSError):  # it may be created later
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self._last_change = self._modification_time()
        threading.Thread(target=self._watch_file, name="selftime trigger", daemon=True).start()
        return f"to record, run: touch {self.path}"

    def take_request(self) -> bool:
        return _clear_event_if_set(self._request)

    def end(self) -> None:
        self._is_stopped.set()

    def _watch_file(self) -> None:
        while not self._is_stopped.wait(TRIGGER_FILE_POLL_SECONDS):
            changed = self._modification_time()
            if changed is not None and changed != self._last_change:
                self._request.set()
            self._last_change = changed

    def _modification_time(self) -> int | None:
        try:
            return self.path.stat().st_mtime_ns
        except OSError:  # it does not exist
            return None


class SignalTrigger:
    """Requests a recording when the process receives a signal that the program does not handle."""

    def __init__(self, name: str) -> None:
        full = name if name.startswith("SIG") else f"SIG{name}"
        number = getattr(signal, full, None)
        if not isinstance(number, signal.Signals) or number in _SIGNALS_REFUSED_AS_TRIGGER:
            raise UsageError(f"`{name}` is no signal to record on; choose SIGUSR1 or SIGUSR2")
        self.number = number
        self._request = threading.Event()
        self._previous_handler: Any = None

    def begin(self, _state: Callable[[], dict[str, Any]]) -> str:
        if threading.current_thread() is not threading.main_thread():
            return f"{self.number.name} cannot be waited for: torch was imported in a thread"
        self._previous_handler = signal.getsignal(self.number)
        if self._previous_handler not in (signal.SIG_DFL, signal.SIG_IGN):
            return f"the program handles {self.number.name} itself; choose another signal"
        signal.signal(self.number, self._on_signal)
        return f"to record, run: kill -{self.number.name.removeprefix('SIG')} {os.getpid()}"

    def take_request(self) -> bool:
        return _clear_event_if_set(self._request)

    def end(self) -> None:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(self.number) == self._on_signal:
            signal.signal(self.number, self._previous_handler)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._request.set()


_SIGNALS_REFUSED_AS_TRIGGER: Final = frozenset(
    getattr(signal, name)
    for name in ("SIGKILL", "SIGSTOP", "SIGTERM", "SIGINT", "SIGCHLD", "SIGSEGV", "SIGABRT")
    if hasattr(signal, name)
)
"""Signals that cannot request a recording, because they mean something else or cannot be
handled."""


class HttpTrigger:
    """Requests a recording on `POST /record` from this machine; `GET /` returns its state."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._request = threading.Event()
        self._server: ThreadingHTTPServer | None = None

    def begin(self, state: Callable[[], dict[str, Any]]) -> str:
        handler = type(
            "Handler",
            (_TriggerRequestHandler,),
            {"requested": self._request, "state": staticmethod(state)},
        )
        try:
            self._server = _TriggerHttpServer(("127.0.0.1", self._port), handler)
        except (OSError, OverflowError) as error:
            return f"port {self._port} cannot be used: {error}; choose another with http:PORT"
        serve = self._server.serve_forever
        threading.Thread(target=serve, name="selftime trigger", daemon=True).start()
        return f"to record, run: curl -X POST http://127.0.0.1:{self._server.server_port}/record"

    def take_request(self) -> bool:
        return _clear_event_if_set(self._request)

    def end(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class _TriggerHttpServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Ignores errors of requests, since stderr belongs to the program."""


class _TriggerRequestHandler(BaseHTTPRequestHandler):
    requested: threading.Event
    state: Callable[[], dict[str, Any]]
    timeout = _HTTP_REQUEST_TIMEOUT_S

    def version_string(self) -> str:
        """Returns the server's name for HTTP headers, without version numbers."""
        return "selftime"

    def do_GET(self) -> None:
        if self._is_request_allowed() and self.path == "/":
            self._send_json_answer(HTTPStatus.OK, self.state())
        elif self._is_request_allowed():
            self._send_json_answer(HTTPStatus.NOT_FOUND, {"error": "ask for / or post to /record"})

    def do_POST(self) -> None:
        if not self._is_request_allowed():
            return
        if self.path != "/record":
            self._send_json_answer(HTTPStatus.NOT_FOUND, {"error": "post to /record"})
            return
        self.requested.set()
        self._send_json_answer(HTTPStatus.ACCEPTED, {"asked": True, **self.state()})

    def _is_request_allowed(self) -> bool:
        """Returns whether a request comes from this machine and not from a web page."""
        host = self.headers.get("Host", "").rpartition(":")[0]
        if host in LOCAL_HOSTS and "Origin" not in self.headers:
            return True
        self._send_json_answer(
            HTTPStatus.FORBIDDEN, {"error": "ask from this machine, not from a page"}
        )
        return False

    def _send_json_answer(self, status: HTTPStatus, values: dict[str, Any]) -> None:
        body = json.dumps(values).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Does not log requests, since stderr belongs to the program."""


def _clear_event_if_set(event: threading.Event) -> bool:
    if not event.is_set():
        return False
    event.clear()
    return True
