"""What was found in a file that should not be there, or that is worth knowing."""

from typing import Final, NamedTuple

HOLE: Final = b"\x00\xff\x00\xff\n"
"""Stands in the text where some of it could not be decompressed: nothing goes on across it.

No byte of 255 is in any UTF-8, and no byte of 0 in any JSON string: what it is in cannot be read.
"""


class Fault(NamedTuple):
    """One thing that is wrong with a file, where, and what it cost."""

    fault: str
    offset: int = -1
    """The byte in the decompressed text; negative if it is not known."""
    lost: int = 0
    """Events that could not be kept."""
    example: str | None = None
    note: bool = False
    """Whether it is only worth knowing: nothing is damaged by it."""
    ruin: bool = False
    """Whether nothing can be concluded from a trace with it."""


class Tally(NamedTuple):
    """How often one thing is odd in the events of a file, of which none is lost by it."""

    fault: str
    times: int
    note: bool = False
