"""Detect a file's format from its first bytes, never from its name."""

import codecs
import zlib
from pathlib import Path
from typing import Final

import zstandard
from isal import isal_zlib

from selftime.ingest.perfetto.messages import is_perfetto

_HEAD: Final = 1 << 14
"""Bytes read from the start of a file."""
_TEXT: Final = 1 << 18
"""The most bytes of text they are decompressed to: a long device description may come first."""
_KEYS: Final = (b'"traceEvents"', b'"schemaVersion"')
_RECORDED: Final = (b'"schemaVersion"', b'"distributedInfo"', b'"deviceProperties"')
_PHASE: Final = b'"ph"'
_GZIP: Final = 31  # zlib's window bits for a gzip header and footer
_ISAL_ERROR: Final[type[Exception]] = isal_zlib.error  # type: ignore[assignment]  # its stub says an instance

MAGIC: Final = {"gzip": b"\x1f\x8b\x08", "zstd": b"\x28\xb5\x2f\xfd"}
"""Magic bytes of each compressed format; gzip's include its only method, 8."""
_FOREIGN: Final = (
    (b"PK\x03\x04", "a zip archive: unpack it and give the trace inside"),
    (MAGIC["gzip"], "compressed twice: decompress it once and give the result"),
    (MAGIC["zstd"], "compressed twice: decompress it once and give the result"),
    (b"BZh", "compressed by bzip2: decompress it and give the result"),
    (b"\xfd7zXZ\x00", "compressed by xz: decompress it and give the result"),
    (
        b"SQLite format 3",
        "an SQLite file, such as Nsight Systems exports: give a PyTorch trace",
    ),
    (b"version https://git-lfs", "a Git LFS pointer, not the trace: run `git lfs pull`"),
    (b"PAR1", "a Parquet file: give the trace itself"),
    (b"ARROW1", "an Arrow file: give the trace itself"),
)
_NSIGHT: Final = (b"NVIDIA Nsight", b"Nsight Systems", b"NsightSystems", b"QdstrmImporter")
"""Strings near the start of a report of Nsight Systems."""
_XLA_PLANES: Final = (b"/host:", b"/device:", b"/task:")
"""Name prefixes of the planes in a profile of TensorFlow or XLA."""
_ONE_VALUE: Final = "a single JSON value with no events: give a trace of PyTorch's profiler"
_NO_JSON: Final = "not JSON: give a trace that PyTorch's profiler wrote"
_LAST_PROTOCOL: Final = b"\x0f"
"""The largest byte that is taken for a pickle protocol; none that high exists yet."""
_HTML: Final = (b"<!doctype html", b"<html")
_BLANK: Final = b" \t\r\n"
_OPENING: Final = (b"{", b"[")
_WIDE: Final = (  # the longer marks first, for one begins with another
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_VALUE: Final = (b"null", b"true", b"false", b'"', b"-", *(b"%d" % digit for digit in range(10)))


def looks_like_trace(path: Path) -> bool:
    """Returns whether the file begins like a profiler's JSON, plain or compressed."""
    text = _beginning(path)
    if text.startswith(b"["):
        return _PHASE in text
    return text.startswith(b"{") and any(key in text for key in _KEYS)


def looks_like_torch_trace(path: Path) -> bool:
    """Returns whether the file begins like a trace of PyTorch's profiler, unlike XProf's."""
    text = _beginning(path)
    return text.startswith(b"{") and any(key in text for key in _RECORDED)


def _beginning(path: Path) -> bytes:
    """Returns the first decompressed text of a file; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            return _inflated(file.read(_HEAD)).lstrip()
    except (OSError, zlib.error, _ISAL_ERROR, zstandard.ZstdError):
        return b""


def _inflated(head: bytes) -> bytes:
    match compression_of(head):
        case "gzip":
            return bytes(isal_zlib.decompressobj(wbits=_GZIP).decompress(head, _TEXT))
        case "zstd":
            return zstandard.ZstdDecompressor().stream_reader(head).read(_TEXT)
    return head


def compression_of(head: bytes) -> str:
    """Returns `gzip` or `zstd`; empty for anything else."""
    return next((name for name, magic in MAGIC.items() if head.startswith(magic)), "")


def wide_encoding(head: bytes) -> str:
    """Returns the codec of a UTF-16 or UTF-32 text, with or without a BOM; else empty."""
    for mark, codec in _WIDE:
        if head.startswith(mark):
            return codec
    if head[:1] in _OPENING and head[1:2] == b"\x00":
        return "utf-32-le" if head[2:4] == b"\x00\x00" else "utf-16-le"
    if head[:1] == b"\x00" and head[1:2] in _OPENING:
        return "utf-16-be"
    return ""


def is_pickle(head: bytes) -> bool:
    """Returns whether a decompressed file is a pickle (protocol 2 or later): a memory snapshot."""
    return head[:1] == b"\x80" and b"\x02" <= head[1:2] <= _LAST_PROTOCOL


def foreign_format(head: bytes) -> str:
    """Returns what a file that is not JSON is, to end a sentence; empty if it may be JSON."""
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            return what
    text = head.lstrip(_BLANK)
    if text.lower().startswith(_HTML):
        return "an HTML page, not a trace: download the file itself"
    if text[:1] in (b"{", b"["):
        return "a Python repr, not JSON: write it with `json.dump`" if _is_repr(text) else ""
    if text.startswith(_VALUE):
        return _ONE_VALUE
    return _binary(head) or _NO_JSON


def is_unspecific(what: str) -> bool:
    """Returns whether `foreign_format` found only that the file does not begin like JSON events."""
    return what in (_ONE_VALUE, _NO_JSON)


def _binary(head: bytes) -> str:
    """Returns which binary format the file may be; empty for text."""
    if is_perfetto(head):
        return "in Perfetto's format: make JSON of it with `selftime export --to chrome`"
    if any(sign in head for sign in _NSIGHT):
        return "a report of Nsight Systems: give a PyTorch trace"
    if head[:1] == b"\n" and any(plane in head for plane in _XLA_PLANES):
        return "a profile of TensorFlow or XLA (XSpace): give a PyTorch trace in JSON"
    if head[:1] == b"\n":
        return "a protobuf, perhaps Perfetto's, which is not supported: give the trace as JSON"
    return "a binary file: give the trace as JSON" if b"\x00" in head[:64] else ""


def _is_repr(text: bytes) -> bool:
    return text.lstrip(_BLANK + b"[{").startswith(b"'")
