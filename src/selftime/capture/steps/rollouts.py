"""Finds how many updates of a model follow each rollout of reinforcement learning.

A rollout is a phase in which the model acts: a module is called many times with inputs that are far
smaller than those of training. Where each rollout is followed by the same small number of updates,
a step is the rollout with all of them.
"""

from collections import Counter
from collections.abc import Hashable
from typing import Final

from selftime.capture.steps.environment_steps import FirstActing

MIN_CALLS_OF_ROLLOUT: Final = 8
"""Number of calls of one module with small inputs that are a rollout."""

MIN_CALLS_OF_KNOWN_ROLLOUT: Final = 2
"""The same where the program is known to make rollouts."""

MIN_INPUT_RATIO: Final = 4
"""Smallest ratio of the inputs of training to those of a rollout, in elements."""

MAX_UPDATES_PER_STEP: Final = 10
"""Largest number of updates that are one step together with the rollout before them."""

_EQUAL_ROUNDS_NEEDED: Final = 2
_MAX_ROUNDS: Final = 4
"""Number of rollouts after which the number of updates is taken to vary."""


class RolloutRounds:
    """Counts the updates between rollouts, and how many of them make a step."""

    def __init__(self) -> None:
        self.is_learning = True
        """Whether module calls must be seen, since updates may follow rollouts."""
        self._sizes: dict[Hashable, Counter[int]] = {}
        """The number of calls by input size, of each module, since the last backward pass."""
        self._last_sizes: dict[Hashable, int] = {}
        self._rounds: list[int] = []
        """Number of updates after each rollout but the last."""
        self.has_rollout = False
        """Whether a rollout was seen before the first update."""
        self.first_acting = FirstActing()
        """What stacks show of an environment before the first update."""
        self.acts_in_environment = False
        """Whether the program is known to act in an environment, also in evaluation mode."""
        self._updates = 0
        self._updates_per_step = 1
        self.ends_each_step = False
        """Whether it is settled that each update is a step."""

    def add_call(self, module: Hashable, input_size: int) -> None:
        """Counts an outermost call of a module in training mode."""
        self._sizes.setdefault(module, Counter())[input_size] += 1
        self._last_sizes[module] = input_size

    def begin_backward_pass(self) -> None:
        """Decides whether the calls since the last backward pass were a rollout, then training."""
        if not self.is_learning:
            return
        is_rollout = any(map(self._has_many_small_inputs, self._sizes))
        self._sizes.clear()
        if not is_rollout:
            if not self.has_rollout or self._updates > MAX_UPDATES_PER_STEP:
                self.is_learning = False
            return
        if self.has_rollout:
            self._rounds.append(self._updates)
            self._decide()
        self.has_rollout, self._updates = True, 0

    def _has_many_small_inputs(self, module: Hashable) -> bool:
        largest = self._last_sizes[module] // MIN_INPUT_RATIO
        small = sum(n for size, n in self._sizes[module].items() if size <= largest)
        return small >= MIN_CALLS_OF_ROLLOUT

    def _decide(self) -> None:
        last = self._rounds[-_EQUAL_ROUNDS_NEEDED:]
        if len(last) == _EQUAL_ROUNDS_NEEDED and len(set(last)) == 1:
            self._updates_per_step = last[0]
        if self._updates <= 1 or self._updates_per_step > 1 or len(self._rounds) >= _MAX_ROUNDS:
            self.is_learning = False

    def ends_step(self, *, is_round_complete: bool) -> bool:
        """Counts an update, once all optimizers have stepped; returns whether it ends a step."""
        self.is_learning = self.is_learning and self.has_rollout
        self._updates += is_round_complete
        self.ends_each_step = not self.is_learning and self._updates_per_step == 1
        is_last = self.is_learning or self._updates % self._updates_per_step == 0
        return is_round_complete and is_last
