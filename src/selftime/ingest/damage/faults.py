"""Faults of a file, and facts about it that are worth noting."""

from typing import Final, NamedTuple

HOLE_MARK: Final = b"\x00\xff\x00\xff\n"
"""Marks a place in the text where some of it could not be decompressed.

UTF-8 has no byte 255 and a JSON string no byte 0, so an event that contains the mark is invalid.
"""


class Fault(NamedTuple):
    """One fault of a file: what is wrong, where, and how many events it cost."""

    fault: str
    offset: int = -1
    """The fault's byte offset in the decompressed text; negative if unknown."""
    lost: int = 0
    """The number of events that were lost."""
    example: str | None = None
    note: bool = False
    """Whether this is only a note: it damages nothing."""
    ruin: bool = False
    """Whether the fault makes every conclusion from the trace invalid."""


class Tally(NamedTuple):
    """How often an oddity occurs in the events of a file; it costs no event."""

    fault: str
    times: int
    note: bool = False
