"""Numbers the kinds of steps of a ledger, and keeps what is known of each kind."""

from collections.abc import Callable, Hashable
from types import FrameType
from typing import Any, Final

from selftime.capture.ledger.step_loop_line import StepLoopLine
from selftime.capture.ledger.steps import SlowStepLimit
from selftime.capture.trace_function import trace_below_count
from selftime.ledger_format import AFTER_LAST_STEP, MODULE_STEP_KIND, UNUSUAL_KIND_SUFFIX

MAX_KINDS: Final = 10_000
"""Largest number of distinct step kinds in one ledger: further ones share one number."""


class StepKinds:
    """The kinds of steps in a ledger: their numbers, loops, usual durations and total times."""

    def __init__(self, add_line: Callable[[dict[str, Any]], None]) -> None:
        self.slow_step_limit = SlowStepLimit()
        """The limit of the steps that are being made; each kind of work has its own."""
        self.is_user_file: Callable[[str], bool] = _never
        """Function that returns whether a source file belongs to the user's code."""
        self.step_loop_line: tuple[str, int] | None = None
        """File and line of the loop whose iterations are the steps; None if unknown."""
        self._add_line = add_line
        self.numbers: dict[Hashable, int] = {}
        self._count = 0
        """Number of kinds that were given a number."""
        self.ns_by_number: dict[int, int] = {}
        """Maps the number of each kind of step to the time in ns of all its steps."""
        self._loop_lines: dict[int, StepLoopLine] = {}
        self.located: set[int] = set()
        """Numbers of the kinds whose loop is searched no more."""
        self._limits: dict[str, SlowStepLimit] = {}
        self.last_number: int | None = None
        """Number of the kind of the last step; None before the first."""
        self._first_step_start: int | None = None
        """Start in ns of the first step that no better kind of steps has superseded."""
        self._superseded: dict[str, Any] | None = None
        """Start and end in ns of the steps that were superseded last, if they are known to be no
        steps of the same work; else None."""

    def number(self, kind: Hashable, name: str | None = None) -> int:
        """Returns the number of a kind of step, which a line of the ledger gives it and its name.

        The name is by default the kind as text.
        """
        number = self.numbers.get(kind)
        if number is None:
            if self._count >= MAX_KINDS:
                return MAX_KINDS
            number = self.numbers[kind] = self._count
            self._count += 1
            self._add_line({"kind": number, "name": name or str(kind)})
        return number

    @property
    def known(self) -> tuple[Hashable, ...]:
        """Returns the kinds of the steps so far that were not renamed."""
        return tuple(self.numbers)

    def rename(
        self, kind: Hashable, name: str | None, file: str | None = None, line: int | None = None
    ) -> None:
        """Renames the steps of a kind so far; later ones of that kind have its own name again.

        Args:
            kind: The kind.
            name: Its new name; None if they were no steps, but part of what comes before steps.
            file: The file of the loop whose iterations they are; None if unknown.
            line: The line of that loop.
        """
        number = self.numbers.pop(kind, None)
        if number is not None:
            told = {"kind": number, "name": name}
            self._add_line(told if file is None else told | {"file": file, "line": line})

    def number_of_segment(self, kind: Hashable) -> int:
        """Returns the number of a segment's kind: None stands for that of the last step."""
        if kind is None:
            return AFTER_LAST_STEP if self.last_number is None else self.last_number
        return kind if isinstance(kind, int) else self.number(kind)

    def limit_of(self, number: int, kind: Hashable) -> SlowStepLimit:
        """Returns the limit of the work that a kind belongs to, which is then the present one."""
        if number != self.last_number and number >= 0:
            self.last_number = number
            work = str(kind).removesuffix(UNUSUAL_KIND_SUFFIX)
            self.slow_step_limit = self._limits.setdefault(work, SlowStepLimit())
        return self.slow_step_limit

    def add_step(self, number: int, start: int, duration: int) -> None:
        """Counts a step of a kind that took `duration` ns from `start` (ns) on."""
        if self._first_step_start is None:
            self._first_step_start = start
        self.ns_by_number[number] = self.ns_by_number.get(number, 0) + duration

    def time_by_kind(self) -> dict[str, int]:
        """Returns the time in ns of all steps of each kind."""
        return {str(kind): self.ns_by_number.get(n, 0) for kind, n in self.numbers.items()}

    def supersede(self, kind: Hashable, end: int, trained_from: int | None, **were: bool) -> None:
        """Says that steps so far were found from events that are worse than those of `kind`.

        Those that began at `trained_from` (ns) or later are of the same work as the new ones. Of
        the others `were` says whether they evaluated the model that is trained now
        (`is_evaluation`), or are part of the first of the new steps (`is_part_of_step`).
        """
        first, self._first_step_start = self._first_step_start, None
        if first is None:
            return
        told: dict[str, Any] = {"start": first, "end": end, "by": self.number(kind)}
        if trained_from is not None and trained_from >= first:
            self._add_line({"superseded": {**told, "start": trained_from, "is_same_work": True}})
            told["end"] = trained_from
        if told["end"] > first:
            self._superseded = {"start": first, "end": told["end"]}
            self._add_line({"superseded": {**told, **were}})

    @property
    def first_step_start(self) -> int | None:
        """Returns the start in ns of the first step that no better kind of steps has superseded."""
        return self._first_step_start

    def join_steps(self, kind: Hashable, start: int, end: int) -> None:
        """Says that all steps from `start` to the one that begins at `end` (ns) are one."""
        told = {"start": start, "end": end, "by": self.number(kind), "is_part_of_step": True}
        self._add_line({"superseded": told})

    def name_superseded_as_phase(self, kind: Hashable) -> None:
        """Says that the module calls that were superseded last were one phase of a kind."""
        told, self._superseded = self._superseded, None
        if told is not None:
            number, calls = self.number(kind), self.numbers.get(MODULE_STEP_KIND)
            loop = None if calls is None else self._loop_lines.get(calls)
            self.set_loop_line(kind, number, None if loop is None else loop.file_and_line)
            self._add_line({"superseded": {**told, "by": number, "is_phase": True}})

    def find_loop_line(self, kind: Hashable, number: int, frame: FrameType) -> None:
        """Searches the stack at the end of a step for the line of the loop that makes the steps."""
        found = self._loop_lines.get(number)
        if found is None and self.step_loop_line is not None:
            found = self._loop_lines[number] = StepLoopLine(self.is_user_file, self.step_loop_line)
            self._add_loop_line(kind, number, *self.step_loop_line)
        elif found is None:
            found = self._loop_lines[number] = StepLoopLine(self.is_user_file)
        if found.is_done:
            self.located.add(number)
        if found.is_done or trace_below_count() is not None:
            return
        found.observe_stack(frame)
        if found.file_and_line is not None:
            self._add_loop_line(kind, number, *found.file_and_line)

    def search_loop_again(self, kind: Hashable) -> None:
        """Forgets the loop of a kind of step, whose steps are from now on of other extent."""
        self._loop_lines.pop(self.number(kind), None)
        self.located.discard(self.number(kind))

    def set_loop_line(self, kind: Hashable, number: int, line: tuple[str, int] | None) -> None:
        """Sets the loop of a kind of step, unless it is known."""
        if line is not None and number not in self._loop_lines:
            self._loop_lines[number] = StepLoopLine(self.is_user_file, line)
            self._add_loop_line(kind, number, *line)

    def _add_loop_line(self, kind: Hashable, number: int, file: str, line: int) -> None:
        self._add_line({"kind": number, "name": str(kind), "file": file, "line": line})


def _never(_file: str) -> bool:
    return False
