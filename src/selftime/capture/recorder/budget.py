"""How much of a program may be recorded, once one of its steps shows how large they are."""

from typing import Final

from selftime.capture.recorder.run_options import RunOptions
from selftime.units import bytes_text, time_text

EVENT_BYTES: Final = 450
"""Bytes of an event in the trace's JSON: 440 were measured of operators with their shapes and
overloads, 383 where Python's frames are among them."""

EVENT_HOLD_NS: Final = 16_000
"""How long the end of a recording holds the program, for each event: nothing else runs meanwhile.

The recorder needed 13.7 s to stop with 1,000,000 events, and 5.5 s to hand them out.
"""


class Budget:
    """The steps that fit, whether Python's frames do, and why that is less than was asked for."""

    def __init__(self, options: RunOptions, events: int) -> None:
        """`events` is how many a step makes."""
        self._asked, self._most = options.active, options.max_bytes
        self._size = max(1, events * EVENT_BYTES)
        self.hold_ns = max(1, events * EVENT_HOLD_NS)
        """How long the end of a recording of one step holds the program."""
        self.frames = options.with_stack and self._size <= self._most
        """Whether frames are recorded: they are most of a large step."""
        by_size = max(1, self._most // self._size)
        by_hold = max(1, int(options.hold * 1e9) // self.hold_ns)
        self.steps = min(options.active, by_size, by_hold)
        self._drops_frames = options.with_stack and not self.frames
        self._by_size = by_size < by_hold
        self._holds = self.steps * self.hold_ns > options.hold * 1e9

    def told(self) -> str | None:
        """A sentence, if it matters to whoever waits for the program."""
        if self.steps == self._asked and not self._holds and not self._drops_frames:
            return None
        sentence = f"a step makes about {bytes_text(self._size)} of trace"
        if self._drops_frames:
            return (
                f"{sentence}, more than {bytes_text(self._most)}: one is recorded without Python's "
                "frames, which tell the lines; allow more with --max-bytes"
            )
        if self._holds or not self._by_size:
            held = time_text(self.hold_ns)
            sentence += f" and holds the program for about {held} when the recording ends"
        if self.steps < self._asked:
            verb = "is" if self.steps == 1 else "are"
            noun = "step" if self._asked == 1 else "steps"
            option = "--max-bytes" if self._by_size else "--hold"
            sentence += f", so {self.steps} of {self._asked} {noun} {verb} recorded"
            sentence += f"; allow more with {option}"
        return sentence
