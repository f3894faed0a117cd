"""Which threads take turns, so that what they do is one serial program."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from selftime.intervals import Intervals, intersect, length, union

__all__ = ["taking_turns"]

_TURNS: Final = 0.1
"""Threads that work at once for less than this share of the lesser one's time take turns.

Autograd's thread works while the one that called `backward` waits for it.
"""


def taking_turns(busy: Mapping[int, Intervals]) -> dict[int, int]:
    """The part of each thread by its number, 0 for that of the busiest.

    Args:
        busy: When each thread works. One that never does belongs to the busiest.
    """
    parts: list[Intervals] = []
    found: dict[int, int] = {}
    for thread in sorted(busy, key=lambda t: (-length(busy[t]), t)):
        own = busy[thread]
        for number, others in enumerate(parts):
            if length(intersect(own, others)) <= _TURNS * min(length(own), length(others)):
                starts = np.concatenate([others.starts, own.starts])
                parts[number] = union(starts, np.concatenate([others.ends, own.ends]))
                found[thread] = number
                break
        else:
            found[thread] = len(parts)
            parts.append(own)
    return found
