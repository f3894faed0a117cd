"""What a file is, by its first bytes; never by its name."""

from typing import Final

__all__ = ["container", "foreign", "is_pickle"]

_CONTAINERS: Final = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"))

_FOREIGN: Final = (
    (b"PK\x03\x04", "a zip archive: unpack it and give the trace inside"),
    (
        b"SQLite format 3\x00",
        "an SQLite file, such as Nsight Systems exports: give a PyTorch trace",
    ),
    (b"version https://git-lfs", "a Git LFS pointer, not the trace: run `git lfs pull`"),
    (b"PAR1", "a Parquet file: give the trace itself"),
    (b"ARROW1", "an Arrow file: give the trace itself"),
)
_LAST_PROTOCOL: Final = b"\x0f"
"""Later protocols than there are; a byte beyond is no protocol."""
_HTML: Final = (b"<!doctype html", b"<html")
_BLANK: Final = b" \t\r\n"


def container(head: bytes) -> str:
    """`gzip`, `zstd`, or empty for anything else."""
    return next((name for magic, name in _CONTAINERS if head.startswith(magic)), "")


def is_pickle(head: bytes) -> bool:
    """Whether a decompressed file is a pickle of protocol 2 or later, as memory snapshots are."""
    return head[:1] == b"\x80" and b"\x02" <= head[1:2] <= _LAST_PROTOCOL


def foreign(head: bytes) -> str:
    """What a decompressed file is if not JSON, as the end of a sentence; empty if it may be."""
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            return what
    text = head.lstrip(_BLANK)
    if text.lower().startswith(_HTML):
        return "an HTML page, not a trace: download the file itself"
    if text[:1] in (b"{", b"["):
        return "a Python repr, not JSON: write it with `json.dump`" if _is_repr(text) else ""
    if head[:1] == b"\n" or b"\x00" in head[:64]:
        return "a binary file, perhaps a Perfetto or XLA protobuf: give the trace as JSON"
    return "not JSON: give a trace that PyTorch's profiler wrote"


def _is_repr(text: bytes) -> bool:
    return text.lstrip(_BLANK + b"[{").startswith(b"'")
