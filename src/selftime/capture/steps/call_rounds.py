"""Finds a loop of the program whose iterations hold several module calls that look like steps.

A loop that calls a small model four times and a large one once, or a model for each picture of a
batch and another one for the whole batch, repeats module calls within each iteration. The iteration
is the step then, and not the call that is repeated most often.

Which loop goes on is read from where in the program modules are called: a call from an earlier
instruction of a function than the last call belongs to the next iteration of the innermost loop
around both.
"""

from dataclasses import dataclass
from types import CodeType
from typing import Final

from selftime.capture.code_loops import CodeLoop, loops_at
from selftime.capture.steps.loop_choice import LONG_ITERATION_NS, MIN_ITERATIONS
from selftime.capture.steps.repetition import MAX_REMEMBERED_ITEMS

ROUNDS_NEEDED: Final = 2
"""Number of consecutive iterations with several steps after which the iteration is the step."""

MAX_SHARE_OF_INNER_STEPS: Final = 0.5
"""Largest fraction (0 to 1) of an iteration that may pass from the first to the last of many steps
within it: of a longer one, these are the steps."""

MAX_WATCHED_LOOPS: Final = 8
"""Largest number of loops that are watched at once."""

MAX_WATCHED_ITERATIONS: Final = 100
"""Number of iterations after which a loop is no longer watched, which takes time in each call."""

CallPath = list[tuple[CodeType, int]]
"""Code and bytecode offset of each Python frame that a call was made through, outermost first."""


@dataclass(slots=True)
class _Iteration:
    """The current iteration of a loop, and how many before it held several steps."""

    loop: CodeLoop
    began_ns: int
    steps: int = 0
    first_step_ns: int = 0
    last_step_ns: int = 0
    iterations_with_steps: int = 0
    count: int = 0
    """Number of iterations so far."""

    def add_step(self, now_ns: int) -> None:
        if not self.steps:
            self.first_step_ns = now_ns
        self.steps += 1
        self.last_step_ns = now_ns

    def is_one_step(self, now_ns: int) -> bool:
        """Returns whether the iteration that ends now is rather a step than those within it."""
        duration = now_ns - self.began_ns
        if self.steps < 2 or duration > LONG_ITERATION_NS:
            return False
        within = self.last_step_ns - self.first_step_ns
        return self.steps < MIN_ITERATIONS or within < MAX_SHARE_OF_INNER_STEPS * duration

    def end(self, now_ns: int) -> None:
        is_one = self.is_one_step(now_ns)
        self.iterations_with_steps = self.iterations_with_steps + 1 if is_one else 0
        self.began_ns, self.steps = now_ns, 0
        self.count += 1


class CallRounds:
    """Tells whether a module call begins the next iteration of the loop that makes the steps.

    A call is known by its place: a hash of the call stack that it is made through.
    """

    def __init__(self) -> None:
        self.step_loop: CodeLoop | None = None
        """The loop whose iterations are the steps; None as long as each step is a call."""
        self.last_place = 0
        """The place of the last call; 0 before the first."""
        self._paths: dict[int, CallPath] = {}
        """The call stack of each place."""
        self._iterated: dict[tuple[int, int], CodeLoop | None] = {}
        """The loop whose next iteration begins, by the places of the last call and of this one."""
        self._ends_step: dict[tuple[int, int], bool | None] = {}
        """Whether a step ends, likewise; None outside of the loop of the steps."""
        self._iterations: dict[int, _Iteration] = {}
        """The watched loops by `id(loop)`."""
        self._settled: dict[int, CodeLoop] = {}
        """By `id(loop)`, the loops that are no longer watched."""

    def needs_path(self, place: int) -> bool:
        """Returns whether the call stack of a place is not known yet; then see `add_path`."""
        return place not in self._paths

    def add_path(self, place: int, path: CallPath) -> None:
        """Stores the call stack of a place."""
        if len(self._paths) >= MAX_REMEMBERED_ITEMS:
            self._paths.clear()
            self._iterated.clear()
            self._ends_step.clear()
        self._paths[place] = path

    def call(self, place: int, now_ns: int) -> bool:
        """Counts a call; returns whether iterations of a loop are the steps from this call on."""
        key = self.last_place, place
        self.last_place = place
        if key not in self._iterated:
            self._iterated[key] = iterated_loop(self._paths.get(key[0], []), self._paths[place])
        loop = self._iterated[key]
        if loop is None or id(loop) in self._settled or not self._end_iteration(loop, now_ns):
            return False
        self.step_loop = loop
        self._settled[id(loop)] = loop
        self._iterations.clear()
        self._ends_step.clear()
        return True

    def ends_step(self, last_place: int, place: int) -> bool | None:
        """Returns whether a call ends a step, as the loop of the steps goes on or one around it.

        Returns None for a call outside of that loop.
        """
        if self.step_loop is None:
            return None
        key = last_place, place
        if key not in self._ends_step:
            iterated = self._iterated.get(key)
            self._ends_step[key] = goes_on(self.step_loop, self._paths[place], iterated)
        return self._ends_step[key]

    def add_step(self, now_ns: int) -> None:
        """Notes that a call looks like the begin of a step."""
        for iteration in self._iterations.values():
            iteration.add_step(now_ns)

    def _end_iteration(self, loop: CodeLoop, now_ns: int) -> bool:
        """Ends an iteration of a loop; returns whether its iterations are the steps from now on."""
        iteration = self._iterations.get(id(loop))
        if iteration is None:
            if len(self._iterations) >= MAX_WATCHED_LOOPS:
                self._iterations.clear()
            self._iterations[id(loop)] = _Iteration(loop, now_ns)
            return False
        iteration.end(now_ns)
        if iteration.count >= MAX_WATCHED_ITERATIONS:
            self._settled[id(loop)] = loop
            del self._iterations[id(loop)]
        return iteration.iterations_with_steps >= ROUNDS_NEEDED


def iterated_loop(last_path: CallPath, path: CallPath) -> CodeLoop | None:
    """Returns the loop whose next iteration a call begins; None if that is not known.

    Args:
        last_path: The call stack of the call before it; empty if there was none.
        path: Its own call stack.
    """
    for (code, last), (other, offset) in zip(last_path, path, strict=False):
        if code is not other:
            return None
        if offset != last:
            around = [loop for loop in loops_at(code, last) if loop.contains(offset)]
            return around[-1] if around and offset < last else None
    return None if len(path) != len(last_path) else _innermost_loop(path)


def goes_on(loop: CodeLoop, path: CallPath, iterated: CodeLoop | None) -> bool | None:
    """Returns whether a loop, or one around it, goes on; None for a call outside of it.

    Args:
        loop: The loop.
        path: The call stack of a call.
        iterated: The loop whose next iteration that call begins; None if that is not known.
    """
    if not any(code is loop.code and loop.contains(offset) for code, offset in path):
        return None
    if iterated is None or iterated is loop:
        return iterated is loop
    if iterated.code is loop.code:
        return not loop.contains(iterated.start) or iterated.contains(loop.start)
    outermost = next(code for code, _ in path if code is iterated.code or code is loop.code)
    return outermost is iterated.code


def _innermost_loop(path: CallPath) -> CodeLoop | None:
    for code, offset in reversed(path):
        loops = loops_at(code, offset)
        if loops:
            return loops[-1]
    return None
