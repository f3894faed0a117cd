"""Reports errors of commands to the user: one sentence on stderr, and exit status 2."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import typer
from typer.core import TyperGroup

from selftime.errors import SelftimeError, UsageError

_BASE_CLASS_OF_TYPER_USAGE_ERRORS: Final[type[Exception]] = typer.BadParameter.__mro__[1]
"""The base class of Typer's usage errors, which has no public name."""
_TEXT_REMOVED_FROM_TYPER_MESSAGES: Final = ": Value error, "
"""Text that is removed from Typer's messages about invalid values; the reason follows it."""
_METAVARS_OF_PATHS: Final = frozenset(
    {"PATH", "BEFORE", "AFTER", "SCRIPT", "FILE", "DIR", "FOLDER", "OUT", "PROGRAM", "TRACE"}
)
"""Words of the help that stand for paths."""
_COMMANDS_IN_HELP_ORDER: Final = (
    "run",
    "advise",
    "what-if",
    "serve",
    "report",
    "view",
    "views",
    "explain",
    "verify",
    "preflight",
    "doctor",
    "repair",
    "cut",
    "redact",
)
"""Commands in the order in which the help lists them; all other commands follow."""


class ErrorReportingGroup(TyperGroup):
    """The command `selftime`; reports its errors as one sentence, without a traceback."""

    def list_commands(self, _ctx: Any) -> list[str]:
        known = [name for name in _COMMANDS_IN_HELP_ORDER if name in self.commands]
        return known + [name for name in self.commands if name not in known]

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _report_errors_and_exit():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _report_errors_and_exit():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and any(not word or word.endswith("=") for word in rest):
            parsed = command.make_context(name, [*rest], parent=ctx, resilient_parsing=True)
            _refuse_empty_paths(command, parsed, rest)
        return name, command, rest


def _refuse_empty_paths(command: Any, parsed: Any, words: list[str]) -> None:
    """Raises a UsageError if a path of a command is empty: Python takes it for this folder."""
    empty = {"", None if "." in words else Path()}
    for parameter in command.params:
        value = parsed.params.get(parameter.name)
        values = value if isinstance(value, list | tuple) else [value]
        metavar = parameter.metavar or ""
        is_of_paths = isinstance(value, Path) or metavar.strip(".[]") in _METAVARS_OF_PATHS
        if is_of_paths and any(one is not None and one in empty for one in values):
            title = metavar if parameter.param_type_name == "argument" else parameter.opts[0]
            raise UsageError(f"`{title}` is empty; name a file, or a folder: `.` is this one")


@contextmanager
def _report_errors_and_exit() -> Iterator[None]:
    try:
        yield
    except SelftimeError as error:
        print_notice(f"Error: {error}")
        raise typer.Exit(2) from None
    except _BASE_CLASS_OF_TYPER_USAGE_ERRORS as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help text
            raise
        print_notice(f"Error: {_usage_error_sentence(error)}")
        raise typer.Exit(2) from None
    except (MemoryError, OSError, RuntimeError) as error:
        lacking = _exhausted_resource_sentence(error)
        if lacking is None:
            raise
        typer.echo(f"Error: {lacking}", err=True)  # no further module can be loaded now
        raise typer.Exit(2) from None


def _exhausted_resource_sentence(error: Exception) -> str | None:
    """Returns a sentence on which resource (memory, threads, files) ran out; None if none did."""
    if isinstance(error, MemoryError):
        return _EXHAUSTED_RESOURCE_SENTENCE_BY_ERRNO[errno.ENOMEM]
    if isinstance(error, OSError):
        return _EXHAUSTED_RESOURCE_SENTENCE_BY_ERRNO.get(error.errno or 0)
    return (
        _EXHAUSTED_RESOURCE_SENTENCE_BY_ERRNO[errno.EAGAIN]
        if str(error) == "can't start new thread"
        else None
    )


_EXHAUSTED_RESOURCE_SENTENCE_BY_ERRNO: Final = {
    errno.ENOMEM: "there is not enough memory for this; free some, or choose a smaller trace",
    errno.EAGAIN: "no more processes or threads can be started; end some, or raise `ulimit -u`",
    errno.EMFILE: "no more files can be opened; raise `ulimit -n`",
    errno.ENFILE: "no more files can be opened on this machine; close some",
    errno.ENOSPC: "the disk is full; free some space, or write elsewhere",
    errno.EDQUOT: "your disk quota is used up; free some space, or write elsewhere",
}


def _usage_error_sentence(error: Any) -> str:
    """Returns Typer's error message as one line, with a hint to `--help`."""
    message = (
        " ".join(error.format_message().split())
        .replace(_TEXT_REMOVED_FROM_TYPER_MESSAGES, ": ")
        .rstrip(".")
    )
    return message if error.ctx is None else f"{message}; see `{error.ctx.command_path} --help`"


def print_notice(sentence: str) -> None:
    """Prints one line to stderr, with control characters made visible, and long names cut."""
    from selftime.reports.plain import plain
    from selftime.units import truncate_middle_of_names

    typer.echo(truncate_middle_of_names(plain(sentence)), err=True)
