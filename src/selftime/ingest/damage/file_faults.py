"""Types that describe the faults of a trace file, and oddities that lose no events."""

from typing import Final, NamedTuple

LOST_TEXT_MARK: Final = b"\x00\xff\x00\xff\n"
"""Bytes that stand in the text for a part that could not be decompressed.

UTF-8 has no byte 255 and a JSON string no byte 0, so an event that contains the mark is invalid.
"""


class FileFault(NamedTuple):
    """One fault of a trace file: what is wrong, at which byte, and how many events are lost."""

    fault: str
    offset: int = -1
    """The fault's byte offset in the decompressed text; -1 if unknown."""
    lost: int = 0
    """The number of events that are lost because of the fault."""
    example: str | None = None
    is_note: bool = False
    """Whether this is only a note about something unusual that damages no data."""
    invalidates_trace: bool = False
    """Whether the fault makes every conclusion from the trace invalid."""


class FaultCount(NamedTuple):
    """Something unusual that loses no events, and how many of a file's events have it."""

    fault: str
    times: int
    is_note: bool = False
