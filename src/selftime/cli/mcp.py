"""`selftime mcp`: answers an AI agent's questions about traces over the Model Context Protocol."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from typing import Annotated

import typer

from selftime.cli.query_options import (
    QueryMemory,
    QuerySeconds,
    QueryThreads,
    limits_of_options,
)
from selftime.errors import UsageError


def add_command(app: typer.Typer) -> None:
    app.command(
        "mcp",
        short_help="Answer an agent over the Model Context Protocol.",
        epilog="Example: selftime mcp selftime-runs",
    )(mcp)


def mcp(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]...", help="Traces and folders of them; default: this folder."
        ),
    ] = None,
    query_seconds: QuerySeconds = None,
    query_memory: QueryMemory = None,
    query_threads: QueryThreads = None,
) -> None:
    """Answer an agent over the Model Context Protocol, on standard input and output.

    Its tools list the traces at PATH, give advice on them, and return any table. It reads only the
    traces and the Python files that they name, writes nothing, and makes no network requests.
    """
    from importlib.util import find_spec

    if find_spec("mcp") is None or find_spec("mcp_types") is None:
        raise UsageError(
            "the protocol's SDK is not installed: install the extra `mcp` of selftime "
            "(README, Install)"
        )
    from selftime.mcp import ToolHandlers, TraceLibrary
    from selftime.mcp.server import serve_tools_on_stdio

    limits = limits_of_options(query_seconds, query_memory, query_threads)
    serve_tools_on_stdio(ToolHandlers(TraceLibrary(paths or ["."]), query_limits=limits))
