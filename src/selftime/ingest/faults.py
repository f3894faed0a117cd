"""What was found in a file that should not be there, or that is worth knowing."""

from typing import NamedTuple

__all__ = ["Fault"]


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
