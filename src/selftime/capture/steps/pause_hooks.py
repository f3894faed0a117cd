"""Functions by which those who find steps tell who observes pauses between them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

STEPS_BETWEEN_STACKS: Final = 64
"""Number of steps after which the stack between two steps is looked at again."""


@dataclass(slots=True)
class PauseHooks:
    """Functions that observe pauses between steps."""

    on_training_event: Callable[[], None] | None = None
    """Function called when a backward pass or an optimizer step begins, in a pause; else None."""
    on_step_end: Callable[[], None] | None = None
    """Function called at the ends of some of the steps that are found from events more reliable
    than module calls; None without."""
    step_ends: int = 0
    """Number of ends of such steps; while it is 0, `on_step_end` is called at the next."""

    def end_step(self) -> None:
        if self.on_step_end is not None:
            if not self.step_ends % STEPS_BETWEEN_STACKS:
                self.on_step_end()
            self.step_ends += 1
