"""Files into which several processes wrote at once: ranks that were given one name for theirs.

Whole events of each come back. Which of them belong together is not known: the numbers that join
launches to kernels, and operators to both, count from the same begin in every process.
"""

from collections import Counter
from typing import Final

from selftime.ingest.damage.faults import Fault
from selftime.ingest.damage.recover import ANOTHER, ELSEWHERE
from selftime.ingest.events.columns import ChunkColumns
from selftime.ingest.events.event import NO_INT

_JOINING: Final = ("correlation", "external_id", "sequence", "python_id", "python_parent")
"""Columns that say what belongs together within one process."""

_SURE: Final = 2
"""Changes of the process where text breaks off that are no accident: one damaged event may stand
between two processes of a merged trace."""


def mixed_fault(faults: list[Fault]) -> Fault | None:
    """That several processes wrote to the file, if its damage shows it."""
    counted = Counter(fault.fault for fault in faults)
    traces = counted[ANOTHER] + 1
    if traces == 1 and counted[ELSEWHERE] < _SURE:
        return None
    who = f"{traces:,} ranks" if traces > 1 else "several ranks"
    return Fault(f"{who} wrote to one file at once: write one file per rank", ruin=True)


def unlink(chunks: list[ChunkColumns]) -> None:
    """Forget the numbers that would join events of different processes."""
    for chunk in chunks:
        for columns in chunk.groups.values():
            for name in _JOINING:
                if name in columns:
                    columns[name][:] = NO_INT
