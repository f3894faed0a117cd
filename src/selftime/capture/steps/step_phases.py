"""Times the backward passes and optimizer steps of a step of training, and what lies before them.

What calls this is there anyway to find the ends of steps. Nothing is known of a forward pass but
that the time before a backward pass is spent on it, on the loss, and on what else the loop does.
"""

from typing import TYPE_CHECKING

from selftime.capture.steps.torch_compile import never_torch_compile
from selftime.ledger_format import OUTSIDE_PHASES

if TYPE_CHECKING:
    from selftime.capture.ledger.ledger import Ledger


class StepPhases:
    """Adds up, in ns, what the current segment of the ledger spends on its phases.

    All in the thread that makes steps. An optimizer's step that runs backward passes within it, by
    a closure, is counted as what it is after the last one. Where there are several passes in one,
    as of LBFGS, the time between them is of either phase: both are then unknown.
    """

    def __init__(self, ledger: "Ledger | None" = None) -> None:
        """Makes phases that a ledger takes at the end of each of its segments, if there is one."""
        if ledger is not None:
            ledger.take_phases = self.take
        self._before = self._backward = self._optimizer = 0
        """Time that precedes backward passes, that of these, and that of optimizer steps."""
        self._passes = 0
        """Number of backward passes."""
        self._since = 0
        """Since when nothing but what precedes a backward pass was seen, in ns."""
        self._passes_in_optimizer = 0
        """Number of backward passes within the current optimizer step."""
        self._is_divided = True
        """Whether the time before backward passes is known apart from that of the optimizer."""

    @never_torch_compile
    def add_backward(self, began: int, ended: int, *, in_optimizer: bool) -> None:
        """Adds a backward pass, within an optimizer's step or not; instants in ns."""
        self._before += began - self._since
        self._backward += ended - began
        self._passes += 1
        self._since = ended
        if in_optimizer:
            self._passes_in_optimizer += 1
            self._is_divided = self._is_divided and self._passes_in_optimizer == 1

    @never_torch_compile
    def add_optimizer(self, began: int, ended: int) -> None:
        """Adds the step of an optimizer that no other one calls; instants in ns."""
        if self._passes_in_optimizer:
            began, self._passes_in_optimizer = self._since, 0
        self._optimizer += ended - began
        self._since = ended

    def take(self, ended: int, counted: dict[str, int]) -> None:
        """Adds {phase: time in ns} of a segment that ends to what was counted in it.

        The number of its backward passes is added as well if there are several.

        Phases that were not seen are left out. Waits are taken to precede the backward passes, and
        are no part of any phase.

        Args:
            ended: When it ended, in ns.
            counted: What was counted in it: {activity: time in ns}.
        """
        if self._backward:
            if self._is_divided:
                waited = sum([counted.get(part, 0) for part in OUTSIDE_PHASES]) if counted else 0
                forward = self._before - waited
                if forward > 0:
                    counted["forward"] = forward
            counted["backward"] = self._backward
            if self._passes > 1:
                counted["passes"] = self._passes
        if self._optimizer and self._is_divided:
            counted["optimizer"] = self._optimizer
        self._before = self._backward = self._optimizer = self._passes = 0
        self._is_divided = True
        self._since = ended
