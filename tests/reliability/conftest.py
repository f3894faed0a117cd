"""Runs a program as Python runs it and under `selftime run`, and tells what differs."""

import hashlib
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import pytest

ROOT: Final = Path(__file__).parents[2]
LIMIT_S: Final = 240

TRAINING: Final = """
import os, signal, sys, threading, time
import torch

torch.manual_seed(0)
net = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)


def step():
    loss = net(torch.randn(4, 8)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


"""
"""What each program begins with: a step of training that takes 0.2 ms."""


@dataclass
class Ending:
    """How a process ended, and what it left."""

    status: int
    """As `subprocess` tells it: negative for a signal."""
    stdout: bytes
    stderr: bytes
    files: dict[str, str]
    """A hash of each file's content, by its path in the program's folder; "/" for a folder."""
    left: list[str]
    """Files in the temporary folder, and processes of the program, that outlived it.

    Without those of multiprocessing, which may be deleted late.
    """


@dataclass
class Program:
    """A program, and the circumstances in which it runs."""

    code: str
    words: tuple[str, ...] = ()
    environment: Mapping[str, str | None] = field(default_factory=dict)
    """Changes of the environment; None removes a variable."""
    stdin: bytes = b""
    stdout: Callable[[], int] | None = None
    """Opens a descriptor for standard output, if that is no pipe that is read."""
    before: Callable[[], None] | None = None
    """Called in the new process before the program: sets its limits."""
    sent: signal.Signals | None = None
    """A signal that is sent when the program has made the file `ready`."""
    name: str = "program.py"
    may_leave_processes: bool = False


Compare: TypeAlias = Callable[[Program], tuple[Ending, Ending]]


def run(program: Program, folder: Path, *, recorded: bool) -> Ending:
    """Runs the program in the folder, which it empties first."""
    work, temporary = folder / "work", folder / "temporary"
    for one in (work, temporary):
        subprocess.run(["/bin/rm", "-rf", one], check=True)  # noqa: S603 - a test's own folder
        one.mkdir()
    path = work / program.name
    path.parent.mkdir(exist_ok=True)
    path.write_text(textwrap.dedent(program.code), "utf-8")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(temporary)}
    environment |= {"PYTHONPATH": str(ROOT / "src"), "RELIABILITY_MARK": str(folder)}
    environment |= {name: value for name, value in program.environment.items() if value is not None}
    for name in (name for name, value in program.environment.items() if value is None):
        environment.pop(name, None)
    own = [sys.executable, program.name, *program.words]
    options = ["--quiet", "--warmup", "3", "--steps", "2", "-o", str(folder / "runs")]
    ours = [sys.executable, "-m", "selftime", "run", *options, *own[1:]]
    target = subprocess.PIPE if program.stdout is None else program.stdout()
    process = subprocess.Popen(  # noqa: S603 - a test's own program
        ours if recorded else own,
        cwd=work,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=target,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: _prepare_process(program),  # noqa: PLW1509 - sets limits only
    )
    if program.stdout is not None:
        os.close(target)
    if program.sent is not None:
        _send_when_ready(process, work / "ready", program.sent)
    try:
        stdout, stderr = process.communicate(program.stdin, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    left = [] if program.may_leave_processes else processes_marked(str(folder))
    left += sorted(one.name for one in temporary.iterdir() if not one.name.startswith("pymp-"))
    return Ending(process.returncode, stdout or b"", _without_our_lines(stderr), _files(work), left)


def _prepare_process(program: Program) -> None:
    """Gives the new process the signals of a terminal's, and the program's limits."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # a shell ignores some in what it runs behind
    if program.before is not None:
        program.before()


def _send_when_ready(
    process: "subprocess.Popen[bytes]", ready: Path, number: signal.Signals
) -> None:
    end = time.monotonic() + LIMIT_S
    while not ready.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(number)


def _without_our_lines(stderr: bytes) -> bytes:
    """What the program wrote, without what two runs of it may differ in: addresses, counts.

    selftime begins each of its lines with its name.
    """
    lines = stderr.splitlines(keepends=True)
    kept = (line for line in lines if not line.startswith((b"selftime: ", b"USDT:")))
    varying = rb"0x[0-9a-f]{6,}|(?<=refcount : )\d+|(?<=line repeated )\d+"
    return re.sub(varying, b"?", b"".join(kept))


def _files(folder: Path) -> dict[str, str]:
    found = {}
    for path in folder.rglob("*"):
        if "__pycache__" in path.parts:
            continue
        content = "/" if path.is_dir() else _content_hash(path)
        found[str(path.relative_to(folder))] = content
    return found


def _content_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "special"


def processes_marked(mark: str) -> list[str]:
    """Names the processes that have the mark in their environment, after a second of grace."""
    end = time.monotonic() + 1
    while True:
        found = []
        for folder in Path("/proc").iterdir():
            if not folder.name.isdecimal():
                continue
            try:
                if f"RELIABILITY_MARK={mark}".encode() in (folder / "environ").read_bytes():
                    found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.05)


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    """Returns how a program ends as Python runs it, and how under `selftime run`."""
    pytest.importorskip("torch")

    def both(program: Program) -> tuple[Ending, Ending]:
        return (
            run(program, tmp_path, recorded=False),
            run(program, tmp_path, recorded=True),
        )

    return both
