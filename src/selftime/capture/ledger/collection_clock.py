"""Times Python's garbage collections without running Python code within them.

A function written in Python must not stand in `gc.callbacks`: an exception that a signal handler
raises while it runs, such as `KeyboardInterrupt` at Ctrl-C, is printed and lost, since the
interpreter cannot raise it there. The callback here is made of functions written in C alone. The
interpreter runs no signal handler in them.
"""

import gc
import threading
from collections import deque
from time import perf_counter_ns
from typing import Final

from selftime.capture.program.startup.selftime_early_log import instants_callback


class CollectionClock:
    """Takes the time of every garbage collection of the process from `attach` to `detach`.

    A collection in any thread stops all threads that run Python, since it holds Python's lock.
    """

    def __init__(self) -> None:
        self.own_threads: Final[set[int]] = set()
        """Identifiers of selftime's own threads: collections in them are selftime's work."""
        self._starts: Final[deque[tuple[int, int]]] = deque()
        """Time in ns and thread of the start of each collection."""
        self.stops: Final[deque[tuple[int, int]]] = deque()
        """Time in ns and thread of the end of each collection."""
        self._callback = instants_callback(self._starts, self.stops)
        self._summed_ns = [0, 0]
        """The time in ns of collections that were taken off the queues and not yet returned: in
        threads of the program, and in selftime's own."""
        self.has_sum = False
        """Whether either of these is not 0."""
        self._total_ns = 0
        """The time in ns of all collections that were taken off the queues so far."""
        self._lock = threading.Lock()

    def attach(self) -> None:
        gc.callbacks.append(self._callback)

    def detach(self) -> None:
        if self._callback in gc.callbacks:
            gc.callbacks.remove(self._callback)

    def begin_own_thread(self) -> None:
        """Counts collections in the calling thread, from now on, as work of the recorder."""
        self.own_threads.add(threading.get_ident())

    def has_any(self) -> bool:
        """Returns whether `take_ns` may return more than 0."""
        return bool(self.stops) or self.has_sum

    def take_ns(self, until: int) -> tuple[int, int]:
        """Returns the time in ns of the collections that ended since the last call.

        Args:
            until: Collections that ended after this instant are left for the next call.

        Returns:
            The time in threads of the program, and the time in selftime's own threads.
        """
        with self._lock:
            self._sum(until)
            (of_program, own), self._summed_ns = self._summed_ns, [0, 0]
            self.has_sum = False
        return of_program, own

    def pending_ns(self) -> int:
        """Returns the time in ns of the program's collections that `take_ns` will return next."""
        self.compact()
        return self._summed_ns[0]

    def total_ns(self) -> int:
        """Returns the time in ns of all collections that have ended since `attach`."""
        self.compact()
        return self._total_ns

    def compact(self) -> None:
        """Replaces the stored instants of collections by their sum, to free memory."""
        if self.stops:
            with self._lock:
                self._sum(perf_counter_ns())

    def _sum(self, until: int) -> None:
        while self.stops and self.stops[0][0] <= until:
            stop, thread = self.stops.popleft()
            start = None
            while self._starts and self._starts[0][0] <= stop:
                start, _ = self._starts.popleft()
            if start is not None:  # else it had begun before `attach`
                self._summed_ns[thread in self.own_threads] += stop - start
                self._total_ns += stop - start
                self.has_sum = True
