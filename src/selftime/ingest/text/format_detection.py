"""Detects a file's format from its first bytes, never from its name."""

import codecs
import zlib
from pathlib import Path
from typing import Final

import zstandard
from isal import isal_zlib

from selftime.ingest.perfetto.protobuf_messages import is_perfetto_trace

_BYTES_READ_TO_DETECT_FORMAT: Final = 1 << 14
"""Number of bytes from the start of a file in which its format is detected."""
_MAX_TEXT_BYTES_TO_DETECT_FORMAT: Final = 1 << 18
"""Largest number of bytes of decompressed text in which the format is detected; a long device
description may come first.
"""
_TOP_LEVEL_KEYS_OF_ANY_TRACE: Final = (b'"traceEvents"', b'"schemaVersion"')
_TOP_LEVEL_KEYS_OF_TORCH_TRACE: Final = (
    b'"schemaVersion"',
    b'"distributedInfo"',
    b'"deviceProperties"',
)
_EVENT_PHASE_KEY: Final = b'"ph"'
_ZLIB_WINDOW_BITS_FOR_GZIP: Final = 31  # zlib's window bits for a gzip header and footer
_ISAL_ERROR: Final[type[Exception]] = isal_zlib.error  # type: ignore[assignment]  # its stub says an instance

MAGIC_BYTES_BY_COMPRESSION: Final = {"gzip": b"\x1f\x8b\x08", "zstd": b"\x28\xb5\x2f\xfd"}
"""Maps each compression format to the first bytes of its files; gzip's include its only method, 8.
"""
_DESCRIPTIONS_BY_MAGIC_BYTES: Final = (
    (b"PK\x03\x04", "a zip archive: unpack it and give the trace inside"),
    (
        MAGIC_BYTES_BY_COMPRESSION["gzip"],
        "compressed twice: decompress it once and give the result",
    ),
    (
        MAGIC_BYTES_BY_COMPRESSION["zstd"],
        "compressed twice: decompress it once and give the result",
    ),
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
_STRINGS_IN_NSIGHT_REPORTS: Final = (
    b"NVIDIA Nsight",
    b"Nsight Systems",
    b"NsightSystems",
    b"QdstrmImporter",
)
"""Strings that occur near the start of every report of Nsight Systems."""
_XLA_PLANE_PREFIXES: Final = (b"/host:", b"/device:", b"/task:")
"""Prefixes of plane names by which a profile of TensorFlow or XLA is recognised."""
_SINGLE_VALUE_DESCRIPTION: Final = (
    "a single JSON value with no events: give a trace of PyTorch's profiler"
)
_NOT_JSON_DESCRIPTION: Final = "not JSON: give a trace that PyTorch's profiler wrote"
_BINARY_DESCRIPTION: Final = "a binary file: give the trace as JSON"
_PROTOBUF_DESCRIPTION: Final = (
    "a protobuf, perhaps Perfetto's, which is not supported: give the trace as JSON"
)
_DESCRIPTIONS_OF_NO_KNOWN_FORMAT: Final = (
    _NOT_JSON_DESCRIPTION,
    _BINARY_DESCRIPTION,
    _PROTOBUF_DESCRIPTION,
)
_FILE_NAME_ENDS_OF_PERFETTO: Final = (".pftrace", ".perfetto-trace")
_MAX_PICKLE_PROTOCOL_BYTE: Final = b"\x0f"
"""The largest byte that is accepted as the protocol number of a pickle."""
_FIRST_BYTES_OF_HTML: Final = (b"<!doctype html", b"<html")
_WHITESPACE: Final = b" \t\r\n"
_JSON_OPENING_BRACKETS: Final = (b"{", b"[")
_BYTE_ORDER_MARKS_AND_CODECS: Final = (  # the longer marks first, for one begins with another
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_FIRST_BYTES_OF_JSON_SCALARS: Final = (
    b"null",
    b"true",
    b"false",
    b'"',
    b"-",
    *(b"%d" % digit for digit in range(10)),
)


def looks_like_trace(path: Path) -> bool:
    """Returns whether a file, perhaps compressed, begins like a profiler's JSON trace."""
    text = read_decompressed_start(path)
    if text.startswith(b"["):
        return _EVENT_PHASE_KEY in text
    return text.startswith(b"{") and any(key in text for key in _TOP_LEVEL_KEYS_OF_ANY_TRACE)


def looks_like_torch_trace(path: Path) -> bool:
    """Returns whether a file begins like a JSON trace that PyTorch's profiler wrote."""
    text = read_decompressed_start(path)
    return text.startswith(b"{") and any(key in text for key in _TOP_LEVEL_KEYS_OF_TORCH_TRACE)


def read_decompressed_start(path: Path) -> bytes:
    """Returns the decompressed start of a file's text; empty if the file cannot be read."""
    try:
        with path.open("rb") as file:
            return _decompress_file_start(file.read(_BYTES_READ_TO_DETECT_FORMAT)).lstrip()
    except (OSError, zlib.error, _ISAL_ERROR, zstandard.ZstdError):
        return b""


def _decompress_file_start(file_start: bytes) -> bytes:
    match compression_format(file_start):
        case "gzip":
            return bytes(
                isal_zlib.decompressobj(wbits=_ZLIB_WINDOW_BITS_FOR_GZIP).decompress(
                    file_start, _MAX_TEXT_BYTES_TO_DETECT_FORMAT
                )
            )
        case "zstd":
            return (
                zstandard.ZstdDecompressor()
                .stream_reader(file_start)
                .read(_MAX_TEXT_BYTES_TO_DETECT_FORMAT)
            )
    return file_start


def compression_format(file_start: bytes) -> str:
    """Returns how a file is compressed, `gzip` or `zstd`, from its first bytes; else empty."""
    return next(
        (
            name
            for name, magic in MAGIC_BYTES_BY_COMPRESSION.items()
            if file_start.startswith(magic)
        ),
        "",
    )


def utf16_or_utf32_codec(file_start: bytes) -> str:
    """Returns the codec of a UTF-16 or UTF-32 text, with or without a BOM; else empty."""
    for mark, codec in _BYTE_ORDER_MARKS_AND_CODECS:
        if file_start.startswith(mark):
            return codec
    if file_start[:1] in _JSON_OPENING_BRACKETS and file_start[1:2] == b"\x00":
        return "utf-32-le" if file_start[2:4] == b"\x00\x00" else "utf-16-le"
    if file_start[:1] == b"\x00" and file_start[1:2] in _JSON_OPENING_BRACKETS:
        return "utf-16-be"
    return ""


def is_pickle(file_start: bytes) -> bool:
    """Returns whether the first bytes of a file are those of a pickle of protocol 2 or later."""
    return file_start[:1] == b"\x80" and b"\x02" <= file_start[1:2] <= _MAX_PICKLE_PROTOCOL_BYTE


def description_of_other_format(file_start: bytes) -> str:
    """Returns the end of an error message that says what a file is; empty if it is JSON."""
    for magic, description in _DESCRIPTIONS_BY_MAGIC_BYTES:
        if file_start.startswith(magic):
            return description
    text = file_start.lstrip(_WHITESPACE)
    if text.lower().startswith(_FIRST_BYTES_OF_HTML):
        return "an HTML page, not a trace: download the file itself"
    if text[:1] in (b"{", b"["):
        return "a Python repr, not JSON: write it with `json.dump`" if _is_python_repr(text) else ""
    if text.startswith(_FIRST_BYTES_OF_JSON_SCALARS):
        return _SINGLE_VALUE_DESCRIPTION
    return _description_of_binary_format(file_start) or _NOT_JSON_DESCRIPTION


def damaged_perfetto_reason(path: str, file_start: bytes) -> str:
    """Returns why a file cannot be read that only its name says to be Perfetto's; else empty.

    The name is asked only where the content is of no known format.
    """
    name = path.lower().removesuffix(".gz").removesuffix(".zst")
    if not name.endswith(_FILE_NAME_ENDS_OF_PERFETTO) or not file_start.strip():
        return ""
    if description_of_other_format(file_start) not in _DESCRIPTIONS_OF_NO_KNOWN_FORMAT:
        return ""
    return (
        "its name says that it is in Perfetto's format, but no packet of that format begins at"
        " byte 0: the file is damaged, or is something else; copy or export it again"
    )


def is_generic_format_description(description: str) -> bool:
    """Returns whether a description says only that a file is no trace and names no format."""
    return description in (_SINGLE_VALUE_DESCRIPTION, _NOT_JSON_DESCRIPTION)


def _description_of_binary_format(file_start: bytes) -> str:
    """Returns the end of an error message that names a file's binary format; empty for text."""
    if is_perfetto_trace(file_start):
        return "in Perfetto's format: make JSON of it with `selftime export --to chrome`"
    if any(sign in file_start for sign in _STRINGS_IN_NSIGHT_REPORTS):
        return "a report of Nsight Systems: give a PyTorch trace"
    if file_start[:1] == b"\n" and any(plane in file_start for plane in _XLA_PLANE_PREFIXES):
        return "a profile of TensorFlow or XLA (XSpace): give a PyTorch trace in JSON"
    if file_start[:1] == b"\n":
        return _PROTOBUF_DESCRIPTION
    return _BINARY_DESCRIPTION if b"\x00" in file_start[:64] else ""


def _is_python_repr(text: bytes) -> bool:
    return text.lstrip(_WHITESPACE + b"[{").startswith(b"'")
