"""Writes trace files completely or not at all, with selftime's data under the key `selftime`.

The facts are one more top-level key, `selftime`, in the profiler's JSON, which other viewers
ignore. The text is copied in chunks since it may be larger than memory.
"""

import json
import math
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from isal import igzip

from selftime import output_file
from selftime.capture.trace_file.base_time import with_base_time_first
from selftime.capture.trace_file.non_utf8_files import escape_non_utf8
from selftime.errors import RecordingError

COPY_CHUNK_BYTES: Final = 1 << 20
"""Number of bytes that are copied at once."""

TRACE_TAIL_BYTES: Final = 1 << 16
"""Number of bytes at the end of the profiler's JSON in which its last key is searched."""


def write_trace_with_facts(
    body: Path,
    path: str | os.PathLike[str],
    facts: Mapping[str, Any],
    corrected: Callable[[Iterable[bytes]], Iterable[bytes]] = iter,
) -> None:
    """Writes the profiler's JSON with selftime's data (`facts`) to `path`; `.gz` compresses it.

    Args:
        body: The JSON file that the profiler wrote.
        path: The file to write.
        facts: Value of the added key `selftime`.
        corrected: Corrects the text, given and returned in chunks.

    Raises:
        RecordingError: `body` is missing or incomplete, or `path` cannot be written.
    """
    final = checked_local_path(path)
    if not body.exists():
        raise RecordingError(
            f"the recorder could not write its own file into `{body.parent.parent}`; "
            "free space there, or set TMPDIR to another place, and record again"
        )
    with body.open("rb") as source, _open_output_file(final) as file:
        size = source.seek(0, os.SEEK_END)
        start = source.seek(max(0, size - TRACE_TAIL_BYTES))
        tail = source.read().rstrip()
        if not tail.endswith(b"}"):
            raise RecordingError(
                f"the recorder's own file ends early, so `{final}` was not written; "
                f"free space in `{body.parent.parent}` and record again"
            )
        tail = tail.replace(_json_entry_of_trace_name(body), _json_entry_of_trace_name(final))
        added = json.dumps(_as_json_value(facts), allow_nan=False, separators=(",", ":"))
        source.seek(0)
        with _open_compressor(file, final) as target:
            chunks = with_base_time_first(_read_file_chunks(source, start), tail[:-1])
            for chunk in corrected(chunks):
                target.write(chunk)
            target.write(b', "selftime": ' + added.encode() + b"}\n")


def write_text_file(path: str | os.PathLike[str], text: str) -> None:
    """Writes text, such as stacks for a flame graph, to a file.

    Raises:
        RecordingError: `path` cannot be written.
    """
    with _open_output_file(checked_local_path(path)) as file:
        file.write(text.encode())


def checked_local_path(path: str | os.PathLike[str]) -> Path:
    """Returns `path` as a `Path`; raises an error if it is a URL or its folder does not exist.

    Raises:
        RecordingError: It is a URL, or its folder does not exist.
    """
    text = os.fspath(path)
    if "://" in text:
        raise RecordingError(f"`{text}` is not a local path; write the trace here and upload it")
    final = Path(text)
    if not final.parent.is_dir():
        raise RecordingError(f"the folder `{final.parent}` does not exist; create it first")
    return final


def make_trace_folder(folder: Path) -> None:
    """Makes a folder and its parents if they do not exist; raises a RecordingError on failure.

    Raises:
        RecordingError: It is a file, or cannot be made.
    """
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


def check_trace_folder(folder: Path) -> None:
    """Raises a RecordingError if traces cannot be written to a folder, which may not exist yet.

    Raises:
        RecordingError: It, or the nearest of its parents that exists, is a file, or a folder in
            which the folder cannot be made.
    """
    nearest = next((p for p in (folder, *folder.absolute().parents) if p.exists()), folder)
    if not (nearest.is_dir() and os.access(nearest, os.W_OK)):
        make_trace_folder(folder)  # says why


def trace_file_name(rank: int | None) -> str:
    """Returns a file name for a new trace, made of host, rank if any, process id and time."""
    parts = [socket.gethostname(), f"rank{rank}" if rank is not None else ""]
    parts += [str(os.getpid()), time.strftime("%Y%m%d-%H%M%S")]
    return "_".join(part for part in parts if part) + ".pt.trace.json.gz"


def unused_trace_path(folder: Path, name: str) -> Path:
    """Returns the path of a new file in a folder; adds a number if the name is already used."""
    path, number = folder / name, 1
    stem, dot, suffix = name.partition(".")
    while path.exists():
        path, number = folder / f"{stem}-{number}{dot}{suffix}", number + 1
    return path


def _json_entry_of_trace_name(path: Path) -> bytes:
    return f'"traceName": {json.dumps(escape_non_utf8(str(path)), ensure_ascii=False)}'.encode()


@contextmanager
def _open_output_file(path: Path) -> Iterator[IO[bytes]]:
    try:
        with output_file.open_output(path) as file:
            yield file
    except OSError as error:
        reason = error.strerror or str(error)
        raise RecordingError(
            f"`{path}` cannot be written: {reason}; choose another place"
        ) from None


@contextmanager
def _open_compressor(file: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    if path.suffix != ".gz":
        yield file
        return
    gzip_file: Any = igzip.IGzipFile
    with gzip_file("", "wb", fileobj=file) as compressed:
        yield compressed


def _read_file_chunks(source: IO[bytes], size: int) -> Iterator[bytes]:
    while size > 0:
        chunk = source.read(min(COPY_CHUNK_BYTES, size))
        yield chunk
        size -= len(chunk)


def _as_json_value(value: Any) -> Any:
    """Returns `value` with NaN and infinity replaced by None, and text made valid UTF-8."""
    if isinstance(value, str):
        return escape_non_utf8(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {escape_non_utf8(str(key)): _as_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        # Long lists are columns of integers and text: no conversion needed.
        return value if len(value) > 1000 else [_as_json_value(item) for item in value]
    return value
