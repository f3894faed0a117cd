"""The rhythm of what repeats: which of several things that come again marks a step."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

MANY: Final = 1000
"""Things that are remembered at once; a program that makes a new one each time goes on for ever."""

LONGEST_ROUND: Final = 100
"""Comings of all in a round that is still one step.

A recording is of several steps, so one that holds hundreds of small ones could not be opened. What
comes more rarely, such as a merge of models every 500 steps, is an event among the steps.
"""

PATIENCE: Final = 10
"""Comings of others after which something that has come once is not waited for; rhythms below it
are learned without a mistake, and slower ones when they have come a second time."""

SLACK: Final = 4
"""The same for what has come each time: it is left out now and then, as where a gradient is not
finite, but not so often in a row."""


class Marker:
    """Of things that come again, the one that comes most often without others twice between."""

    def __init__(self) -> None:
        self._marker: Hashable = None
        self._since: set[Hashable] = set()

    def came(self, thing: Hashable) -> bool:
        """Whether the marker has come again; it is another from now on if `thing` is faster."""
        if thing == self._marker or thing in self._since:
            self._marker = thing
            self._since.clear()
            return True
        if len(self._since) >= MANY:
            self._since.clear()
        self._since.add(thing)
        return False


@dataclass(slots=True, eq=False)
class Participant:
    """Something that comes once or more in each round."""

    built: int
    """How many had come when it began to be there."""
    last: int | None = None
    """The number of its last coming."""
    gap: int = 0
    """The way between its last two comings, or to its first."""
    round: int = 0
    """The round in which it came last."""
    again: bool = False
    """Whether it has come more than once, so that its rhythm is known."""

    @property
    def patience(self) -> int:
        return max(2 * self.gap, SLACK if self.again else PATIENCE)


@dataclass(slots=True)
class Rounds:
    """Counts rounds: one is whole when all that take part in it have come.

    So of several that come in turn the last ends the round, and of one that comes often and one
    that comes rarely the rare one does.
    """

    count: int = 0
    """Comings so far, of all."""
    current: int = 1
    _all: list[Participant] = field(default_factory=list)

    def came(self, one: Participant, *, more_expected: bool = False) -> bool:
        """Whether this coming makes the round whole.

        While more are expected that never came, the round is held open until one comes again.
        """
        first = one.last is None
        if not first and one.round == self.current and self._whole():
            self.current += 1  # it was held open for nobody
        self.count_in(one)
        one.round = self.current
        if one not in self._all:
            self._all.append(one)
        if first and more_expected:
            return False
        # Others came while it was there already: it is the slower one, and ends their round.
        slower = first and 1 < one.gap <= LONGEST_ROUND
        if not slower and not self._whole():
            return False
        self.current += 1
        return True

    def count_in(self, one: Participant) -> None:
        """It has come, whether or not it takes part."""
        self.count += 1
        one.gap = self.count - (one.built if one.last is None else one.last)
        one.last, one.again = self.count, one.last is not None

    def leave(self, one: Participant) -> None:
        """It comes no more."""
        if one in self._all:
            self._all.remove(one)

    def _whole(self) -> bool:
        return all(one.round == self.current for one in self._all if self.expects(one))

    def expects(self, one: Participant) -> bool:
        """Whether it has come, and comes often enough to come again soon."""
        if one.last is None:
            return False
        return one.gap <= LONGEST_ROUND and self.count - one.last <= one.patience


class Kinds:
    """What happened in a step, to tell the steps that are unlike most others."""

    def __init__(self) -> None:
        self._noted: set[Hashable] = set()
        self._steps: dict[frozenset[Hashable], int] = {}

    def note(self, what: Hashable) -> None:
        """This happened in the step that goes on."""
        self._noted.add(what)

    def ended(self) -> bool:
        """End the step: whether most steps so far were alike and this one was not of their kind."""
        kind = frozenset(self._noted)
        self._noted.clear()
        total = sum(self._steps.values())
        usual = max(self._steps, key=self._steps.__getitem__, default=kind)
        often = self._steps.get(usual, 0)
        unlike = kind != usual and often > 1 and 2 * often > total
        if len(self._steps) < MANY or kind in self._steps:
            self._steps[kind] = self._steps.get(kind, 0) + 1
        return unlike
