"""Marks the recorder's own work in the program's thread, and postpones what must not interrupt it.

While it works, the recorder ignores events of the program. A signal handler that ends the recording
may run in the midst of it, and would find it half done: it is postponed until the work is done, and
so is what the program does at the end of one of its processes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from selftime.capture.child_signals import child_signals_held_back
from selftime.capture.recorder.held_time import HeldTime
from selftime.capture.steps import RecorderWork


class OwnWork:
    """Tells whether the recorder works right now."""

    def __init__(self, recorder_work: RecorderWork, on_end: Callable[[], None]) -> None:
        """Makes an object; `on_end` is called at the end of each work."""
        self.is_going_on = False
        self.held = HeldTime()
        """For how long the ends of the run's recordings have held the program."""
        self._recorder_work = recorder_work
        self._on_end = on_end
        self._postponed: Callable[[], None] | None = None

    @contextmanager
    def range(self) -> Iterator[None]:
        """Marks a block as the recorder's own work, during which other events are ignored."""
        self.is_going_on = True
        try:
            with child_signals_held_back(), self._recorder_work:
                yield
        finally:
            self.is_going_on = False
            self._on_end()
            postponed, self._postponed = self._postponed, None
            if postponed is not None:
                postponed()

    def postpone(self, call: Callable[[], None]) -> bool:
        """Has `call` called at the end of the work; returns False if none is going on."""
        if self.is_going_on:
            self._postponed = call
        return self.is_going_on
