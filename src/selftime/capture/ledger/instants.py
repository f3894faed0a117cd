"""Divides what was counted in a segment of the ledger that turned out to be several."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

Instant: TypeAlias = tuple[int, int, dict[str, int]]
"""The start of a segment and a later instant in it, both in ns, and what had been counted in the
segment by then: {activity: ns}."""


def counted_between(instants: Sequence[Instant], total: dict[str, int]) -> list[dict[str, int]]:
    """Returns what was counted until each instant since the one before, and since the last."""
    counted = [{}, *(counted for _, _, counted in instants), total]
    return [
        {part: ns - before.get(part, 0) for part, ns in until.items() if ns != before.get(part, 0)}
        for before, until in pairwise(counted)
    ]
