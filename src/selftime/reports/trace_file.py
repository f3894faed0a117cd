"""A trace written anew in Kineto's layout: its keys, its events one a line, the keys behind them.

The text is written as it comes, so a trace may be larger than memory.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, Protocol

import msgspec
from isal import igzip

from selftime.errors import UsageError
from selftime.output_file import open_output, told_in_a_sentence

_SEPARATOR: Final = b",\n  "
_LEVEL: Final = 2
"""Of isal's 0 to 3: within some percent of zlib's size at several times its speed."""


class TraceFile:
    """A trace that is being written: keys and events in the order in which they shall stand.

    Keys that come after the first events are written behind the last ones. A key that has been
    written is not written again.
    """

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._written: set[str] = set()
        self._later: dict[str, bytes] = {}
        self._is_in_events = False

    def key(self, name: str, value: bytes) -> None:
        """A top-level key with its value as JSON text."""
        if self._is_in_events:
            self._later[name] = value
        elif name not in self._written:
            self._write_key(name, value)

    def _write_key(self, name: str, value: bytes) -> None:
        self._write(b"%b%b: %b" % (self._between(), msgspec.json.encode(name), value))
        self._written.add(name)

    def _between(self) -> bytes:
        return _SEPARATOR if self._written else b"{\n  "

    def events(self, text: bytes, _count: int) -> None:
        """Events as JSON objects with commas between them."""
        if not text:
            return
        self._write(_SEPARATOR if self._is_in_events else self._begin_events())
        self._write(text)

    def _begin_events(self) -> bytes:
        self._is_in_events = True
        return self._between() + b'"traceEvents": [\n  '

    def end(self) -> None:
        """The end of the events, and the keys that came after their begin."""
        if not self._is_in_events:
            self._write(self._begin_events())
        self._write(b"\n  ]")
        for name, value in self._later.items():
            if name not in self._written:
                self._write(b"%b%b: %b" % (_SEPARATOR, msgspec.json.encode(name), value))
        self._write(b"\n}\n")


@contextmanager
def new_trace(output: Path, source: str | os.PathLike[str]) -> Iterator[TraceFile]:
    """A trace file to write to, packed with gzip if its name ends in `.gz`.

    Raises:
        UsageError: `output` is what is read, or nothing that a trace can be written to.
        SelftimeError: It cannot be written.
    """
    with new_file(output, source) as write:
        trace = TraceFile(write)
        yield trace
        trace.end()


def write_bytes(output: Path, source: str | os.PathLike[str], data: bytes) -> None:
    """Write a file that is no trace in JSON, such as a snapshot, as `new_trace` writes one.

    Raises:
        UsageError: `output` is what is read, or nothing that can be written to.
        SelftimeError: It cannot be written.
    """
    with new_file(output, source) as write:
        write(data)


@contextmanager
def new_file(output: Path, source: str | os.PathLike[str]) -> Iterator["NewFile"]:
    """What takes the bytes of a file as they come, packed with gzip if its name ends in `.gz`.

    Raises:
        UsageError: `output` is what is read, or nothing that can be written to.
        SelftimeError: It cannot be written.
    """
    with told_in_a_sentence(output):
        _check(output, source)
        with open_output(output) as file:
            counted = _Counted(file)
            with _packed(counted, output) as packed:
                yield NewFile(output, packed, counted)


class NewFile:
    """A file that is being written: it is called with its bytes."""

    def __init__(self, output: Path, packed: "_Writable", counted: "_Counted") -> None:
        self._output = output
        self._packed = packed
        self._counted = counted

    def __call__(self, text: bytes) -> None:
        with told_in_a_sentence(self._output):
            self._packed.write(text)

    @property
    def size(self) -> int:
        """Bytes of the file, once it is whole."""
        return self._counted.count


class _Writable(Protocol):
    def write(self, data: bytes, /) -> object: ...


class _Counted:
    """Counts the bytes that are written: a pipe does not tell how many it took."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.count = 0

    def write(self, data: bytes, /) -> int:
        self.count += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


def _check(output: Path, source: str | os.PathLike[str]) -> None:
    if output.exists() and Path(source).exists() and output.samefile(source):
        raise UsageError(f"`{output}` is the trace itself; name another file with `-o`")
    if output.is_dir():
        raise UsageError(f"`{output}` is a folder; name a file in it with `-o`")
    if output.suffix == ".zst":
        raise UsageError(f"`{output}` would be zstd; name it .json or .json.gz with `-o`")


@contextmanager
def _packed(file: _Counted, output: Path) -> Iterator[_Writable]:
    """No name and no time go into gzip's header, so that equal traces are equal files."""
    if output.suffix != ".gz":
        yield file
        return
    packing: Any = igzip.IGzipFile
    with packing("", "wb", _LEVEL, file, 0) as packed:
        yield packed
