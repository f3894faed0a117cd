"""Threads of the program pretend as well: torch keeps its modes for each thread apart."""

import functools
import threading
from typing import Any

from selftime.capture.patches import Patches
from selftime.capture.preflight.calls import Calls
from selftime.capture.preflight.dispatching import Operators
from selftime.capture.preflight.watch import Watch


def follow_threads(patches: Patches, watch: Watch) -> None:
    """Let every thread that is started from now on run with modes of its own."""

    def around(original: Any) -> Any:
        @functools.wraps(original)
        def start(thread: threading.Thread) -> None:
            thread.run = _pretending(thread.run, watch)  # type: ignore[method-assign]  # the purpose
            original(thread)

        return start

    patches.wrap(threading.Thread, "start", around)


def _pretending(run: Any, watch: Watch) -> Any:
    @functools.wraps(run)
    def pretending() -> None:
        with Operators(watch), Calls(watch):
            run()

    return pretending
