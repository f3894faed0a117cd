"""Lets all ranks of a job record the same steps.

Each rank sees by its own steps when they are steady, and at another one than its peers. Recordings
of different steps tell nothing of who waited for whom. So the ranks agree on the first step to
record, and on how many, through the key-value store of the program's own process group: the first
rank that is ready waits until all are, and names a step that none has reached. Ranks exchange
data in each step, so that none is more than about one step ahead. Ranks that are not recorded take
no part in it, and nobody waits for them.

Nothing here waits for another rank, and without an answer each rank records by itself.
"""

from collections import Counter
from contextlib import suppress
from typing import Any, Final

import torch

from selftime.capture.facts.machine import rank_and_world
from selftime.capture.recorder.rank_list import parse_rank_list

MAX_STEPS_UNTIL_ALL_READY: Final = 10
"""Number of steps for which the first rank that is ready waits until all others are."""
MAX_STEPS_UNTIL_ANSWER: Final = 15
"""Number of steps after which a rank that is ready records without an answer."""
_STEPS_AHEAD: Final = 2
"""How many steps after the present one of the rank that decides the recording begins."""

_decisions: Counter[str] = Counter()
"""How many decisions this process has made, by name."""


class JobAgreement:
    """One decision of a job: at which step to begin a recording, and how many steps it has."""

    def __init__(self, name: str, most_steps: int, ranks: str | None = None) -> None:
        """Makes the next decision of a name, which all ranks make in the same order.

        Args:
            name: The name.
            most_steps: How many steps any rank records at most.
            ranks: The ranks that are recorded, such as `0,7-9`; None if all are.
        """
        _decisions[name] += 1
        self.steps: int | None = None
        """How many steps all ranks record; None without an answer."""
        self._key, self._most_steps = f"selftime/{name}/{_decisions[name]}", most_steps
        self._ranks = None if ranks is None else parse_rank_list(ranks)
        self._is_silent = False
        self._begin: int | None = None
        self._ready_since: int | None = None
        self._decides = False

    def may_begin(self, step: int, ready_for: int | None) -> bool:
        """Returns whether to begin the recording now.

        Args:
            step: The number of steps that this rank has ended.
            ready_for: How many steps this rank would record from now on; None if it is not ready.
        """
        store = None if self._is_silent else _store_of_program()
        if store is not None and self._begin is None:
            try:
                self._exchange(store, step, ready_for)
            except RuntimeError:  # the store is gone, or does not answer
                self._is_silent = True
        if self._begin is not None:
            return step >= self._begin
        if ready_for is None:
            return False
        has_no_answer = store is None or self._is_silent
        return has_no_answer or step - (self._ready_since or step) >= MAX_STEPS_UNTIL_ANSWER

    def _exchange(self, store: Any, step: int, ready_for: int | None) -> None:
        if ready_for is not None and self._ready_since is None:
            self._ready_since = step
            store.add(f"{self._key}/steps/{ready_for}", 1)
            self._decides = store.add(f"{self._key}/ready", 1) == 1
        if self._decides:
            self._decide(store, step)
        elif store.check([f"{self._key}/begin"]):
            begin, steps = store.get(f"{self._key}/begin").split()
            self._begin, self.steps = int(begin), int(steps)

    def _decide(self, store: Any, step: int) -> None:
        _, world_size = rank_and_world()
        world_size = world_size or 1
        recorded = world_size if self._ranks is None else self._ranks.count_in(world_size)
        are_all_ready = store.add(f"{self._key}/ready", 0) >= recorded
        if not are_all_ready and step - (self._ready_since or step) < MAX_STEPS_UNTIL_ALL_READY:
            return
        counts = range(1, self._most_steps + 1)
        fewest = (one for one in counts if store.add(f"{self._key}/steps/{one}", 0))
        steps = next(fewest, self._most_steps)
        store.set(f"{self._key}/begin", f"{step + _STEPS_AHEAD} {steps}")
        self._begin, self.steps = step + _STEPS_AHEAD, steps


def _store_of_program() -> Any:
    """Returns the store of the default process group; None outside of a job of several ranks."""
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_initialized():
        return None
    if distributed.get_world_size() < 2:
        return None
    with suppress(ValueError, RuntimeError):
        return distributed.distributed_c10d._get_default_store()  # noqa: SLF001 - no public way
    return None
