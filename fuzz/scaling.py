"""Whether any hostile file costs more than its size: processor time at `n` and at `4 n`.

    python fuzz/scaling.py ["a kind" ...]

Each file is read in a process of its own, with its memory and its time limited. A cost that grows
with the square of the size is 16 times as high, one that grows with it 4 times. Exit status 1 if
one grew more than `FACTOR` times and takes longer than `NOISE`, or its process was ended.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

from hostile import TRACES, Hostile
from hostile_pickles import PICKLES

from selftime.errors import UnreadableTrace
from selftime.ingest.load import load

FACTOR: Final = 9.0
"""Between linear, with a logarithm and what caches do (5 to 6), and square (16)."""
NOISE: Final = 0.5
"""Seconds below which a ratio says nothing."""
MOST_SECONDS: Final = 120
MOST_MEMORY: Final = 4 << 30
KINDS: Final[dict[str, Hostile]] = {**TRACES, **PICKLES}


class Cost(NamedTuple):
    """What reading one file took."""

    seconds: float
    memory: int
    """The most that the process held, in bytes."""
    size: int
    told: str


def measure(kind: str, size: int) -> Cost | None:
    """The cost in a process of its own; None if it was ended."""
    done = subprocess.run(
        [sys.executable, __file__, "--one", kind, str(size)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SELFTIME_WORKERS": "1"},
    )
    if done.returncode:
        print(f"    {kind} at {size} ended with status {done.returncode}: {done.stderr[-300:]}")
        return None
    seconds, memory, length, told = done.stdout.strip().split("\t")
    return Cost(float(seconds), int(memory), int(length), told)


def one(kind: str, size: int) -> None:
    """Read one file here, within the limits, and print what it took."""
    with tempfile.TemporaryDirectory(prefix="selftime-fuzz-") as folder:
        path = Path(folder) / "trace.json"
        path.write_bytes(KINDS[kind].make(size))
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        begun = time.process_time()
        try:
            load(path, cache=False)
            told = "read"
        except UnreadableTrace as error:
            told = str(error).rpartition("cannot be read: ")[2]
        seconds = time.process_time() - begun
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        print(seconds, memory, path.stat().st_size, told, sep="\t")


def main(kinds: list[str]) -> int:
    bad = []
    for kind in kinds or KINDS:
        size = KINDS[kind].size
        small, large = measure(kind, size), measure(kind, 4 * size)
        if small is None or large is None:
            bad.append(kind)
            continue
        ratio = large.seconds / max(small.seconds, 1e-3)
        if ratio > FACTOR and large.seconds > NOISE:
            bad.append(kind)
        print(
            f"{kind:44} {small.seconds:7.2f} s {large.seconds:7.2f} s  x{ratio:5.1f}  "
            f"{large.size / 1e6:7.2f} MB, {large.memory / 1e6:6.0f} MB held  {large.told[:60]}",
            flush=True,
        )
    print(f"{len(bad)} of {len(kinds or KINDS)} kinds cost too much: {', '.join(bad) or 'none'}")
    return int(bool(bad))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(main(sys.argv[1:]))
