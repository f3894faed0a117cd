"""Commands that are killed at any instant: no finished file is lost, and none is left half done."""

import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from tests.reliability.conftest import ROOT, processes_marked

COMMANDS: Final = {
    "load": ("view", "overview", "trace.json", "--format", "json"),
    "report": ("report", "trace.json", "-o", "out/report.html"),
    "check": ("check", "trace.json", "--write-baseline", "out/baseline.json"),
    "export": ("export", "trace.json", "--to", "chrome", "-o", "out/trace.json"),
    "cut": ("cut", "trace.json", "--steps", "1", "-o", "out/trace.json"),
}
STEPS: Final = 40
OPERATORS: Final = 1_500
"""Operators of a step: 60,000 in all, 14 MB, which several processes read."""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of forty steps."""
    path = tmp_path_factory.mktemp("kills") / "trace.json"
    events = []
    for step in range(STEPS):
        begin = step * OPERATORS * 10
        events.append(_event("user_annotation", f"ProfilerStep#{step}", begin, OPERATORS * 10))
        events += [
            _event("cpu_op", f"aten::op{number % 50}", begin + number * 10, 9)
            for number in range(OPERATORS)
        ]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}), "utf-8")
    return path


def _event(category: str, name: str, begin: int, duration: int) -> dict[str, object]:
    arguments = {"Input Dims": [[32, 64], [64]], "Input type": ["float", "float"]}
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 1,
        "tid": 1,
        "ts": begin,
        "dur": duration,
        "args": arguments,
    }


class Place:
    """A folder with the trace, in which commands run that have a cache of their own."""

    def __init__(self, trace: Path) -> None:
        self.folder = trace.parent / "place"  # always the same: a report tells where its trace lies
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in ("out", "temporary"):
            (self.folder / name).mkdir(parents=True)
        shutil.copy2(trace, self.folder)  # a report tells when it was recorded
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "SELFTIME_CACHE": str(self.folder / "cache"),
            "TMPDIR": str(self.folder / "temporary"),
            "RELIABILITY_MARK": str(self.folder),
        }

    def start(self, words: Sequence[str]) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "selftime", *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def finish(self, words: Sequence[str]) -> bytes:
        process = self.start(words)
        stdout, stderr = process.communicate(timeout=300)
        assert process.returncode == 0, stderr.decode()
        return stdout

    def files(self) -> dict[str, str]:
        """A hash of each file outside the cache, by its path."""
        return {
            path: hashlib.sha256((self.folder / path).read_bytes()).hexdigest()
            for path in self._paths()
            if not path.startswith("cache/")
        }

    def cached(self) -> list[str]:
        """The paths of the cache's files, without the hashes of contents and places in them."""
        paths = (path for path in self._paths() if path.startswith("cache/"))
        return sorted(re.sub("[0-9a-f]{64}", "HASH", path) for path in paths)

    def _paths(self) -> list[str]:
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return sorted(str(path.relative_to(self.folder)) for path in found)


@dataclass(frozen=True)
class Finished:
    """What a command prints and leaves when nothing kills it."""

    words: Sequence[str]
    printed: bytes
    files: dict[str, str]
    cached: list[str]
    seconds: float


@pytest.fixture(scope="module", params=COMMANDS)
def finished(request: pytest.FixtureRequest, trace: Path) -> Finished:
    place = Place(trace)
    words = COMMANDS[request.param]
    begin = time.monotonic()
    printed = place.finish(words)
    seconds = time.monotonic() - begin
    return Finished(words, printed, place.files(), place.cached(), seconds)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("seed", range(200))
def test_a_command_that_is_killed_leaves_all_or_nothing(
    seed: int, finished: Finished, trace: Path
) -> None:
    """Then each file is as a whole run leaves it, and the next run answers as if nothing was."""
    place = Place(trace)
    process = place.start(finished.words)
    chance = random.Random(f"{finished.words} {seed}")  # noqa: S311 - no secret
    time.sleep(chance.uniform(0, 1.1 * finished.seconds))
    process.send_signal(signal.SIGKILL)
    process.communicate()

    assert not processes_marked(str(place.folder))
    assert place.files().items() <= finished.files.items()
    assert set(place.cached()) <= set(finished.cached)

    assert place.finish(finished.words) == finished.printed
    assert place.files() == finished.files
    assert place.cached() == finished.cached


@pytest.mark.sweep
@pytest.mark.parametrize("delay_ms", range(0, 2_000, 100))
def test_two_at_once_leave_what_one_leaves(delay_ms: int, finished: Finished, trace: Path) -> None:
    """Two of one command, in one folder with one cache, the second a little after the first."""
    place = Place(trace)
    first = place.start(finished.words)
    time.sleep(delay_ms / 1_000)
    second = place.start(finished.words)

    for process in (first, second):
        stdout, stderr = process.communicate(timeout=300)
        assert (process.returncode, stdout) == (0, finished.printed), stderr.decode()
    assert place.files() == finished.files
    assert place.cached() == finished.cached
