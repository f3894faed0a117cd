"""Runs programs through `run_program` in processes of their own, as the command does."""

import gzip
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.preloaded import Child, Preloaded

ROOT = Path(__file__).parents[2]

DRIVER = """
import json, sys
from dataclasses import asdict
from pathlib import Path
from selftime.capture.program.run import RunOptions, run_program

if __name__ == "__main__":
    options = json.loads(sys.argv[1])
    module, target, *args = sys.argv[2:]
    result = run_program(
        target, args, module=module == "module",
        options=RunOptions(folder=Path("runs"), **options),
    )
    Path("result.json").write_text(json.dumps(asdict(result), default=str))
    sys.exit(result.status)
"""


@dataclass
class Outcome:
    """What a program under the recorder left behind."""

    status: int
    stdout: str
    stderr: str
    result: dict[str, Any]
    trace: dict[str, Any]

    @property
    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = self.trace["selftime"]
        return facts

    def rows(self, beginning: str) -> list[dict[str, Any]]:
        events = self.trace["traceEvents"]
        return [e for e in events if e.get("ph") == "X" and e["name"].startswith(beginning)]

    @property
    def lines(self) -> dict[int, tuple[str, int, str, int]]:
        return lines_of(self.facts)


def lines_of(facts: dict[str, Any]) -> dict[int, tuple[str, int, str, int]]:
    """File name, line, function and how, by External id."""
    block = facts["lines"]
    columns = (block[name] for name in ("id", "file", "line", "function", "how"))
    return {
        number: (Path(block["files"][file]).name, line, block["functions"][function], how)
        for number, file, line, function, how in zip(*columns, strict=True)
    }


def read(path: Path) -> dict[str, Any]:
    raw = path.read_bytes()
    text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    trace: dict[str, Any] = json.loads(text)
    return trace


@dataclass
class Runner:
    """Writes a program into a folder and runs it there under the recorder."""

    folder: Path
    preloaded: Preloaded | None
    """Runs the programs; without it each has a Python of its own, and imports torch itself."""

    def start(self, *command: str, **options: Any) -> subprocess.Popen[str] | Child:
        driver = self.folder / "driver.py"
        if not driver.exists():  # a process that started before may be reading it
            driver.write_text(DRIVER)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
        options = {"warmup": 3, **options}  # steady or not: tests know which step is recorded
        words = ["driver.py", json.dumps(options), *command]
        if self.preloaded is not None:
            return self.preloaded.start(words, cwd=self.folder, env=environment)
        return subprocess.Popen(  # noqa: S603 - our own driver
            [sys.executable, *words],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def write(self, program: str, name: str = "program.py") -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(program))
        return name

    def outcome(self, process: subprocess.Popen[str] | Child) -> Outcome:
        stdout, stderr = process.communicate(timeout=120)
        result = self.folder / "result.json"
        found = sorted(self.folder.glob("runs/*.json.gz"))
        traces = [path for path in found if ".slow-step." not in path.name]
        assert len(traces) <= 1
        return Outcome(
            process.wait(),
            stdout,
            stderr,
            json.loads(result.read_text()) if result.exists() else {},
            read(traces[0]) if traces else {},
        )

    def __call__(self, program: str, *args: str, **options: Any) -> Outcome:
        return self.outcome(self.start("script", self.write(program), *args, **options))

    def plainly(self, program: str) -> str:
        """What the program prints without us."""
        command = [sys.executable, self.write(program)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(  # noqa: S603 - a test's own program
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    def signalled(self, program: str, number: signal.Signals) -> Outcome:
        """Run a program that makes the file `ready`, and send it a signal then."""
        process = self.start("script", self.write(program))
        while not (self.folder / "ready").exists():
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.02)
        process.send_signal(number)
        return self.outcome(process)


@contextmanager
def running(folder: Path, preloaded: Preloaded | None) -> Iterator[Runner]:
    yield Runner(folder, preloaded)
    assert not list(folder.glob("runs/.*")), "no temporary file is left"


@pytest.fixture
def record(tmp_path: Path, preloaded: Preloaded) -> Iterator[Runner]:
    with running(tmp_path, preloaded) as runner:
        yield runner


@pytest.fixture
def record_from_the_start(tmp_path: Path) -> Iterator[Runner]:
    """The same with a Python of its own, for what happens before and while torch is imported."""
    pytest.importorskip("torch")
    with running(tmp_path, None) as runner:
        yield runner


ReadTrace = Callable[[Path], dict[str, Any]]
"""Reads a trace file, packed or not."""


@pytest.fixture
def read_trace() -> ReadTrace:
    return read
