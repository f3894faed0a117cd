"""`selftime serve`: shows traces on a web page, served from this machine."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import os
import secrets
import signal
import socket
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from selftime.cli.query_options import (
    QueryMemory,
    QuerySeconds,
    QueryThreads,
    limits_of_options,
)
from selftime.errors import UsageError

if TYPE_CHECKING:  # polars stays out until the command runs
    from selftime.web.access_guard import AccessGuard
    from selftime.web.answers import PageDataAnswers

_DEFAULT_PORT: Final = 6070
_ADDRESSES_OF_ALL_INTERFACES: Final = ("0.0.0.0", "::", "")  # noqa: S104 - for comparison only
_MAX_PENDING_CONNECTIONS: Final = 256
"""Largest number of connections that wait to be accepted: the socket's backlog."""
_REQUEST_THREAD_COUNT: Final = 16
"""Number of threads that answer requests; several may wait while one thread reads a trace."""

_AllowedHosts: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="NAME[:PORT]",
        help="Also accept this host name, for a server behind a proxy.",
    ),
]
_NeedsToken: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--token/--no-token",
        help="Whether requests need the token that the printed address holds. "
        "Default: on a --host that other machines reach.",
    ),
]


def add_command(app: typer.Typer) -> None:
    app.command(
        "serve",
        short_help="Show traces in the browser.",
        epilog="Example: selftime serve selftime-runs --open",
    )(serve)


def serve(  # noqa: PLR0913, PLR0917 - the command's options
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH", help="Traces, folders, glob patterns, URLs.")
    ],
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help=f"Port; 0 for any. Default: {_DEFAULT_PORT}, or the next free one.",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; other machines need a token.")
    ] = "127.0.0.1",
    allowed_hosts: _AllowedHosts = None,
    needs_token: _NeedsToken = None,
    opens_browser: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
    query_seconds: QuerySeconds = None,
    query_memory: QueryMemory = None,
    query_threads: QueryThreads = None,
) -> None:
    """Show traces in the browser: advice, tables and the timeline.

    The server runs on this machine and makes no network requests. It reads only the traces at PATH
    and the Python files that they name.
    """
    from selftime.reports.page_data.assets import assets
    from selftime.web import PageApp, TracesAtPaths
    from selftime.web.access_guard import AccessGuard, is_loopback_host

    assets()
    limits = limits_of_options(query_seconds, query_memory, query_threads)
    app = PageApp(TracesAtPaths(paths), query_limits=limits)
    listening = _open_listening_socket(host, port)
    bound = listening.getsockname()[1]
    if needs_token is None:
        needs_token = not is_loopback_host(host)
    token = secrets.token_urlsafe(24) if needs_token else None
    hosts = [f"{_host_as_in_url(host)}:{bound}", *(allowed_hosts or ())]
    address = _page_address(host, bound, token)
    typer.echo(f"selftime is at {address} (Ctrl-C to stop)")
    if opens_browser:
        typer.launch(address)
    guard = AccessGuard(app, hosts=hosts, machine_name=socket.gethostname(), token=token)
    _serve_forever(guard, listening, app.answers)


def _open_listening_socket(host: str, port: int | None) -> socket.socket:
    """Returns a socket that listens on `port`; if that is None, on the first free default port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    candidates = [port] if port is not None else [*range(_DEFAULT_PORT, _DEFAULT_PORT + 20), 0]
    for candidate in candidates:
        listening = socket.socket(family)
        if os.name != "nt":  # on Windows this would take the port from its owner
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, candidate))
            listening.listen(_MAX_PENDING_CONNECTIONS)
        except OSError as error:
            listening.close()
            if candidate is candidates[-1] or not _is_port_unavailable(error):
                why = error.strerror or str(error)
                address = f"{_host_as_in_url(host)}:{candidate}"
                raise UsageError(
                    f"cannot listen on {address}: {why}; choose another `--port`"
                ) from None
            continue
        return listening
    raise AssertionError("unreachable: the last port in the loop is returned, or raises")


def _page_address(host: str, port: int, token: str | None) -> str:
    """Returns the address at which a browser finds the page, with the token that it needs."""
    name = socket.gethostname() if host in _ADDRESSES_OF_ALL_INTERFACES else host
    return f"http://{_host_as_in_url(name)}:{port}/" + (f"?token={token}" if token else "")


def _is_port_unavailable(error: OSError) -> bool:
    import errno

    return error.errno in (errno.EADDRINUSE, errno.EACCES)


def _host_as_in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _prepare_first_trace(answers: "PageDataAnswers", is_ending: Event) -> None:
    """Starts a thread that prepares the answer on the trace that the page shows first."""

    def prepare() -> None:
        try:
            answers.prepare_first_trace()
        except Exception:
            if not is_ending.is_set():  # while Python ends, no thread can be started, for example
                raise

    Thread(target=prepare, daemon=True).start()


def _serve_forever(
    guard: "AccessGuard", listening: socket.socket, answers: "PageDataAnswers"
) -> None:
    """Answers requests until the command is interrupted; prepares the first answer meanwhile."""
    import logging

    is_ending = Event()
    # Polars interrupts every thread that computes, which then prints a traceback; Python's own
    # handler, installed again over that of Polars, interrupts this one alone.
    signal.signal(signal.SIGINT, signal.getsignal(signal.SIGINT))
    _prepare_first_trace(answers, is_ending)
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # a queue is normal
    for name in ("selftime.web.app", "waitress"):  # requests that the end of Python breaks off
        logging.getLogger(name).addFilter(lambda _record: not is_ending.is_set())
    server = _make_waitress_server(guard, listening)
    try:
        server.run()
    except KeyboardInterrupt:
        pass
    finally:
        is_ending.set()
        server.close()


def _make_waitress_server(
    guard: "AccessGuard", listening: socket.socket, *, threads: int = _REQUEST_THREAD_COUNT
) -> Any:
    """Returns a Waitress server that answers requests on a listening socket."""
    from selftime.web.connection_limits import LimitedServer

    return LimitedServer(guard, listening, threads=threads)
