"""What is found of how slices lie within each other."""

from dataclasses import dataclass
from typing import Final

from selftime.arrays import SignedInts

BLEED: Final = 1_000
"""Rounding of microseconds makes neighbours cross by up to this many ns."""

NONE: Final = -1
"""No such slice."""


@dataclass(frozen=True, slots=True)
class Nesting:
    """For each slice, in the order given: clipped times, parent's position, depth, self time."""

    start: SignedInts
    end: SignedInts
    parent: SignedInts
    depth: SignedInts
    self_time: SignedInts
