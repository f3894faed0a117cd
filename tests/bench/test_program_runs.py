"""One run of a real program: what it leaves, and that nothing of it is left running."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import selftime
from selftime.bench import BenchedProgram
from selftime.bench.program_runs import RunOutcome, run_program_once
from selftime.errors import UsageError

SOURCE = str(Path(selftime.__file__).parents[1])


def run(folder: Path, code: str, *, seconds: float | None = None, timed: bool = True) -> RunOutcome:
    script = folder / "program.py"
    script.write_text(textwrap.dedent(code))
    return run_program_once(BenchedProgram((str(script),)), timed=timed, seconds=seconds)


def is_alive(process: int) -> bool:
    """Whether it runs; one that has ended and nobody has asked after is dead."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0]
    except OSError:
        return False
    return state != "Z"


def test_a_program_that_does_nothing(tmp_path: Path) -> None:
    ended = run(tmp_path, "")
    assert (ended.status, ended.is_late, ended.last_stderr_line, ended.steps) == (0, False, "", ())
    assert 0 < ended.seconds < 30


def test_a_program_that_fails_leaves_its_last_line(tmp_path: Path) -> None:
    ended = run(tmp_path, "print('out')\nraise ValueError('of \\x1b[31mits own')")
    assert ended.status == 1
    assert ended.last_stderr_line == "ValueError: of \x1b[31mits own"


def test_a_program_that_a_signal_ends_says_which(tmp_path: Path) -> None:
    ended = run(tmp_path, "import os; os.kill(os.getpid(), 9)")
    assert ended.status == -signal.SIGKILL


def test_what_cannot_be_started_is_told(tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.write_bytes(b"\x7fELF")
    bad.chmod(0o755)
    with pytest.raises(UsageError, match="cannot be run"):
        run_program_once(BenchedProgram((str(bad),)), timed=False)


def test_a_program_that_prints_a_lot_shows_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = """
        import sys
        for stream in (sys.stdout, sys.stderr):
            for _ in range(200):
                stream.write("x" * 100_000 + "\\n")
        sys.stderr.write("the end\\r")
    """
    ended = run(tmp_path, code)
    assert (ended.status, ended.last_stderr_line) == (0, "the end")
    assert capfd.readouterr() == ("", "")


def test_a_program_gets_no_input(tmp_path: Path) -> None:
    assert run(tmp_path, "assert input() == ''").last_stderr_line.startswith("EOFError")


@pytest.mark.sweep
def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    code = """
        import signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(100)
    """
    began = time.monotonic()
    ended = run(tmp_path, code, seconds=1)
    assert ended.is_late
    assert time.monotonic() - began < 50


@pytest.mark.sweep
def test_what_a_program_started_ends_with_it(tmp_path: Path) -> None:
    code = f"""
        import pathlib, subprocess, sys
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
        pathlib.Path({str(tmp_path / "child")!r}).write_text(str(child.pid))
    """
    assert run(tmp_path, code).status == 0
    assert not is_alive(int((tmp_path / "child").read_text()))


@pytest.mark.sweep(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_ends_the_bench_leaves_no_process_behind(tmp_path: Path, number: int) -> None:
    """A program with a child, and the bench interrupted as Ctrl-C or a scheduler does."""
    script = tmp_path / "program.py"
    script.write_text(
        "import os, pathlib, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(100)'])\n"
        "draft = pathlib.Path('draft')\n"
        "draft.write_text(f'{os.getpid()} {child.pid}')\n"
        "draft.rename('started')\n"
        "time.sleep(100)\n"
    )
    words = [sys.executable, "-m", "selftime", "bench", script.name, script.name]
    with subprocess.Popen(  # noqa: S603 - our own command
        [*words, "--metric", "process"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": SOURCE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as benching:
        until = time.monotonic() + 60
        while not (tmp_path / "started").exists() and time.monotonic() < until:
            time.sleep(0.02)
        benching.send_signal(number)
        _, told = benching.communicate(timeout=60)
    started = [int(word) for word in (tmp_path / "started").read_text().split()]
    assert len(started) == 2
    assert [process for process in started if is_alive(process)] == []
    assert benching.returncode not in {0, None}
    assert "Traceback" not in told
