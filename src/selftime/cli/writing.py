"""Where a report goes: to a file, or to a terminal or pipe."""

import os
import shutil
import sys
from enum import Enum
from pathlib import Path
from typing import Final, TextIO, TypeVar

import typer

from selftime.errors import SelftimeError, UsageError
from selftime.output_file import open_output, told_in_a_sentence

F = TypeVar("F", bound=Enum)

_LONG_NAMES: Final = {"md": "markdown", "xml": "junit"}
"""Formats whose files end otherwise than they are called."""


def terminal_width() -> int:
    """Columns to draw in: `COLUMNS`, else the terminal's, else 80."""
    return max(20, shutil.get_terminal_size((80, 24)).columns)


def format_of(output: Path | None, printed: F) -> F:
    """The format that a file's ending tells; `printed` for stdout and where it has none."""
    suffix = "" if output is None else output.suffix.removeprefix(".").lower()
    if suffix in ("txt", ""):
        return printed
    formats = {form.value: form for form in type(printed)}
    name = _LONG_NAMES.get(suffix, suffix)
    if name not in formats:
        raise UsageError(
            f"the ending of `{output}` tells no format; add `--format` and one of "
            f"{', '.join(formats)}"
        )
    return formats[name]


def is_colourful(*, err: bool = False) -> bool:
    """Whether colour is welcome: on a terminal, unless the environment says no."""
    stream = sys.stderr if err else sys.stdout
    refused = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream is not None and stream.isatty() and not refused


def is_stdout(output: Path) -> bool:
    """Whether what was written went to stdout: what else there is to say belongs to stderr then."""
    try:
        return os.path.samestat(output.stat(), os.fstat(1))
    except OSError:  # it is closed, or whoever read removed the pipe
        return False


def write(page: str | bytes, *, to: Path | None = None, err: bool = False) -> None:
    """The page to a file, or to stdout (stderr if `err`)."""
    if to is not None:
        with told_in_a_sentence(to), open_output(to) as file:
            file.write(page.encode() if isinstance(page, str) else page)
        return
    stream = sys.stderr if err else sys.stdout
    if stream is None:
        raise SelftimeError("there is no output to print to: it is closed; open it, or use `-o`")
    if isinstance(page, bytes):
        if stream.isatty():
            raise UsageError("parquet is no text for a terminal; write it with `-o FILE`")
        send(page, stream)
        return
    encoding = stream.encoding or "utf-8"
    content = page.encode(encoding, "backslashreplace")
    if stream.isatty():
        typer.echo(content.decode(encoding), nl=False, err=err, color=True)
    else:
        send(content, stream)


def send(content: bytes, stream: TextIO) -> None:
    """All of these bytes to a file or pipe.

    A stream that does not buffer, as under `PYTHONUNBUFFERED`, writes as much as there is room for
    and says only how much that was.
    """
    try:
        stream.flush()
        left = memoryview(content)
        while left:
            left = left[stream.buffer.write(left) :]
        stream.buffer.flush()
    except BrokenPipeError:  # whoever reads has read enough
        raise
    except OSError as error:
        raise SelftimeError(
            f"the output cannot be written: {error.strerror}; make room, or write it elsewhere"
        ) from error
