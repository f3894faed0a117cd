"""Writes the output of commands to a file, a terminal or a pipe, and chooses its format."""

import os
import shutil
import sys
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Final, TextIO, TypeVar

import typer

from selftime.errors import SelftimeError, UsageError
from selftime.output_file import STDOUT_NAME, open_output, report_output_errors

FormatEnum = TypeVar("FormatEnum", bound=Enum)

_FORMAT_BY_SUFFIX: Final = {"md": "markdown", "xml": "junit"}
"""Maps file suffixes that are not the name of a format to the output format."""


def terminal_width() -> int:
    """Returns the width of the output in columns: `COLUMNS`, else the terminal's, else 80."""
    return max(20, shutil.get_terminal_size((80, 24)).columns)


def format_for_file(output: Path | None, default: FormatEnum) -> FormatEnum:
    """Returns the output format that a file's suffix means; `default` if there is no suffix."""
    suffix = "" if output is None else output.suffix.removeprefix(".").lower()
    if suffix in ("txt", ""):
        return default
    formats = {form.value: form for form in type(default)}
    name = _FORMAT_BY_SUFFIX.get(suffix, suffix)
    if name not in formats:
        raise UsageError(
            f"the suffix of `{output}` is not a format; add `--format` with one of "
            f"{', '.join(formats)}"
        )
    return formats[name]


def uses_colour(*, to_stderr: bool = False) -> bool:
    """Returns whether to print in colour: only to a terminal, if the environment allows it."""
    stream = sys.stderr if to_stderr else sys.stdout
    refused = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream is not None and stream.isatty() and not refused


def is_stdout(output: Path) -> bool:
    """Returns whether an output path means stdout (`-`); the summary then goes to stderr."""
    try:
        return str(output) == STDOUT_NAME or os.path.samestat(output.stat(), os.fstat(1))
    except OSError:  # stdout is closed, or the pipe was removed
        return False


def refuse_overwriting_inputs(
    output: Path | None, sources: Iterable[str], *, option: str = "-o"
) -> None:
    """Raises a UsageError if the output file is one of the traces that the command reads.

    Raises:
        UsageError: It is one; the message names `option`, the option for the output file.
    """
    if output is None or not output.exists():
        return
    with report_output_errors(output, option=option):
        for source in sources:
            if Path(source).exists() and output.samefile(source):
                raise UsageError(
                    f"`{output}` is the trace itself; name another file with `{option}`"
                )


def write_output(
    content: str | bytes, *, to: Path | None = None, to_stderr: bool = False, option: str = "-o"
) -> None:
    """Writes text or bytes to the file `to`; if it is None, to stdout or stderr.

    Args:
        content: The output.
        to: The file.
        to_stderr: Whether to write to stderr instead of stdout, without a file.
        option: The option that names the file, for error messages.

    Raises:
        UsageError: Bytes cannot be printed to a terminal.
        SelftimeError: The output cannot be written.
    """
    if to is not None:
        with report_output_errors(to, option=option), open_output(to) as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return
    stream = sys.stderr if to_stderr else sys.stdout
    if stream is None:
        raise SelftimeError("stdout is closed; open it, or write to a file with `-o`")
    if isinstance(content, bytes):
        if stream.isatty():
            raise UsageError(
                "parquet cannot be printed to a terminal; write it to a file with `-o FILE`"
            )
        write_all_bytes(content, stream)
        return
    encoding = stream.encoding or "utf-8"
    encoded = content.encode(encoding, "backslashreplace")
    if stream.isatty():
        typer.echo(encoded.decode(encoding), nl=False, err=to_stderr, color=True)
    else:
        write_all_bytes(encoded, stream)


def write_all_bytes(content: bytes, stream: TextIO) -> None:
    """Writes all bytes to a stream, repeating writes that the system cut short.

    An unbuffered stream, as under `PYTHONUNBUFFERED`, may write only a part in one call.
    """
    try:
        stream.flush()
        left = memoryview(content)
        while left:
            left = left[stream.buffer.write(left) :]
        stream.buffer.flush()
    except BrokenPipeError:  # the pipe's reader has closed it
        raise
    except OSError as error:
        raise SelftimeError(
            f"the output cannot be written: {error.strerror}; make room, or write it elsewhere"
        ) from error
