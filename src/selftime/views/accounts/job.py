"""A process's place in its job, as the recording tells it."""

from typing import NamedTuple

from selftime.trace import Trace

__all__ = ["Place", "place"]


class Place(NamedTuple):
    """Which process of how many; None where the recording does not tell."""

    rank: int | None = None
    size: int | None = None


def place(trace: Trace) -> Place:
    """Rank and number of processes, from `distributedInfo`; a size that cannot be is unknown."""
    told = trace.metadata.get("distributedInfo")
    if not isinstance(told, dict):
        return Place()
    rank, size = _whole(told.get("rank")), _whole(told.get("world_size"))
    return Place(rank, size if size and size > (rank or 0) else None)


def _whole(value: object) -> int | None:
    """A number from 0, written as one or as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and value >= 0 else None  # type: ignore[operator,return-value]  # an integer
