"""Measures how long `torch.compile` takes to compile each function, and why it recompiles.

`torch._dynamo` calls back where a compilation begins and ends, and keeps measurements of the last
64. Both are read, nothing is replaced. The module is looked at once the program has loaded it.
"""

import sys
import threading
from collections.abc import Iterator
from time import perf_counter_ns, time_ns
from typing import Any, Final

from selftime.capture.ledger.ledger import Ledger

CALLBACKS: Final = "torch._dynamo.callback"
_MEASURED: Final = "torch._dynamo.utils"


class CompilationClock:
    """Adds the time of each `torch.compile` compilation to the run's wall-time ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._began: int | None = None
        """Value of `perf_counter_ns` when a compilation began in a thread other than the one
        that runs steps; None if none is running there."""
        self._last: Any = None
        """The compiler's measurement object that was last written to the ledger; None at first."""

    def poll(self) -> None:
        """Registers callbacks with the compiler if it is loaded, and logs its new measurements."""
        try:
            self._poll()
        except Exception as error:  # noqa: BLE001 - it is called in the midst of the program
            self._ledger.fail(error)

    def _poll(self) -> None:
        callbacks = sys.modules.get(CALLBACKS)
        handler = getattr(callbacks, "callback_handler", None)
        if handler is None:
            return
        if self._start not in handler.start_callbacks:  # `torch._dynamo.reset` drops them
            handler.start_callbacks.append(self._start)
            handler.end_callbacks.append(self._end)
        for measured in self._new():
            self._ledger.add_line({"compilation": _told(measured)})

    def detach(self) -> None:
        handler = getattr(sys.modules.get(CALLBACKS), "callback_handler", None)
        if handler is None:
            return
        for callbacks, ours in (
            (handler.start_callbacks, self._start),
            (handler.end_callbacks, self._end),
        ):
            if ours in callbacks:
                callbacks.remove(ours)

    def _new(self) -> Iterator[Any]:
        """Yields the compiler's measurements that are not yet in the ledger, the oldest first."""
        kept = getattr(sys.modules.get(_MEASURED), "_compilation_metrics", None)
        if not kept or kept[-1] is self._last:
            return
        known = list(kept)
        numbers = [number for number, one in enumerate(known) if one is self._last]
        self._last = known[-1]
        yield from known[numbers[0] + 1 :] if numbers else known

    def _start(self, *_told: Any) -> None:  # PyTorch 2.4 tells nothing
        try:
            self._enter()
        except Exception as error:  # noqa: BLE001 - it is called in the midst of the program
            self._ledger.fail(error)

    def _end(self, *_told: Any) -> None:
        try:
            self._leave()
        except Exception as error:  # noqa: BLE001 - it is called in the midst of the program
            self._ledger.fail(error)

    def _enter(self) -> None:
        if threading.get_ident() == self._ledger.thread:
            self._ledger.activities.enter("compile")
        else:
            self._began = perf_counter_ns()

    def _leave(self) -> None:
        if threading.get_ident() == self._ledger.thread:
            self._ledger.activities.leave()
        elif self._began is not None:
            self._ledger.activities.count("compile", perf_counter_ns() - self._began)
            self._began = None


def _told(measured: Any) -> dict[str, Any]:
    """Returns a compilation as JSON values; leaves out what this torch version does not measure."""
    began_us = getattr(measured, "start_time_us", None)
    to_clock = perf_counter_ns() - time_ns()
    told = {
        "start": None if began_us is None else began_us * 1000 + to_clock,
        "duration": _nanoseconds(measured),
        "function": getattr(measured, "co_name", None),
        "file": getattr(measured, "co_filename", None),
        "line": getattr(measured, "co_firstlineno", None),
        "reason": getattr(measured, "recompile_reason", None),
        "failure": getattr(measured, "fail_reason", None),
        "forward": getattr(measured, "is_forward", None),
    }
    return {name: value for name, value in told.items() if value is not None}


def _nanoseconds(measured: Any) -> int | None:
    duration = getattr(measured, "duration_us", None)
    if duration is not None:
        return int(duration) * 1000
    seconds = getattr(measured, "entire_frame_compile_time_s", None)
    return None if seconds is None else int(seconds * 1e9)
