"""Whether a file looks like a trace by its first bytes: folders hold other JSON as well."""

import zlib
from pathlib import Path
from typing import Final

import zstandard
from isal import isal_zlib

from selftime.ingest.text.sniff import container

_HEAD: Final = 1 << 14
"""Bytes of the file that are read."""
_TEXT: Final = 1 << 18
"""Bytes of text that they are inflated to at most: a description of devices may come first."""
_KEYS: Final = (b'"traceEvents"', b'"schemaVersion"')
_RECORDED: Final = (b'"schemaVersion"', b'"distributedInfo"', b'"deviceProperties"')
_PHASE: Final = b'"ph"'
_GZIP: Final = 31  # zlib's window bits for a gzip header and footer
_ISAL_ERROR: Final[type[Exception]] = isal_zlib.error  # type: ignore[assignment]  # its stub says an instance


def looks_like_trace(path: Path) -> bool:
    """Whether the file begins as the JSON of a profiler does, plain or compressed."""
    text = _beginning(path)
    if text.startswith(b"["):
        return _PHASE in text
    return text.startswith(b"{") and any(key in text for key in _KEYS)


def looks_recorded(path: Path) -> bool:
    """Whether it begins as PyTorch's profiler begins: others write such events too, as XProf."""
    text = _beginning(path)
    return text.startswith(b"{") and any(key in text for key in _RECORDED)


def _beginning(path: Path) -> bytes:
    """The first text of a file; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            return _inflated(file.read(_HEAD)).lstrip()
    except (OSError, zlib.error, _ISAL_ERROR, zstandard.ZstdError):
        return b""


def _inflated(head: bytes) -> bytes:
    match container(head):
        case "gzip":
            return bytes(isal_zlib.decompressobj(wbits=_GZIP).decompress(head, _TEXT))
        case "zstd":
            return zstandard.ZstdDecompressor().stream_reader(head).read(_TEXT)
    return head
