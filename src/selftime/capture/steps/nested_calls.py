"""Calls that repeat within one call of a module: decoding that is written into `forward`.

The outermost call is the step of most programs, however often it calls its layers. Only where it
comes once or a few times, and goes round a loop meanwhile, the rounds are what repeats.
"""

import sys
from collections.abc import Hashable
from typing import Any, Final

from selftime.capture.steps.compiler import passed_over, uncompiled
from selftime.capture.steps.hub import Hub
from selftime.capture.steps.source import Source

ROUNDS: Final = 10
"""Rounds that make a loop, and outermost calls that make it needless: as many as a recording takes.

A block that is applied a few times for each batch goes round less often.
"""


class InnerCalls:
    """Looks for a loop within an outermost call, the outermost one if there are several."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self._seen: list[set[Hashable]] = []
        """What each call that goes on has called, from the outermost one inwards."""
        self._loop: tuple[int, Hashable] | None = None
        """How deep it lies, and what it calls."""
        self._rounds = 0
        self._outermost = 0

    @property
    @uncompiled
    def watching(self) -> bool:
        return bool(self._seen)

    def needs(self) -> bool:
        """Whether an outermost call that comes again says nothing yet: its loop says more."""
        return self._rounds >= ROUNDS and self._outermost <= ROUNDS

    @uncompiled
    def wanted(self) -> bool:
        """Whether to look into an outermost call."""
        return self.hub.believes(Source.INNER_MODULE)

    @uncompiled
    def begin(self) -> None:
        """An outermost call begins that is looked into."""
        self._seen = [set()]
        self._loop, self._rounds = None, 0
        self._outermost += 1

    @uncompiled
    def end(self) -> None:
        self._seen = []

    @passed_over
    def call(self, original: Any, module: Any, args: Any, kwargs: Any) -> Any:
        """A call within one that is looked into."""
        if not self._comes_again(module):
            return self._look_into(original, module, args, kwargs)
        self.hub.enter("in_module")
        try:
            return original(module, *args, **kwargs)
        finally:
            self.hub.enter("in_module", False)

    @passed_over
    def _look_into(self, original: Any, module: Any, args: Any, kwargs: Any) -> Any:
        seen = self._seen
        seen.append(set())
        try:
            return original(module, *args, **kwargs)
        finally:
            seen.pop()

    @uncompiled
    def _comes_again(self, module: Any) -> bool:
        frame = sys._getframe(4)  # noqa: SLF001 - the documented way to whoever calls the module
        what = (id(module), id(frame), frame.f_lasti)
        again = what in self._seen[-1]
        self._seen[-1].add(what)
        if again:
            self._round(what)
        return again

    def _round(self, what: Hashable) -> None:
        loop = len(self._seen), what
        if self._loop is None or loop[0] < self._loop[0]:
            self._loop, self._rounds = loop, 0
        if loop == self._loop:
            self._rounds += 1
            if self._rounds >= ROUNDS:
                self.hub.between_steps(Source.INNER_MODULE)
