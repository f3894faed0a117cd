"""Tells whether backward passes add to the same gradients, so that one update follows several.

It is asked only until an optimizer steps for the first time. Where nothing changes the parameters
and nothing clears their gradients between two passes, both are of one step, however many there are.
"""

from collections.abc import Iterable
from typing import Any

_Versions = tuple[int, int, int]
"""Identity of a parameter's gradient, and how often it and the parameter were changed in place."""


class GradientAccumulation:
    """Compares the first parameter that has a gradient after each backward pass."""

    def __init__(self) -> None:
        self.is_going_on = False
        """Whether the last pass added to what the one before it has left."""
        self._last: _Versions | None = None

    def end_pass(self, parameters: Iterable[Any]) -> None:
        """Takes note that a backward pass has ended; `parameters` are some that are trained."""
        seen = next((p for p in parameters if p.grad is not None), None)
        # `_version` counts changes in place: a pass that accumulates is one of the gradient.
        now = None if seen is None else (id(seen.grad), seen.grad._version, seen._version)  # noqa: SLF001 - torch has no other count
        self.is_going_on = now is not None and now == _after_one_more_pass(self._last)
        self._last = now


def _after_one_more_pass(versions: _Versions | None) -> _Versions | None:
    if versions is None:
        return None
    gradient, changes, parameter = versions
    return gradient, changes + 1, parameter
