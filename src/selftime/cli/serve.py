"""`selftime serve`: the page, on this machine."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import os
import secrets
import socket
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from selftime.errors import UsageError

if TYPE_CHECKING:  # polars stays out until the command runs
    from selftime.web.guard import Guard

_PORT: Final = 6070
_ANY: Final = ("0.0.0.0", "::", "")  # noqa: S104 - compared with, not listened on
_WAITING: Final = 256
"""Browsers that may wait to be heard, from the moment that the address is printed."""
_IN_MEMORY: Final = 64 << 20
"""Bytes of an answer on its way: a longer one would go by a file."""
_THREADS: Final = 16
"""Questions answered side by side; some wait for a trace that another is reading."""


def join(app: typer.Typer) -> None:
    app.command(
        "serve",
        short_help="Show traces in the browser.",
        epilog="Example: selftime serve selftime-runs --open",
    )(serve)


def serve(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH", help="Traces, folders, patterns, addresses.")
    ],
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help=f"Port; 0 takes any. Default: {_PORT}, or the next free one."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than this machine need a token.")
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:PORT]", help="A name that a proxy calls this server by."),
    ] = None,
    opens: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Show traces in the browser: what to change, tables, the timeline.

    The page is on this machine only and asks nothing of the network. It reads the traces at PATH
    and the Python files that they name, and nothing else.
    """
    from selftime.reports.page_data.assets import assets
    from selftime.web import App, Files
    from selftime.web.guard import Guard, is_loopback

    assets()
    app = App(Files(paths))
    listening = _listen(host, port)
    bound = listening.getsockname()[1]
    token = None if is_loopback(host) else secrets.token_urlsafe(24)
    machine = socket.gethostname()
    hosts = [f"{_shown(host)}:{bound}", *(allow_host or ())]
    name = machine if host in _ANY else host
    address = f"http://{_shown(name)}:{bound}/" + (f"?token={token}" if token else "")
    typer.echo(f"selftime is at {address} (Ctrl-C ends it)")
    Thread(target=app.answers.prepare_first, daemon=True).start()
    if opens:
        typer.launch(address)
    _run(Guard(app, hosts=hosts, machine=machine, token=token), listening)


def _listen(host: str, port: int | None) -> socket.socket:
    """A socket on the port asked for; without one, on the first that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    candidates = [port] if port is not None else [*range(_PORT, _PORT + 20), 0]
    for candidate in candidates:
        listening = socket.socket(family)
        if os.name != "nt":  # where it would take the port from who has it
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, candidate))
            listening.listen(_WAITING)
        except OSError as error:
            listening.close()
            if candidate is candidates[-1] or not _is_taken(error):
                why = error.strerror or str(error)
                raise UsageError(
                    f"cannot listen on {_shown(host)}:{candidate}: {why}; choose another `--port`"
                ) from None
            continue
        return listening
    raise AssertionError("the last candidate returns or raises")


def _is_taken(error: OSError) -> bool:
    import errno

    return error.errno in (errno.EADDRINUSE, errno.EACCES)


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _run(guard: "Guard", listening: socket.socket) -> None:
    import logging

    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # a queue is no fault
    server = _server(guard, listening)
    try:
        server.run()
    except KeyboardInterrupt:
        pass
    finally:
        server.close()


def _server(guard: "Guard", listening: socket.socket, *, threads: int = _THREADS) -> Any:
    """A server that answers at a socket once it runs."""
    from waitress.server import create_server

    return create_server(
        guard,
        sockets=[listening],
        threads=threads,
        ident="",
        clear_untrusted_proxy_headers=True,
        max_request_header_size=65_536,
        max_request_body_size=65_536,
        outbuf_overflow=_IN_MEMORY,
    )
