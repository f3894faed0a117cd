"""Tasks for the engines' tests: what the processes that are tested import and run."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

FATAL = "rank2"
"""In the name of the file at which processes end."""


def process(place: str) -> int:
    print(f"reading {place}")  # noqa: T201 - what a task prints is not its answer
    return os.getpid()


KEPT: list[bytes] = []
"""What this process never lets go."""


def keep(_: str) -> int:
    KEPT.append(b"x" * (300 << 20))
    return os.getpid()


def same(place: str) -> str:
    return place


def halves(place: str, *, progress: Callable[[int, int | None], None]) -> str:
    progress(1, 2)
    progress(2, 2)
    return place


def fail(place: str) -> str:
    raise KeyError(place)


def die(place: str, *, marks: str, times: int) -> str:
    """End this process, as often as that, at one of the files; each call leaves a mark."""
    name = Path(place).name
    number = len(list(Path(marks).glob(f"{name}.*")))
    Path(marks, f"{name}.{number}").touch(exist_ok=False)
    if FATAL in name and number < times:
        os.kill(os.getpid(), signal.SIGKILL)
    return place


def outlive(place: str, *, marks: str, doomed: str) -> str:
    """Never answer on one node of a cluster; on others once that has a file, too."""
    import ray  # noqa: PLC0415 - other tests do without it

    node = ray.get_runtime_context().get_node_id()
    which = "doomed" if node == doomed else "other"
    Path(marks, f"{place}.{which}.{os.getpid()}").touch()
    while which == "doomed" or not list(Path(marks).glob("*.doomed.*")):
        time.sleep(0.05)
    return place


def memory(place: str) -> int:
    """Run out of it."""
    if FATAL in place:
        raise MemoryError
    return len(place)
