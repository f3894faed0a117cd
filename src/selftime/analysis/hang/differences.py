"""What can differ between the ranks of a job in their collectives, sends and receives."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from selftime.analysis.hang.job_groups import JobGroup
from selftime.flight_recorder import Call, CallState


class DifferenceKind(str, Enum):
    """What differs between ranks."""

    missing = "missing"
    """Ranks never entered a collective that others entered."""
    no_dump = "no_dump"
    """Ranks wait, and of others it is not known whether they entered the collective."""
    operation = "operation"
    """Ranks called different collectives under the same number."""
    order = "order"
    """Likewise, and each of them called later what the others called first."""
    skipped = "skipped"
    """Likewise, and ranks called what the others call later: they left something out."""
    extra = "extra"
    """Likewise, and ranks call later what the others called: they called something more."""
    sizes = "sizes"
    impossible_sizes = "impossible_sizes"
    """The outputs of a collective do not fit its inputs, of a rank or of all together."""
    dtypes = "dtypes"
    shapes = "shapes"
    """Tensors of as many elements differ in shape, which no backend minds."""
    unmatched = "unmatched"
    """A send has no receive, or the other way round."""
    unfinished = "unfinished"
    """All ranks entered a collective alike, and it has not ended on all."""
    lines = "lines"
    """Ranks called a collective from different lines."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Ranks that did the same, and what."""

    ranks: tuple[int, ...]
    call: Call


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between ranks."""

    kind: DifferenceKind
    group: JobGroup
    operation: str
    sequence: int
    ranks: tuple[int, ...]
    """The ranks that differ from most, or are missing; empty if there is no majority."""
    waiting: tuple[int, ...] = ()
    """The ranks that are in the call, and have not ended it."""
    entered: tuple[int, ...] = ()
    variants: tuple[Variant, ...] = ()
    """What ranks did, those of most ranks first."""
    since_ns: int | None = None
    """When the first of the waiting ranks entered it, in ns since the Unix epoch."""
    timeout_ns: int | None = None
    """The timeout that a rank reached in it; None if none did."""
    later: int = 0
    """The number of later collectives of the group that differ too."""

    @property
    def is_open(self) -> bool:
        """Returns whether a rank waits in the call."""
        return bool(self.waiting)


def waiting_ranks(calls: dict[int, tuple[Call, ...]]) -> tuple[int, ...]:
    """Returns the ranks of which a call has not ended."""
    return tuple(sorted(r for r, made in calls.items() if any(c.state.is_open for c in made)))


def first_entry_ns(calls: dict[int, tuple[Call, ...]], ranks: tuple[int, ...]) -> int | None:
    """Returns when the first of these ranks entered; None if no dump tells."""
    told = [call.created_ns for rank in ranks for call in calls[rank] if call.state.is_open]
    return min((instant for instant in told if instant is not None), default=None)


def reached_timeout_ns(calls: Iterable[Call]) -> int | None:
    """Returns the longest timeout that calls reached; None if none did."""
    reached = [call for call in calls if call.state is CallState.timed_out]
    return max((call.timeout_ns or 0 for call in reached), default=None)
