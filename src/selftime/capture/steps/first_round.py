"""Joins the steps of the first round of several optimizers, which ends with the rarer one's step.

Where the judge of an adversarial network steps several times before its maker steps for the first
time, each of these is a step at first. As many of them before the maker's second step show that
they were one.
"""

from selftime.capture.steps.detection_state import StepDetectionState, StepSource
from selftime.capture.steps.repetition import MAX_OCCURRENCES_PER_ROUND, RoundMember


class FirstRound:
    """Compares the first round of several optimizers with the second one."""

    def __init__(self, state: StepDetectionState) -> None:
        self.last_member: RoundMember | None = None
        """The optimizer that ended the first round; None until it has, and after the second."""
        self._state = state
        self._steps = 0
        """Number of steps of optimizers in the first round."""
        self._start = self._end = 0
        """Start in ns of the first step of the ledger, and of the one that ended the round."""

    def end(self, member: RoundMember) -> None:
        """Takes note that an optimizer steps for the first time, after others have stepped."""
        ledger, state = self._state.ledger, self._state
        if ledger is None or state.best_source is not StepSource.SOME_OPTIMIZERS:
            return
        start = ledger.kinds.first_step_start
        is_round = 1 < member.gap <= MAX_OCCURRENCES_PER_ROUND and not state.rollouts.has_rollout
        if start is not None and is_round:
            self.last_member, self._steps = member, member.gap
            self._start, self._end = start, ledger.segment

    def compare_with_second(self) -> None:
        """Joins the steps of the first round if that optimizer has come as late as before."""
        member, self.last_member = self.last_member, None
        if member is not None and member.gap == self._steps and self._state.ledger is not None:
            kind = StepSource.OPTIMIZER.work
            self._state.ledger.kinds.join_steps(kind, self._start, self._end)
