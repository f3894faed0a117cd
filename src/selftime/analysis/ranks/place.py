"""A process's place in its job, as the recording tells it."""

from typing import NamedTuple

from selftime.names import process_number
from selftime.trace import Trace


class Place(NamedTuple):
    """Which process of how many; None where the recording does not tell."""

    rank: int | None = None
    size: int | None = None


def place(trace: Trace) -> Place:
    """Rank and number of processes, from `distributedInfo`; a size that cannot be is unknown."""
    told = trace.metadata.get("distributedInfo")
    if not isinstance(told, dict):
        return Place()
    rank, size = (process_number(told.get(key)) for key in ("rank", "world_size"))
    return Place(rank, size if size and size > (rank or 0) else None)
