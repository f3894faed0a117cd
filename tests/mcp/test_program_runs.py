"""None of the processes of a program that an agent runs outlives its answer, whatever it does."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from selftime.mcp.program_runs import KEPT_OUTPUT_BYTES, ProgramOutcome, run_watched

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")

DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    if {clean}:
        os.execve(sys.executable, [sys.executable, "-c", {body!r}], {{}})
    exec({body!r})
    os._exit(0)
time.sleep(0.5)
"""
ALIVE = "import os, sys, time; open({path!r}, 'w').write(str(os.getpid())); time.sleep(60)"


def outcome(
    code: str, folder: Path, *, seconds: float = 30, cancels_after: float = 1e9
) -> ProgramOutcome:
    began = time.monotonic()
    command = [sys.executable, "-S", "-c", code]
    return run_watched(command, folder, seconds, lambda: time.monotonic() - began > cancels_after)


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_program_ends_by_itself(tmp_path: Path) -> None:
    done = outcome("import os, sys; print(os.getcwd()); sys.exit(7)", tmp_path)
    assert (done.status, done.is_late, done.is_cancelled) == (7, False, False)
    assert done.output_end.decode().strip() == str(tmp_path)


def test_input_is_empty(tmp_path: Path) -> None:
    assert outcome("import sys; print(repr(sys.stdin.read()))", tmp_path).output_end == b"''\n"


def test_an_endless_program_is_stopped(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile 1: pass"
    done = outcome(code, tmp_path, seconds=0.5)
    assert done.is_late
    assert done.status == 128 + signal.SIGKILL
    assert done.seconds < 10


def test_a_program_that_takes_sigterm_may_finish(tmp_path: Path) -> None:
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(print('saved')))\n"
        "time.sleep(60)"
    )
    done = outcome(code, tmp_path, seconds=1)
    assert (done.is_late, done.output_end) == (True, b"saved\n")


def test_endless_output_is_read_and_not_kept(tmp_path: Path) -> None:
    done = outcome("while 1: print('x' * 10000)", tmp_path, seconds=1)
    assert done.is_late
    assert len(done.output_end) == KEPT_OUTPUT_BYTES
    assert done.output_bytes > 1 << 20


@pytest.mark.parametrize("clean", [False, True], ids=["daemon", "daemon without environment"])
def test_a_daemon_is_ended(tmp_path: Path, *, clean: bool) -> None:
    file = tmp_path / "pid"
    body = ALIVE.format(path=str(file))
    done = outcome(DAEMON.format(clean=clean, body=body), tmp_path)
    assert done.status == 0
    assert not is_alive(int(file.read_text()))


def test_a_program_may_kill_who_watches_it(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    code = (
        "import os, signal, sys, time\n"
        f"open({str(file)!r}, 'w').write(str(os.getpid()))\n"
        "os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(60)"
    )
    done = outcome(code, tmp_path)
    assert done.status == 128 + signal.SIGKILL
    assert done.seconds < 20
    assert not is_alive(int(file.read_text()))


def test_a_cancelled_program_is_ended(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    done = outcome(ALIVE.format(path=str(file)), tmp_path, cancels_after=0.5)
    assert (done.is_cancelled, done.is_late) == (True, False)
    assert not is_alive(int(file.read_text()))


def test_what_is_left_ends_when_the_server_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    server = os.fork()
    if server == 0:
        try:
            outcome(ALIVE.format(path=str(file)), tmp_path)
        finally:
            os._exit(0)
    until = time.monotonic() + 20
    while not (file.exists() and file.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    program = int(file.read_text())
    assert is_alive(program)
    os.kill(server, signal.SIGKILL)
    os.waitpid(server, 0)
    while is_alive(program) and time.monotonic() < until:
        time.sleep(0.02)
    assert not is_alive(program)
