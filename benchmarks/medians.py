"""The middle of what was measured, and how sure it is."""

import math
import statistics
from collections.abc import Sequence

__all__ = ["interval", "middle"]


def middle(values: Sequence[float | None]) -> float | None:
    """The median of what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Between which of the sorted values their median lies: the sign test, turned round.

    Of n values, fewer than k lie below the median with the probability of so few heads in n throws
    of a coin. With few values the whole range is told, and holds with what confidence it can.
    """
    ordered = sorted(values)
    count, below, chance = len(ordered), 0, 0.0
    while True:
        chance += math.comb(count, below) / 2**count
        if chance > (1 - confidence) / 2 or below >= count // 2:
            break
        below += 1
    return ordered[max(below - 1, 0)], ordered[min(count - below, count - 1)]
