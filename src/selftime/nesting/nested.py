"""What is found of how slices lie within each other."""

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["BLEED", "NONE", "Bools", "Ints", "Nesting"]

BLEED: Final = 1_000
"""Rounding of microseconds makes neighbours cross by up to this many ns."""

NONE: Final = -1
"""No such slice."""

Ints: TypeAlias = NDArray[np.signedinteger[Any]]
Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Nesting:
    """For each slice, in the order given: clipped times, parent's position, depth, self time."""

    start: Ints
    end: Ints
    parent: Ints
    depth: Ints
    self_time: Ints
