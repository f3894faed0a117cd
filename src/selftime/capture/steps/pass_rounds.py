"""Finds a loop of the program whose iterations hold several kinds of backward passes.

A solver that is called in each round of a loop, such as L-BFGS of SciPy for one model and
conjugate gradients for another, makes many backward passes, and how many differs from round to
round. No single pass is a step then, nor a number of them: the round of the loop around the solvers
is.

Which loop goes on is read from where in the program the passes begin, as of module calls.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from selftime.capture.code_loops import CodeLoop, loops_at
from selftime.capture.steps.call_rounds import (
    MAX_WATCHED_LOOPS,
    ROUNDS_NEEDED,
    CallPath,
    goes_on,
    iterated_loop,
)
from selftime.capture.steps.loop_choice import MAX_CHOICE_NS
from selftime.capture.steps.repetition import MAX_REMEMBERED_ITEMS

MIN_KINDS: Final = 2
"""Smallest number of loops in which the passes of one iteration are made, the loop that iterates
among them."""

MAX_COMPARED_FRAMES: Final = 64
"""Largest number of Python frames between the program and a pass: solvers call the program back."""


@dataclass(slots=True)
class _Round:
    """The current iteration of a loop, and how many in a row before it are rather a step."""

    loop: CodeLoop
    began_ns: int
    passes: Counter[int] = field(default_factory=Counter)
    """Number of passes by the place where they begin."""
    rounds: int = 0


class PassRounds:
    """Tells whether an event begins the next iteration of the loop that makes the steps.

    An event is a backward pass or, once the loop is known, a module call. It is known by its place:
    a hash of its call stack.
    """

    def __init__(self, is_user_file: Callable[[str], bool]) -> None:
        """Makes rounds; `is_user_file` tells the program's files from those of libraries."""
        self.step_loop: CodeLoop | None = None
        """The loop whose iterations are the steps; None as long as passes end them."""
        self._is_user_file = is_user_file
        self._paths: dict[int, CallPath] = {}
        self._last_place = 0
        self._iterated: dict[tuple[int, int], CodeLoop | None] = {}
        self._rounds: dict[int, _Round] = {}
        """The watched loops by `id(loop)`."""

    def needs_path(self, place: int) -> bool:
        """Returns whether the call stack of a place is not known yet; then see `add_path`."""
        return place not in self._paths

    def add_path(self, place: int, path: CallPath) -> None:
        """Stores the call stack of a place."""
        if len(self._paths) >= MAX_REMEMBERED_ITEMS:
            self._paths.clear()
            self._iterated.clear()
        self._paths[place] = path

    def add_pass(self, place: int, now_ns: int) -> bool:
        """Counts a backward pass that begins at a place whose call stack is known.

        Returns whether iterations of a loop are the steps from this pass on.
        """
        loop, around = self._iterate(place), self._loops(place)
        if loop is not None and loop in around and self._end_round(loop, around, now_ns):
            self.step_loop = loop
            self._rounds.clear()
            return True
        for one in around:
            if id(one) in self._rounds:
                self._rounds[id(one)].passes[place] += 1
        return False

    def ends_step(self, place: int) -> bool | None:
        """Returns whether an event begins the next iteration of the loop of the steps.

        Returns None for one outside of that loop.
        """
        if self.step_loop is None:
            return None
        iterated = self._iterate(place)
        return goes_on(self.step_loop, self._paths[place], iterated)

    def _iterate(self, place: int) -> CodeLoop | None:
        """Returns the loop whose next iteration an event begins."""
        key = self._last_place, place
        self._last_place = place
        if key not in self._iterated:
            last_path, path = self._paths.get(key[0], []), self._paths[place]
            loop = iterated_loop(last_path, path) or _loop_around_new_call(last_path, path)
            self._iterated[key] = loop
        return self._iterated[key]

    def _loops(self, place: int) -> list[CodeLoop]:
        """Returns the loops around a place, the outermost first."""
        return [loop for code, offset in self._paths[place] for loop in loops_at(code, offset)]

    def _end_round(self, loop: CodeLoop, around: list[CodeLoop], now_ns: int) -> bool:
        """Ends an iteration; returns whether the iterations of the loop are the steps now."""
        known = self._rounds.pop(id(loop), None)
        for inner in around[around.index(loop) + 1 :]:
            self._rounds.pop(id(inner), None)
        ended = _Round(loop, now_ns) if known is None else self._next_round(known, now_ns)
        if ended.rounds >= ROUNDS_NEEDED:
            return True
        if len(self._rounds) >= MAX_WATCHED_LOOPS:
            self._rounds.clear()
        self._rounds[id(loop)] = ended
        return False

    def _next_round(self, ended: _Round, now_ns: int) -> _Round:
        """Returns the iteration after one, which counts it if it held several kinds of passes."""
        is_repeated = any(count > 1 for count in ended.passes.values())
        is_one_step = is_repeated and self._is_one_step(ended, now_ns - ended.began_ns)
        return _Round(ended.loop, now_ns, rounds=ended.rounds + 1 if is_one_step else 0)

    def _is_one_step(self, ended: _Round, duration_ns: int) -> bool:
        """Returns whether an iteration is rather a step than the passes in it, some repeated.

        It is if the program itself makes them in several loops, the one that iterates among them;
        or if a function of a library makes them for the program, as a solver does. One that takes
        long is rather a whole training by that library.
        """
        innermost = {self._loops(place)[-1] for place in ended.passes}
        if len(innermost) < MIN_KINDS:
            return False
        paths = [self._paths[place] for place in ended.passes]
        splits = next(codes for codes in zip(*paths, strict=False) if len(set(codes)) > 1)
        is_by_program = all(self._is_user_file(code.co_filename) for code, _ in splits)
        is_of_program = self._is_user_file(ended.loop.code.co_filename)
        return is_by_program or (is_of_program and duration_ns <= MAX_CHOICE_NS)


def _loop_around_new_call(last_path: CallPath, path: CallPath) -> CodeLoop | None:
    """Returns the innermost loop around a function that was called anew since the last event.

    It was if that event was at a later instruction of it, and no loop leads back from there.
    """
    outside: list[CodeLoop] = []
    for (code, last), (other, offset) in zip(last_path, path, strict=False):
        if code is not other:
            return None
        if offset != last:
            around = [loop for loop in loops_at(code, offset) if loop.contains(last)]
            is_anew = offset < last and not around
            return outside[-1] if is_anew and outside else None
        outside += loops_at(code, offset)
    return None
