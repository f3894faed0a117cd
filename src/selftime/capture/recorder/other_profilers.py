"""A program that records itself: of two recorders one can run, and the program's goes first."""

import functools
from collections.abc import Callable
from typing import Any

from torch.autograd import profiler

from selftime.capture.patches import Patches


def watch_rivals(leave_to: Callable[[str], None]) -> Callable[[], None]:
    """Call `leave_to` before any of torch's profilers begins, until what is returned is called."""

    def around(prepare: Any) -> Any:
        @functools.wraps(prepare)
        def prepare_trace(profile: Any) -> None:
            if watching:
                leave_to("the program's own profiler")
            prepare(profile)

        return prepare_trace

    def stop() -> None:
        watching.clear()  # another wrapper may be around ours, which does nothing from now on
        patches.undo()

    watching = [True]
    patches = Patches()
    patches.wrap(profiler.profile, "_prepare_trace", around)  # every recording begins there
    return stop
