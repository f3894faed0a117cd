"""Counts the autograd nodes that an evaluation records, and that no backward pass uses.

An evaluation between `model.eval()` and `model.train()` needs no gradients. Whether it is made
without is told by autograd's sequence number, which rises with each node.
"""

from typing import TYPE_CHECKING, Final

from torch._C._autograd import _get_sequence_nr

if TYPE_CHECKING:
    from selftime.capture.ledger.ledger import Ledger

MAX_EVALUATIONS: Final = 10_000
"""Largest number of evaluations whose nodes one ledger records."""


class EvaluationGraphs:
    """Adds a line to the ledger for each evaluation that ends without a backward pass in it."""

    def __init__(self) -> None:
        self._began: tuple[int, int] | None = None
        """Autograd's sequence number and the number of backward passes as an evaluation began."""
        self._count = 0

    def begin(self, backward_passes: int) -> None:
        """Takes note that a module goes into evaluation mode, if none is there already."""
        if self._began is None:
            self._began = (_get_sequence_nr(), backward_passes)

    def end(self, backward_passes: int, ledger: "Ledger | None") -> None:
        """Takes note that a module goes back into training mode."""
        began, self._began = self._began, None
        if began is None or ledger is None or began[1] != backward_passes:
            return
        self._count += 1
        if self._count <= MAX_EVALUATIONS:
            nodes = _get_sequence_nr() - began[0]
            ledger.add_line({"evaluation": {"start": ledger.segment, "nodes": nodes}})
