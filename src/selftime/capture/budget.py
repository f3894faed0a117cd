"""How many steps may be recorded, once one of them shows how large they are."""

from typing import Final

from selftime.capture.run_options import RunOptions
from selftime.units import bytes_text, time_text

__all__ = ["Budget"]

EVENT_BYTES: Final = 400
"""Bytes of an event in the trace's JSON; 383 were measured with shapes and stacks."""

EVENT_HOLD_NS: Final = 16_000
"""How long the end of a recording holds the program, for each event: nothing else runs meanwhile.

The recorder needed 13.7 s to stop with 1,000,000 events, and 5.5 s to hand them out.
"""

LEAST: Final = 4
"""Steps below which nobody can tell a usual one: they are recorded although it holds for long."""


class Budget:
    """The steps that fit, and why they are fewer than was asked for."""

    def __init__(self, options: RunOptions, events: int) -> None:
        """`events` is how many a step makes."""
        self._size = max(1, events * EVENT_BYTES)
        self.hold_ns = max(1, events * EVENT_HOLD_NS)
        """How long the end of a recording of one step holds the program."""
        by_size = max(1, options.max_bytes // self._size)
        by_hold = max(LEAST, int(options.hold * 1e9) // self.hold_ns)
        self._asked = options.active
        self.steps = min(options.active, by_size, by_hold)
        self._held_too_long = self.steps * self.hold_ns > options.hold * 1e9
        self._by_size = by_size <= by_hold

    def told(self) -> str | None:
        """A sentence, if it matters to whoever waits for the program."""
        if self.steps == self._asked and not self._held_too_long:
            return None
        makes = f"a step makes about {bytes_text(self._size)} of trace"
        if self.steps < self._asked and self._by_size:
            return f"{makes}, so {_of(self.steps, self._asked)} recorded"
        holds = f"and holds the program for about {time_text(self.hold_ns)} when the recording ends"
        if self.steps < self._asked:
            return f"{makes} {holds}, so {_of(self.steps, self._asked)} recorded"
        return f"{makes} {holds}"


def _of(some: int, asked: int) -> str:
    verb = "is" if some == 1 else "are"
    return f"{some} of {asked} {'step' if asked == 1 else 'steps'} {verb}"
