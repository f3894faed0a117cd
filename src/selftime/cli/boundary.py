"""Where errors become what the user reads: one sentence on stderr, exit status 2."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import typer
from typer.core import TyperGroup

from selftime.errors import SelftimeError

_WRONG_WORDS: Final[type[Exception]] = typer.BadParameter.__mro__[1]
"""Every error of Typer in the words of a command: it has no public name for it."""
_JARGON: Final = ": Value error, "
"""How the check of a value begins what it says."""
_ORDER: Final = (
    "run",
    "advise",
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
"""The commands as help lists them, in the order in which they are first needed; others follow."""


class OneSentence(TyperGroup):
    """The commands; an error that selftime raises on purpose ends them without a traceback."""

    def list_commands(self, _ctx: Any) -> list[str]:
        known = [name for name in _ORDER if name in self.commands]
        return known + [name for name in self.commands if name not in known]

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _one_sentence():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _one_sentence():
            return super().invoke(ctx)


@contextmanager
def _one_sentence() -> Iterator[None]:
    try:
        yield
    except SelftimeError as error:
        say(f"Error: {error}")
        raise typer.Exit(2) from None
    except _WRONG_WORDS as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # its message is the page itself
            raise
        say(f"Error: {_sentence(error)}")
        raise typer.Exit(2) from None
    except (MemoryError, OSError, RuntimeError) as error:
        lacking = _lacking(error)
        if lacking is None:
            raise
        typer.echo(f"Error: {lacking}", err=True)  # nothing more can be loaded now
        raise typer.Exit(2) from None


def _lacking(error: Exception) -> str | None:
    """What this machine has no more of, as a sentence; None if the error is another."""
    if isinstance(error, MemoryError):
        return _SCARCE[errno.ENOMEM]
    if isinstance(error, OSError):
        return _SCARCE.get(error.errno or 0)
    return _SCARCE[errno.EAGAIN] if str(error) == "can't start new thread" else None


_SCARCE: Final = {
    errno.ENOMEM: "there is not enough memory for this; free some, or choose a smaller trace",
    errno.EAGAIN: "no more processes or threads can be started; end some, or raise `ulimit -u`",
    errno.EMFILE: "no more files can be opened; raise `ulimit -n`",
    errno.ENFILE: "no more files can be opened on this machine; close some",
    errno.ENOSPC: "there is no room left on the disk; make some, or write elsewhere",
    errno.EDQUOT: "there is no room left in your share of the disk; make some, or write elsewhere",
}


def _sentence(error: Any) -> str:
    """What Typer has to say of the command's words, in one line, and where to read on."""
    message = " ".join(error.format_message().split()).replace(_JARGON, ": ").rstrip(".")
    return message if error.ctx is None else f"{message}; see `{error.ctx.command_path} --help`"


def say(sentence: str) -> None:
    """One line on stderr, harmless whatever names it holds."""
    from selftime.reports.plain import plain

    typer.echo(plain(sentence), err=True)
