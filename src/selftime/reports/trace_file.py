"""Writes a trace file in Kineto's layout, one event per line.

The text is written in pieces, so a trace may be larger than memory.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, Protocol

import msgspec
from isal import igzip

from selftime.errors import UsageError
from selftime.output_file import open_output, report_output_errors

_JSON_MEMBER_SEPARATOR: Final = b",\n  "
_GZIP_COMPRESSION_LEVEL: Final = 2
"""Level of isal's gzip compression (0 to 3): files nearly as small as zlib's, written much
faster."""


class JsonTraceWriter:
    """Writes a JSON trace from top-level keys and events, in the order in which it gets them.

    Keys given after the first events are written after the last ones. A repeated key is ignored.
    """

    def __init__(self, write_bytes: Callable[[bytes], None]) -> None:
        self._write_bytes = write_bytes
        self._written_keys: set[str] = set()
        self._pending_keys: dict[str, bytes] = {}
        self._is_in_events = False

    def receive_key(self, name: str, value: bytes) -> None:
        """Writes a top-level key and its JSON value; keys after events go to the file's end."""
        if self._is_in_events:
            self._pending_keys[name] = value
        elif name not in self._written_keys:
            self._write_top_level_key(name, value)

    def _write_top_level_key(self, name: str, value: bytes) -> None:
        self._write_bytes(
            b"%b%b: %b" % (self._text_before_json_member(), msgspec.json.encode(name), value)
        )
        self._written_keys.add(name)

    def _text_before_json_member(self) -> bytes:
        """Returns the text before a JSON member: `{` before the first, `,` before others."""
        return _JSON_MEMBER_SEPARATOR if self._written_keys else b"{\n  "

    def receive_events(self, text: bytes, _count: int) -> None:
        """Writes events given as JSON objects separated by commas."""
        if not text:
            return
        self._write_bytes(
            _JSON_MEMBER_SEPARATOR if self._is_in_events else self._text_that_opens_events_list()
        )
        self._write_bytes(text)

    def _text_that_opens_events_list(self) -> bytes:
        """Returns the text that begins the list of events."""
        self._is_in_events = True
        return self._text_before_json_member() + b'"traceEvents": [\n  '

    def write_end(self) -> None:
        """Ends the list of events, and writes the keys that came after the first events."""
        if not self._is_in_events:
            self._write_bytes(self._text_that_opens_events_list())
        self._write_bytes(b"\n  ]")
        for name, value in self._pending_keys.items():
            if name not in self._written_keys:
                self._write_bytes(
                    b"%b%b: %b" % (_JSON_MEMBER_SEPARATOR, msgspec.json.encode(name), value)
                )
        self._write_bytes(b"\n}\n")


@contextmanager
def open_trace_writer(output: Path, source: str | os.PathLike[str]) -> Iterator[JsonTraceWriter]:
    """Opens a JSON trace for writing, compressed with gzip if its name ends in `.gz`.

    Raises:
        UsageError: `output` is the input itself, a folder, or has an unsupported suffix.
        SelftimeError: The file cannot be written.
    """
    with open_file_writer(output, source) as write:
        trace = JsonTraceWriter(write)
        yield trace
        trace.write_end()


def write_bytes(output: Path, source: str | os.PathLike[str], data: bytes) -> None:
    """Writes bytes to a file that is not a JSON trace, such as a memory snapshot.

    Raises:
        UsageError: `output` is the input itself, a folder, or has an unsupported suffix.
        SelftimeError: The file cannot be written.
    """
    with open_file_writer(output, source) as write:
        write(data)


@contextmanager
def open_file_writer(
    output: Path, source: str | os.PathLike[str]
) -> Iterator["CompressingFileWriter"]:
    """Opens a file to be written in several calls, gzip-compressed if its name ends in `.gz`.

    Raises:
        UsageError: `output` is the input itself, a folder, or has an unsupported suffix.
        SelftimeError: The file cannot be written.
    """
    with report_output_errors(output):
        _raise_if_output_not_writable(output, source)
        with open_output(output) as file:
            counted = _ByteCountingFile(file)
            with _open_gzip_or_plain_writer(counted, output) as packed:
                yield CompressingFileWriter(output, packed, counted)


class CompressingFileWriter:
    """A callable that writes bytes to an open file, compressed if its name ends in `.gz`."""

    def __init__(
        self, output: Path, compressed_file: "_ByteSink", file: "_ByteCountingFile"
    ) -> None:
        self._output = output
        self._compressed_file = compressed_file
        self._file = file

    def __call__(self, data: bytes) -> None:
        with report_output_errors(self._output):
            self._compressed_file.write(data)

    @property
    def size(self) -> int:
        """Size of the written file in bytes, known once the file is closed."""
        return self._file.count


class _ByteSink(Protocol):
    """An object to which bytes can be written."""

    def write(self, data: bytes, /) -> object: ...


class _ByteCountingFile:
    """Counts the bytes written to a file, since the size of a pipe cannot be queried."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.count = 0

    def write(self, data: bytes, /) -> int:
        self.count += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


def _raise_if_output_not_writable(output: Path, source: str | os.PathLike[str]) -> None:
    """Raises a UsageError if the output is the input trace or a folder, or is named `*.zst`."""
    if output.exists() and Path(source).exists() and output.samefile(source):
        raise UsageError(f"`{output}` is the trace itself; name another file with `-o`")
    if output.is_dir():
        raise UsageError(f"`{output}` is a folder; name a file in it with `-o`")
    if output.suffix == ".zst":
        raise UsageError(
            f"`{output}` would be compressed with zstd, which is not supported; "
            "name it .json or .json.gz with `-o`"
        )


@contextmanager
def _open_gzip_or_plain_writer(file: _ByteCountingFile, output: Path) -> Iterator[_ByteSink]:
    """Yields a writer that compresses to gzip if the output's name ends in `.gz`.

    gzip's header has no name or time, so that equal content gives equal files.
    """
    if output.suffix != ".gz":
        yield file
        return
    gzip_file: Any = igzip.IGzipFile
    with gzip_file("", "wb", _GZIP_COMPRESSION_LEVEL, file, 0) as compressing_file:
        yield compressing_file
