"""`selftime mcp`: answers an AI agent's questions about traces over the Model Context Protocol."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from selftime.capture.recorder.run_options import RunOptions
from selftime.cli.query_options import (
    QueryMemory,
    QuerySeconds,
    QueryThreads,
    limits_of_options,
)
from selftime.errors import UsageError

if TYPE_CHECKING:
    from selftime.mcp.actions import AllowedActions


_AllowOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="ACTIONS",
        help="What an agent may do: `run`, `bench`, `verify`, with commas; default: only read.",
    ),
]
_RootOption: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="DIR",
        help="Run only scripts below it, with `--allow`; default: this folder. Repeatable.",
    ),
]
_LimitOption: TypeAlias = Annotated[
    float, typer.Option(min=1, metavar="S", help="Longest time of an action.")
]


def add_command(app: typer.Typer) -> None:
    app.command(
        "mcp",
        short_help="Answer an agent over the Model Context Protocol.",
        epilog="Example: selftime mcp selftime-runs",
    )(mcp)


def mcp(  # noqa: PLR0913, PLR0917 - a command's options are its arguments
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]...", help="Traces and folders of them; default: this folder."
        ),
    ] = None,
    query_seconds: QuerySeconds = None,
    query_memory: QueryMemory = None,
    query_threads: QueryThreads = None,
    allow: _AllowOption = None,
    root: _RootOption = None,
    limit_seconds: _LimitOption = 600.0,
) -> None:
    """Answer an agent over the Model Context Protocol, on standard input and output.

    Its tools list the traces at PATH, give advice on them, and return any table. It reads only the
    traces and the Python files that they name, writes nothing, and makes no network requests.

    With `--allow run,bench,verify`, an agent may also run the programs below `--root`, and verify
    repairs.
    """
    from importlib.util import find_spec

    if find_spec("mcp") is None or find_spec("mcp_types") is None:
        raise UsageError(
            "the protocol's SDK is not installed: install the extra `mcp` of selftime "
            "(README, Install)"
        )
    from selftime.mcp import ToolHandlers, TraceLibrary
    from selftime.mcp.actions import Actions
    from selftime.mcp.server import serve_tools_on_stdio

    limits = limits_of_options(query_seconds, query_memory, query_threads)
    given = paths or ["."]
    actions = None
    if allow is None:
        library = TraceLibrary(given)
    else:
        allowed = _allowed_actions(allow, given, root or [], limit_seconds)
        library = TraceLibrary(given, may_be_empty="run" in allowed.names)
        actions = Actions(allowed, library)
    serve_tools_on_stdio(ToolHandlers(library, query_limits=limits), actions)


def _allowed_actions(
    allow: str, paths: list[str], roots: list[Path], limit_seconds: float
) -> "AllowedActions":
    """Returns what an agent may do; makes the folder of recordings, which the agent lists."""
    from selftime.mcp.actions import AllowedActions

    if os.name != "posix":
        raise UsageError("`--allow` needs process groups, which this system has not; leave it out")
    default = RunOptions().folder
    folder = Path(paths[0]) if paths != ["."] else default
    if "://" in str(folder) or folder.is_file():
        raise UsageError(f"`{folder}` is no folder that recordings can go to; give one first")
    allowed = AllowedActions.from_options(allow, roots, folder, limit_seconds)
    if "run" in allowed.names:
        folder.mkdir(parents=True, exist_ok=True)
    return allowed
