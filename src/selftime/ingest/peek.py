"""Whether a file begins as PyTorch's profiler begins its traces: a few kilobytes tell."""

from itertools import islice
from pathlib import Path
from typing import Final

from selftime.ingest.source import Source

__all__ = ["is_recording"]

_HEAD: Final = 8192
"""Bytes of text that are looked at."""
_SIGNS: Final = (b'"schemaVersion"', b'"distributedInfo"', b'"deviceProperties"')
"""Keys that the profiler writes before the events, and no other program that writes such events."""


def is_recording(place: str) -> bool:
    """Whether a file is a trace by its beginning; False for one that cannot be read."""
    try:
        with Path(place).open("rb") as file:
            head = b"".join(islice(Source(file, None).blocks(), 1))[:_HEAD]
    except OSError:
        return False
    return head.lstrip()[:1] == b"{" and any(sign in head for sign in _SIGNS)
