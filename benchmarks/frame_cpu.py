"""Processor time of a page's main thread for each frame, read from a recording of Chromium.

Other programs on the machine stretch the time from frame to frame, and not this.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

CATEGORIES: Final = ["devtools.timeline", "disabled-by-default-devtools.timeline", "__metadata"]
"""What of Chromium is recorded: its tasks, and the calls of a page for a frame."""

Event = Mapping[str, Any]


def cpu_of_frames(events: Sequence[Event], *, others: int = 1) -> list[float]:
    """Processor time (ms) of the main thread for each frame in which the page drew.

    It includes all that the thread did since the frame before. `others` is the number of calls a
    frame that whoever measures has asked for: a frame without more has drawn nothing.
    """
    called = [event for event in events if event["name"] == "FireAnimationFrame"]
    threads = {_thread_of(event) for event in called}
    if len(threads) != 1:
        raise ValueError(f"frames are of {len(threads)} threads, expected one")
    on_main = [event for event in events if _thread_of(event) in threads and event["ph"] == "X"]
    tasks = sorted((one for one in on_main if one["name"] == "RunTask"), key=_begin)
    calls = [sum(_begin(task) <= _begin(one) < _end(task) for one in called) for task in tasks]
    frames = [at for at, count in enumerate(calls) if count > 0]
    return [
        sum(task.get("tdur", 0) for task in tasks[last + 1 : frame + 1]) / 1000
        for last, frame in pairwise(frames)
        if calls[frame] > others
    ]


def _thread_of(event: Event) -> tuple[int, int]:
    return event["pid"], event["tid"]


def _begin(event: Event) -> int:
    return int(event["ts"])


def _end(event: Event) -> int:
    return _begin(event) + int(event["dur"])
