"""Recognises repeated calls, events that recur in each step, and steps unlike most others."""

import os
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, Final

import torch

MAX_REMEMBERED_ITEMS: Final = 1000
"""Largest number of distinct calls, or of distinct kinds of step, that are remembered."""

MAX_OCCURRENCES_PER_ROUND: Final = 100
"""Largest number of events, such as optimizer steps, that together count as one step.

A recording covers several steps, so steps of hundreds of small ones would be too large. Rarer
events, such as merging models every 500 steps, are part of a step.
"""

OCCURRENCES_TO_WAIT_AFTER_FIRST: Final = 10
"""Number of other events after which a kind of event that occurred once is no longer expected in
each step."""

OCCURRENCES_TO_WAIT_AFTER_REPEAT: Final = 4
"""Number of other events after which a kind of event that has repeated is no longer expected in
each step; a few steps may skip it, as if a gradient is not finite."""

MAX_COMPARED_FRAMES: Final = 16
"""Largest number of Python frames of two calls that are compared to tell whether the calls have
the same stack."""

TORCH_PACKAGE_FOLDER: Final = os.path.dirname(torch.__file__) + os.sep  # noqa: PTH120 - compared with strings


def call_path_hash(frames_above: int = 1) -> int:
    """Returns a hash of the Python call stack, starting `frames_above` frames above the caller."""
    frame = sys._getframe(frames_above + 1)  # noqa: SLF001 - to find the caller
    path = 0
    for _ in range(MAX_COMPARED_FRAMES):
        path = hash((path, id(frame.f_code), frame.f_lasti))
        if frame.f_back is None:
            break
        frame = frame.f_back
    return path


def call_path(
    frames_above: int = 1, *, most: int = MAX_COMPARED_FRAMES
) -> list[tuple[CodeType, int]]:
    """Returns code and bytecode offset of each frame on the Python call stack, outermost first.

    The stack begins `frames_above` frames above the caller, and ends with the program's own module,
    or after `most` frames.
    """
    frame: FrameType | None = sys._getframe(frames_above + 1)  # noqa: SLF001 - as above
    path: list[tuple[CodeType, int]] = []
    while frame is not None and len(path) < most:
        code = frame.f_code
        path.append((code, frame.f_lasti))
        if code.co_name == "<module>":
            break
        frame = frame.f_back
    path.reverse()
    return path


def call_site_hash(frames_above: int = 1) -> int:
    """Returns a hash of the source position of the nearest Python caller outside torch."""
    frame = sys._getframe(frames_above + 1)  # noqa: SLF001 - as above
    while frame.f_back is not None and frame.f_code.co_filename.startswith(TORCH_PACKAGE_FOLDER):
        frame = frame.f_back
    return hash((id(frame.f_code), frame.f_lasti))


class RepetitionStepMarker:
    """Finds an item, such as a module call, that repeats; each occurrence then marks a step."""

    def __init__(self) -> None:
        self._marker: Hashable = None
        self._others_since: dict[Hashable, Any] = {}

    def is_step_mark(self, item: Hashable) -> bool:
        """Counts an occurrence of an item; returns whether this occurrence marks a step."""
        return self.mark_of_step(item, _no_instant) is not None

    def mark_of_step(self, item: Hashable, instant: Callable[[], Any]) -> "StepMark | None":
        """Counts an occurrence of an item; returns what is known if it marks a step, else None.

        `instant` is called at an item's first occurrence since the last mark.
        """
        if item == self._marker:
            self._others_since.clear()
            return _SAME_ITEM
        if item in self._others_since:
            first = None if self._marker is None else self._others_since[item]
            self.continue_with(item)
            return StepMark(first)
        if len(self._others_since) >= MAX_REMEMBERED_ITEMS:
            self._others_since.clear()
        self._others_since[item] = instant()
        return None

    def continue_with(self, item: Hashable) -> None:
        """Makes `item` the one that marks steps, since it is known to repeat."""
        self._marker = item
        self._others_since.clear()


@dataclass(frozen=True, slots=True)
class StepMark:
    """An occurrence of an item that marks a step."""

    first_of_new_item: Any = None
    """What `instant` returned at the item's first occurrence, where the item has taken the place
    of another one; else None. A step that no other mark ended ended there."""


_SAME_ITEM: Final = StepMark()


def _no_instant() -> None:
    pass


@dataclass(slots=True, eq=False)
class RoundMember:
    """A kind of event that occurs in each step, such as the steps of one optimizer."""

    count_when_added: int
    """Number of events of all kinds that had occurred when this kind was added."""
    first_occurrence: int | None = None
    """Number, counted over events of all kinds, of this kind's first event; None before it."""
    last_occurrence: int | None = None
    """Number, counted over events of all kinds, of this kind's last event; None before the
    first."""
    gap: int = 0
    """Number of events of all kinds between the last two of this kind."""
    last_round: int = 0
    """Number of the step in which this kind of event last occurred; 0 before the first."""
    has_repeated: bool = False
    """Whether this kind of event has occurred more than once."""

    @property
    def occurrences_to_wait(self) -> int:
        return max(
            2 * self.gap,
            OCCURRENCES_TO_WAIT_AFTER_REPEAT
            if self.has_repeated
            else OCCURRENCES_TO_WAIT_AFTER_FIRST,
        )


