"""Says whether `--ranks` leaves this process out, by the rank that it has in its job."""

from collections.abc import Callable

from selftime.capture.facts.machine import rank_and_world
from selftime.capture.recorder.rank_list import reason_of_left_out_rank, sentence_on_missing_ranks


class LeftOutRank:
    """Whether this process keeps its ledger alone, since `--ranks` names other ranks."""

    def __init__(self, ranks: str | None, notify: Callable[[str], None]) -> None:
        """Makes it for the value of `--ranks`, and a function that is told what is wrong with it.

        The rank is asked for when something is to be recorded: many programs join their job late.
        """
        self._ranks, self._notify = ranks, notify
        self._is_checked = False
        self.is_left_out = False

    def reason(self) -> str | None:
        """Returns why this process is not recorded; None if it is."""
        if self._ranks is None:
            return None
        rank, world_size = rank_and_world()
        found = reason_of_left_out_rank(self._ranks, rank, world_size)
        self.is_left_out = found is not None
        missing = sentence_on_missing_ranks(self._ranks, world_size)
        if missing is not None and rank == 0 and not self._is_checked:  # one rank says it
            self._notify(missing)
        self._is_checked = self._is_checked or rank is not None
        return found
