"""Times the backward passes and optimizer steps of a step of training, and what lies before them.

What calls this is there anyway to find the ends of steps. Nothing is known of a forward pass but
that the time before a backward pass is spent on it, on the loss, and on what else the loop does.
"""

from collections.abc import Callable
from time import perf_counter_ns
from typing import Final

from selftime.capture.ledger.instants import Instant

OUTSIDE_PHASES: Final = ("data_wait", "epoch_boundary", "evaluation", "recording")
"""Activities of a segment that are in none of the phases of a step."""


class StepPhases:
    """Adds up, in ns, what the current segment of the ledger spends on its phases.

    All in the thread that makes steps. An optimizer's step that runs backward passes within it, by
    a closure, is counted as what it is after the last one. Where there are several passes in one,
    as of LBFGS, the time between them is of either phase: both are then unknown.
    """

    def __init__(self, began_ns: int, instant: Callable[[int], Instant]) -> None:
        """Makes the phases of a segment that begins at `began_ns`.

        `instant` returns what the ledger has counted in the current segment up to a time in ns.
        """
        self._instant = instant
        self._forward = self._backward = self._optimizer = 0
        self._passes = 0
        """Number of backward passes within the current optimizer step."""
        self._is_divided = True
        """Whether the time before backward passes is known apart from that of the optimizer."""
        self._since = began_ns
        """Since when nothing but what precedes a backward pass was seen, in ns."""
        self._waited_before = 0
        self._pass_began = self._pass_ended = self._step_began = 0

    def begin_backward(self, *, in_optimizer: bool) -> None:
        """Begins a backward pass, within an optimizer's step or not."""
        self._pass_began = now = perf_counter_ns()
        waited = self._waited_until(now) - self._waited_before
        self._forward += max(0, now - self._since - waited)
        if in_optimizer:
            self._passes += 1
            self._is_divided = self._is_divided and self._passes == 1

    def end_backward(self) -> None:
        """Ends the backward pass."""
        self._pass_ended = now = perf_counter_ns()
        self._backward += now - self._pass_began
        self._begin_next(now)

    def begin_optimizer(self) -> None:
        """Begins the step of an optimizer that no other one calls."""
        self._step_began, self._passes = perf_counter_ns(), 0

    def end_optimizer(self) -> None:
        """Ends the step of the optimizer."""
        now = perf_counter_ns()
        self._optimizer += now - (self._pass_ended if self._passes else self._step_began)
        self._begin_next(now)

    def _begin_next(self, now: int) -> None:
        self._since, self._waited_before = now, self._waited_until(now)

    def _waited_until(self, now: int) -> int:
        _, _, counted = self._instant(now)
        return sum(counted.get(part, 0) for part in OUTSIDE_PHASES)

    def take(self, ended_ns: int) -> dict[str, int]:
        """Returns {phase: time in ns} of the segment that ends, and begins the next one.

        Phases that were not seen are left out.
        """
        phases: dict[str, int] = {}
        if self._backward:
            phases["backward"] = self._backward
            if self._is_divided:
                phases["forward"] = self._forward
        if self._optimizer and self._is_divided:
            phases["optimizer"] = self._optimizer
        self._forward = self._backward = self._optimizer = 0
        self._is_divided = True
        self._since, self._waited_before = ended_ns, 0
        return phases