@dataclass(slots=True)
class EventRounds:
    """Counts steps that consist of several kinds of events, such as steps of two optimizers.

    Of several members that alternate, the last one ends the round; of a frequent and a rare member,
    the rare one does.
    """

    count: int = 0
    """Number of events of all kinds so far."""
    current_round: int = 1
    _members: list[RoundMember] = field(default_factory=list)
    _newest_start: int = 0
    """Number of the first event of the kind that was the last to begin and has repeated since."""

    def completes_round(self, member: RoundMember, *, more_expected: bool = False) -> bool:
        """Counts an event; returns whether all kinds of event expected in a step have occurred.

        With `more_expected`, a first occurrence does not: the round stays open until a member
        repeats.
        """
        last = member.last_occurrence
        is_first = last is None
        if last is not None and member.has_repeated and self._members == [member]:
            # As below, in less time: it is every step of most loops.
            self.count += 1
            member.gap, member.last_occurrence = self.count - last, self.count
            member.last_round = self.current_round
            self.current_round += 1
            return True
        if not is_first and member.last_round == self.current_round and self._is_round_complete():
            self.current_round += 1  # the expected members did not occur
        self.count_occurrence(member)
        member.last_round = self.current_round
        if member not in self._members:
            self._members.append(member)
        if is_first and more_expected:
            return False
        # Others occurred since it was added: it is the rarer one, and ends their round.
        is_slower = is_first and 1 < member.gap <= MAX_OCCURRENCES_PER_ROUND
        if not is_slower and not self._is_round_complete():
            return False
        self.current_round += 1
        return True

    def count_occurrence(self, member: RoundMember) -> None:
        """Counts an event without checking whether it completes a step."""
        self.count += 1
        if member.first_occurrence is None or member.last_occurrence is None:
            member.first_occurrence = self.count
        elif not member.has_repeated:
            self._newest_start = max(self._newest_start, member.first_occurrence)
        member.gap = self.count - (
            member.count_when_added if member.last_occurrence is None else member.last_occurrence
        )
        member.last_occurrence, member.has_repeated = self.count, member.last_occurrence is not None

    def remove_member(self, member: RoundMember) -> None:
        """Stops expecting a kind of event in each step, since it will not occur again."""
        if member in self._members:
            self._members.remove(member)

    def _is_round_complete(self) -> bool:
        return all(
            member.last_round == self.current_round
            for member in self._members
            if self.expects_member_soon(member) and not self._has_ended(member)
        )

    def _has_ended(self, member: RoundMember) -> bool:
        """Returns whether another kind began after this kind's last event, and has repeated.

        Two optimizers of one step alternate. Of two layers that are trained one after the other
        the first one's optimizer does not step again once the second one's does.
        """
        return member.last_occurrence is not None and member.last_occurrence < self._newest_start

    def expects_member_soon(self, member: RoundMember) -> bool:
        """Returns whether this kind of event is frequent enough to be expected in each step."""
        if member.last_occurrence is None:
            return False
        return (
            member.gap <= MAX_OCCURRENCES_PER_ROUND
            and self.count - member.last_occurrence <= member.occurrences_to_wait
        )


def is_training_call(event: Hashable) -> bool:
    """Returns whether an event is the call of a module that trains, with gradients.

    Of such a call it is the module, the call's path, and (training mode, gradients, input shape).
    """
    return isinstance(event, tuple) and event[2][:2] == (True, True)


class StepKindCounter:
    """Finds unusual steps, such as evaluations: their events differ from those of most steps."""

    def __init__(self) -> None:
        self._events: set[Hashable] = set()
        self._steps_by_kind: dict[frozenset[Hashable], int] = {}
        self._total = 0
        self._most_frequent: frozenset[Hashable] = frozenset()

    def add_event(self, event: Hashable) -> None:
        """Adds an event, such as a module call, to the current step."""
        self._events.add(event)

    @property
    def is_usual_so_far(self) -> bool:
        """Returns whether the step has no events, as most steps that have ended."""
        return not self._events and not self._most_frequent and self._total > 0

    def end_usual_step(self) -> None:
        """Ends a step that has no events, as most steps."""
        self._total += 1
        self._steps_by_kind[self._most_frequent] += 1

    def events(self) -> set[Hashable]:
        """Returns the events of all steps that are remembered, and of the current one."""
        return self._events.union(*self._steps_by_kind)

    def is_like_most(self) -> bool:
        """Returns whether the current step has had no other events than most steps have."""
        return self._total > 1 and self._events <= self._most_frequent

    def end_step_and_check_unusual(self) -> bool:
        """Ends the step; returns whether its events differ from those of most steps so far."""
        if self.is_usual_so_far:
            self.end_usual_step()
            return False
        kind = frozenset(self._events)
        self._events.clear()
        frequency = self._steps_by_kind.get(self._most_frequent, 0)
        is_common = kind == self._most_frequent
        is_unusual = not is_common and frequency > 1 and 2 * frequency > self._total
        if len(self._steps_by_kind) < MAX_REMEMBERED_ITEMS or kind in self._steps_by_kind:
            self._total += 1
            count = self._steps_by_kind[kind] = self._steps_by_kind.get(kind, 0) + 1
            if not is_common and count > frequency:
                self._most_frequent = kind
        return is_unusual
