"""A program that records itself: of two recorders one can run, and the program's goes first."""

import functools
from collections.abc import Callable
from typing import Any

from torch.autograd import profiler


def watch_rivals(leave_to: Callable[[str], None]) -> Callable[[], None]:
    """Call `leave_to` before any of torch's profilers begins, until what is returned is called."""
    prepare = profiler.profile._prepare_trace  # noqa: SLF001 - every recording begins here

    @functools.wraps(prepare)
    def prepare_trace(profile: Any) -> None:
        if watching:
            leave_to("the program's own profiler")
        prepare(profile)  # type: ignore[no-untyped-call]  # torch

    def stop() -> None:
        watching.clear()
        # Another wrapper may be around ours, which does nothing from now on.
        if profiler.profile._prepare_trace is prepare_trace:  # noqa: SLF001 - likewise
            profiler.profile._prepare_trace = prepare  # type: ignore[method-assign]  # noqa: SLF001 - likewise

    watching = [True]
    profiler.profile._prepare_trace = prepare_trace  # type: ignore[method-assign]  # noqa: SLF001 - likewise
    return stop
