"""Counts the autograd nodes that an evaluation records, and that no backward pass uses.

An evaluation between `model.eval()` and `model.train()` needs no gradients. Whether it is made
without is told by autograd's sequence number, which rises with each node. An evaluation that itself
differentiates, as one that adapts the model to a task first, needs its graph: it is left out.
"""

from typing import TYPE_CHECKING, Final

from torch._C._autograd import _get_sequence_nr

if TYPE_CHECKING:
    from selftime.capture.ledger.ledger import Ledger

MAX_EVALUATIONS: Final = 10_000
"""Largest number of evaluations whose nodes one ledger records."""

_OF_ADAPTATION: Final = -1
"""Stands for the number of differentiations as an evaluation of an adapted model began."""


class EvaluationGraphs:
    """Adds a line to the ledger for each evaluation that ends without a backward pass in it."""

    def __init__(self) -> None:
        self._began: tuple[int, int] | None = None
        """Autograd's sequence number and the number of differentiations as an evaluation began."""
        self._count = 0

    def begin(self, differentiations: int, at_optimizer_step: int | None) -> None:
        """Takes note that a module goes into evaluation mode, if none is there already.

        Args:
            differentiations: The number of backward passes and calls of `autograd.grad` so far.
            at_optimizer_step: That number at the last step of an optimizer; None before it. If it
                is lower, what is evaluated was differentiated since, and no optimizer used that.
        """
        if self._began is None:
            adapts = at_optimizer_step is not None and at_optimizer_step < differentiations
            self._began = (_get_sequence_nr(), _OF_ADAPTATION if adapts else differentiations)

    def end(self, differentiations: int, ledger: "Ledger | None") -> None:
        """Takes note that a module goes back into training mode."""
        began, self._began = self._began, None
        if began is None or ledger is None or began[1] != differentiations:
            return
        self._count += 1
        if self._count <= MAX_EVALUATIONS:
            nodes = _get_sequence_nr() - began[0]
            ledger.add_line({"evaluation": {"start": ledger.segment, "nodes": nodes}})
