"""A trace written anew in Kineto's layout: its keys, its events one a line, the keys behind them.

The text is written as it comes, so a trace may be larger than memory. The file appears when it is
whole, in the place of one that may be there, or not at all.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import msgspec
from isal import igzip

from selftime.errors import SelftimeError, UsageError

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
def new_file(output: Path, source: str | os.PathLike[str]) -> Iterator[Callable[[bytes], None]]:
    """What takes the bytes of a file as they come, packed with gzip if its name ends in `.gz`.

    Raises:
        UsageError: `output` is what is read, or nothing that can be written to.
        SelftimeError: It cannot be written.
    """
    _check(output, source)
    try:
        with _replacing(output) as temporary, _opened(temporary, output) as file:

            def write(text: bytes) -> None:
                try:
                    file.write(text)
                except OSError as error:
                    raise _unwritable(output, error) from error

            yield write
    except OSError as error:
        raise _unwritable(output, error) from error


def _unwritable(output: Path, error: OSError) -> SelftimeError:
    why = error.strerror or error
    return SelftimeError(f"`{output}` cannot be written: {why}; choose another place with `-o`")


def _check(output: Path, source: str | os.PathLike[str]) -> None:
    if output.exists() and Path(source).exists() and output.samefile(source):
        raise UsageError(f"`{output}` is the trace itself; name another file with `-o`")
    if output.is_dir():
        raise UsageError(f"`{output}` is a folder; name a file in it with `-o`")
    if output.suffix == ".zst":
        raise UsageError(f"`{output}` would be zstd; name it .json or .json.gz with `-o`")


@contextmanager
def _replacing(output: Path) -> Iterator[Path]:
    """A file beside `output` that takes its place when all went well."""
    number, name = tempfile.mkstemp(dir=output.parent, prefix=".selftime-")
    os.close(number)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(output)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def _opened(temporary: Path, output: Path) -> Iterator[IO[bytes]]:
    """No name and no time go into gzip's header, so that equal traces are equal files."""
    with temporary.open("wb") as file:
        if output.suffix != ".gz":
            yield file
            return
        packing: Any = igzip.IGzipFile
        with packing("", "wb", _LEVEL, file, 0) as packed:
            yield packed
