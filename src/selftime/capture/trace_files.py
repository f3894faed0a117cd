"""Trace files: whole or not there, with our facts inside, never on top of another's.

Facts are added to the recorder's JSON as one more top-level key, which other viewers ignore. The
text is copied in pieces; it may be larger than memory.
"""

import json
import math
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from isal import igzip

from selftime import output_file
from selftime.errors import RecordingError

PIECE: Final = 1 << 20
"""Bytes copied at a time."""

TAIL: Final = 1 << 16
"""Bytes in which the recorder's JSON ends: its last key and brace."""


def write(body: Path, path: str | os.PathLike[str], facts: Mapping[str, Any]) -> None:
    """Copy the recorder's JSON to `path` with `facts` inside; gzip if the name ends in `.gz`."""
    final = local_path(path)
    if not body.exists():
        raise RecordingError(
            f"the recorder could not write its own file into `{body.parent.parent}`; "
            "free space there, or set TMPDIR to another place, and record again"
        )
    with body.open("rb") as source, _opened(final) as file:
        size = source.seek(0, os.SEEK_END)
        start = source.seek(max(0, size - TAIL))
        tail = source.read().rstrip()
        if not tail.endswith(b"}"):
            raise RecordingError(
                f"the recorder's own file ends early, so `{final}` was not written; "
                f"free space in `{body.parent.parent}` and record again"
            )
        tail = tail.replace(_name(body), _name(final))
        added = json.dumps(_plain(facts), allow_nan=False, separators=(",", ":"))
        source.seek(0)
        with _packed(file, final) as target:
            _copy(source, target, start)
            target.write(tail[:-1] + b', "selftime": ' + added.encode() + b"}\n")


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file of text, such as stacks."""
    with _opened(local_path(path)) as file:
        file.write(text.encode())


def local_path(path: str | os.PathLike[str]) -> Path:
    """The path, if traces can be written there."""
    text = os.fspath(path)
    if "://" in text:
        raise RecordingError(f"`{text}` is not a local path; write the trace here and upload it")
    final = Path(text)
    if not final.parent.is_dir():
        raise RecordingError(f"the folder `{final.parent}` does not exist; create it first")
    return final


def make_folder(folder: Path) -> None:
    """The folder and those around it, unless they are there."""
    try:
        output_file.make_folder(folder)
    except FileExistsError:
        raise RecordingError(
            f"`{folder}` is a file, and traces go into a folder; choose another place"
        ) from None
    except OSError as error:
        raise RecordingError(
            f"the folder `{folder}` cannot be made: {error.strerror}; choose another place"
        ) from None


def run_name(rank: int | None) -> str:
    """A recording's file name: host, rank where there is one, process, time."""
    parts = [socket.gethostname(), f"rank{rank}" if rank is not None else ""]
    parts += [str(os.getpid()), time.strftime("%Y%m%d-%H%M%S")]
    return "_".join(part for part in parts if part) + ".pt.trace.json.gz"


def free_path(folder: Path, name: str) -> Path:
    """A path in `folder` that nothing has: `name`, or `name` with a number before its suffix."""
    path, number = folder / name, 1
    stem, dot, suffix = name.partition(".")
    while path.exists():
        path, number = folder / f"{stem}-{number}{dot}{suffix}", number + 1
    return path


def _name(path: Path) -> bytes:
    return f'"traceName": {json.dumps(str(path), ensure_ascii=False)}'.encode()


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with output_file.open_output(path) as file:
            yield file
    except OSError as error:
        reason = error.strerror or str(error)
        raise RecordingError(
            f"`{path}` cannot be written: {reason}; choose another place"
        ) from None


@contextmanager
def _packed(file: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    if path.suffix != ".gz":
        yield file
        return
    packing: Any = igzip.IGzipFile
    with packing("", "wb", fileobj=file) as packed:
        yield packed


def _copy(source: IO[bytes], target: IO[bytes], size: int) -> None:
    while size > 0:
        piece = source.read(min(PIECE, size))
        target.write(piece)
        size -= len(piece)


def _plain(value: Any) -> Any:
    """The value as JSON can hold it: a number that is not finite is unknown."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        # Long columns hold integers and text only; they need no copy.
        return value if len(value) > 1000 else [_plain(item) for item in value]
    return value
