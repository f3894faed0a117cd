"""Adds up what a program's main thread spends its time on between two ends of steps.

An activity is counted where something of ours is called anyway: a wait for data, an evaluation, a
compilation, a garbage collection or our own work. All instants are in ns of
`time.perf_counter_ns`.
"""

from time import perf_counter_ns
from typing import Final

from selftime.capture.ledger.collection_clock import CollectionClock
from selftime.capture.ledger.core_waits import CoreWaits

LOADING: Final = frozenset({"data_wait", "epoch_boundary"})
"""Activities in which the program waits for data; within an evaluation they count as evaluation."""


class ActivityClock:
    """Times the activities of the current segment of a ledger. Activities may be nested."""

    def __init__(self, began: int, collections: CollectionClock) -> None:
        """Makes a clock that counts from `began` (ns) on."""
        self.counted: dict[str, int] = {}
        """Maps each activity of the current segment to its time in ns."""
        self.base: str | None = None
        """Activity (`evaluation` or None) to count time as while no other activity runs."""
        self.mark = began
        """Until when time is counted, in ns."""
        self.last_end = began
        """When the last activity that `enter` began has ended, in ns."""
        self.running: list[str] = []
        """The activities that `enter` began and `leave` has not ended, the innermost last."""
        self._collections = collections
        self._core_waits = CoreWaits()

    @property
    def current(self) -> str | None:
        """Returns the activity that is being timed; None if none is."""
        innermost = self.running[-1:]  # another thread reads it, too
        part = innermost[0] if innermost else self.base
        if self.base is not None and part in LOADING:
            return self.base  # the waits of an evaluation are part of it
        return part

    def enter(self, part: str) -> None:
        """Counts time from now on as the activity `part`, such as `data_wait`, until `leave`.

        Whatever happens within our own work is our own: we made the garbage, too.
        """
        self.account()
        self.running.append("recording" if "recording" in self.running else part)

    def leave(self) -> None:
        """Ends the activity that the last call of `enter` began."""
        self.account()
        self.last_end = self.mark
        if self.running:
            self.running.pop()

    def account(self, at: int | None = None) -> None:
        """Adds the time since the last call, until `at` or now, to the activity that is running.

        Garbage collections within it are a part of their own, except within our own work.
        """
        now = perf_counter_ns() if at is None else at
        elapsed, self.mark = now - self.mark, now
        if self._collections.has_any():
            collected, own_collected = self._collections.take_ns(now)
            if (collected or own_collected) and "recording" not in self.running:
                self.count("garbage_collection", collected)
                self.count("recording", own_collected)
                elapsed = max(elapsed - collected - own_collected, 0)
        part = self.current if self.running or self.base is not None else None
        if part is not None:
            self.counted[part] = self.counted.get(part, 0) + elapsed

    def end_segment(self, at: int) -> None:
        """Counts until the end of a segment, and how long in it the thread waited for a core."""
        if self.running or self.base is not None or self._collections.has_any():
            self.account(at)  # a part that goes on belongs to both segments
        self.end_quiet_segment(at)

    def end_quiet_segment(self, at: int) -> None:
        """Does so for a segment in which no activity is in progress."""
        self.mark = at
        waited = self._core_waits.take(at)
        if waited:
            self.counted["queued"] = waited

    def count(self, part: str, duration: int) -> None:
        """Adds `duration` ns to the activity `part`, for time that no other activity includes."""
        self.counted[part] = self.counted.get(part, 0) + duration

    def counted_until(self, now: int) -> dict[str, int]:
        """Returns {activity: ns} of the current segment until now, with what is still running."""
        counted = dict(self.counted)
        activity, pending = self.current, self._collections.pending_ns()
        if activity is not None:
            counted[activity] = counted.get(activity, 0) + now - self.mark
        if pending and activity != "recording":
            counted["garbage_collection"] = counted.get("garbage_collection", 0) + pending
        return counted
