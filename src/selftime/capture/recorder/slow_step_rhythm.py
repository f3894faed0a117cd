"""Predicts which steps of a run will be slow, from the distances between those that were.

A program that saves, evaluates or logs each so many steps, or starts the workers of a DataLoader
with each epoch, makes slow steps at equal distances. Several such rhythms may overlap.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

MIN_SLOW_STEPS: Final = 3
"""Smallest number of slow steps at about equal distances from which the next one is predicted."""

MIN_DISTANCE: Final = 4
"""Smallest distance of slow steps, in steps: a usual one must lie before the one that warms the
profiler up."""

MAX_SPREAD: Final = 2
"""Largest difference, in steps, of distances that count as equal, unless they are short."""

MAX_SPREAD_SHARE: Final = 0.02
"""The same as a share of the distance."""

MAX_EXCESS_FACTOR: Final = 3
"""Slow steps of one rhythm differ by at most this factor in their time beyond usual steps."""

MAX_REMEMBERED: Final = 32
"""Number of the last slow steps that are remembered."""


@dataclass(frozen=True, slots=True)
class SlowStep:
    """A step that took much longer than others of its kind."""

    number: int
    excess_ns: int
    """Its time beyond that of a usual step, in ns."""
    explained_ns: int = 0
    """How much of its time the ledger explains as an activity that usual steps have not, in ns."""

    @property
    def is_explained(self) -> bool:
        """Returns whether most of what makes it slow is explained."""
        return 2 * self.explained_ns >= self.excess_ns

    def is_like(self, other: "SlowStep") -> bool:
        """Returns whether two slow steps may be of one rhythm, by their times."""
        low, high = sorted((self.excess_ns, other.excess_ns))
        return high <= MAX_EXCESS_FACTOR * low


@dataclass(frozen=True, slots=True)
class ExpectedStep:
    """A slow step that is expected."""

    first: int
    """Number of the first step that may be the slow one."""
    last: int
    """Number of the last such step."""
    previous: SlowStep
    """The slow step of the same rhythm before it."""

    def is_rhythm_of(self, step: SlowStep) -> bool:
        """Returns whether another slow step is of the same rhythm."""
        shortest = self.first - self.previous.number
        longest = self.last - self.previous.number
        distance = abs(step.number - self.previous.number)
        rounds = max(1, round(2 * distance / (shortest + longest)))
        is_due = not distance or rounds * shortest <= distance <= rounds * longest
        return is_due and step.is_like(self.previous)


class SlowStepRhythm:
    """The slow steps of a run, and those that are expected; uses a bounded amount of memory."""

    def __init__(self) -> None:
        self.expected: tuple[ExpectedStep, ...] = ()
        """The slow steps that are expected, one of each rhythm, the nearest first."""
        self._slow: deque[SlowStep] = deque(maxlen=MAX_REMEMBERED)
        self._ignored: list[ExpectedStep] = []
        self.observed_from: int | None = None
        """Number of the first step that would have been noticed if it was slow; None before it."""

    def add(self, step: SlowStep) -> None:
        """Adds a slow step, which comes after those that were added before."""
        if any(one.is_rhythm_of(step) for one in self._ignored):
            return
        self._slow.append(step)
        self._expect_after(step.number)

    def ignore(self, expected: ExpectedStep) -> None:
        """Forgets the slow steps of a rhythm, past and future, once one of them is recorded."""
        self._ignored.append(expected)
        kept = [step for step in self._slow if not expected.is_rhythm_of(step)]
        self._slow = deque(kept, maxlen=MAX_REMEMBERED)
        self._expect_after(expected.last)

    def _expect_after(self, number: int) -> None:
        """Finds the slow steps that are expected after the step of a number."""
        found = [one for one in map(self._step_after, self._slow) if one is not None]
        due = [one for one in found if one.first > number]
        self.expected = tuple(sorted(due, key=lambda one: (one.first, -one.previous.excess_ns)))

    def _step_after(self, last: SlowStep) -> ExpectedStep | None:
        """Returns the slow step that is expected after one, by the shortest equal distances."""
        for other in reversed(self._slow):
            distance = last.number - other.number
            if distance < MIN_DISTANCE or not other.is_like(last):
                continue
            members = list(self._members(last, other))
            # More are needed of what did not come at one of the places.
            has_gap = self._would_be_known(members[-1].number - distance)
            is_enough = len(members) >= MIN_SLOW_STEPS + has_gap
            if is_enough and self._count_of_others(members) < len(members):
                numbers = [step.number for step in members]
                apart = [a - b for a, b in pairwise(numbers)]
                return ExpectedStep(last.number + min(apart), last.number + max(apart), last)
        return None

    def _members(self, last: SlowStep, before: SlowStep) -> Iterator[SlowStep]:
        """Yields the slow steps at the distance of two of them, the last one first."""
        distance = last.number - before.number
        spread = min(MAX_SPREAD, int(distance * MAX_SPREAD_SHARE))
        yield last
        member: SlowStep | None = before
        while member is not None:
            yield member
            place = member.number - distance
            member = next(
                (
                    step
                    for step in reversed(self._slow)
                    if abs(step.number - place) <= spread and step.is_like(last)
                ),
                None,
            )

    def _count_of_others(self, members: list[SlowStep]) -> int:
        """Returns how many slow steps between those of a rhythm are like them, but not of it.

        Among many slow steps without a rhythm, some are at equal distances by chance.
        """
        first, last = members[-1].number, members[0]
        within = [one for one in self._slow if first < one.number < last.number]
        return sum(one.is_like(last) for one in within if one not in members)

    def _would_be_known(self, number: int) -> bool:
        """Returns whether a slow step of that number would be remembered."""
        if self.observed_from is None or number - MAX_SPREAD < self.observed_from:
            return False
        is_full = len(self._slow) == MAX_REMEMBERED
        return not is_full or number > self._slow[0].number
