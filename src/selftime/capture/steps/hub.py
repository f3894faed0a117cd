"""What the sources of steps know of each other, and the way from them to the recorder."""

import threading
from collections.abc import Callable
from typing import Any

from selftime.capture.steps.compiler import uncompiled
from selftime.capture.steps.module_calls import ModuleCalls
from selftime.capture.steps.rhythm import Kinds
from selftime.capture.steps.source import Source


class Hub:
    """Lets the source speak that is most to be believed, and the others no longer."""

    def __init__(
        self,
        boundary: Callable[[Source], None],
        pulse: Callable[[], None],
        unlike: Callable[[], None] | None = None,
        recording: Callable[[], bool] | None = None,
    ) -> None:
        self.idle = False
        """Every wrapper does nothing."""
        self.in_optimizer = False
        self.in_backward = False
        self.in_module = False
        self.in_fetch = False
        """Whether the thread that steps is within one of these."""
        self.stepped_in_backward = False
        """Whether an optimizer has stepped within the backward pass that goes on."""
        self.quiet_batches = 0
        """Batches since anything better was seen."""
        self.kinds = Kinds()
        self.pulse = pulse
        self.modules = ModuleCalls()
        self._boundary = boundary
        self._unlike = unlike
        self._recording = recording
        self._best: Source | None = None
        self._thread: int | None = None

    @uncompiled
    def elsewhere(self, source: Source) -> bool:
        """Whether this thread has nothing to say: another one steps, by a source as good.

        A recording can only be stopped by the thread that started it, so nobody takes its place
        before it is done.
        """
        if self.idle:
            return True
        if self._best is None or self._thread == threading.get_ident():
            return False
        return source <= self._best or self._recording is None or self._recording()

    @property
    @uncompiled
    def steps_here(self) -> bool:
        """Whether this thread is the one that steps; as long as none does, the main thread."""
        return threading.get_ident() == (self._thread or threading.main_thread().ident)

    def believes(self, source: Source) -> bool:
        """Whether no better source has spoken."""
        return self._best is None or source >= self._best

    @uncompiled
    def between_steps(self, source: Source) -> None:
        """A step has ended and another begins, as this source has it."""
        if self.idle or not self.believes(source):
            return
        if source != self._best:
            self._best, self._thread = source, threading.get_ident()
            self.kinds = Kinds()  # what came before the first boundary set the program up
        elif self.kinds.ended() and self._unlike is not None:
            self._unlike()
        with self.modules.as_torch_made():
            self._boundary(source)

    @uncompiled
    def enter(self, region: str, inside: Any = True) -> None:
        """Go into `in_module` or another region, or leave it."""
        setattr(self, region, inside)
        self.modules.pass_through(
            self.in_module or self.in_backward or self.in_optimizer or self.in_fetch
        )
