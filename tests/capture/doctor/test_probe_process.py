import signal
import sys
import time
from pathlib import Path

import pytest

from selftime.capture.doctor.probe_process import run_probes, start_probes

TELL = "import json; tell = lambda **line: print(json.dumps(line), flush=True);"


def program(code: str) -> list[str]:
    return [sys.executable, "-c", TELL + code]


def test_answers_and_errors_by_stage() -> None:
    code = "tell(stage='one', answer={'a': 1}); tell(stage='two', error='ValueError: no')"
    found = run_probes(["one", "two"], seconds=60, command=program(code))

    assert found.answer("one") == {"a": 1}
    assert found.answer("two") is None
    assert found.error("two") == "ValueError: no"
    assert found.end_reason is None


@pytest.mark.timed
def test_what_hangs_is_ended_and_keeps_what_it_told() -> None:
    code = "import time; tell(stage='one', answer={}); time.sleep(600)"
    found = run_probes(["one", "two", "three"], seconds=3, command=program(code))

    assert found.answer("one") == {}
    assert found.error("two") == "the process gave no answer within 3 s"
    assert found.error("three") is None, "it never came to that"


def test_what_a_hanging_trial_started_ends_with_it() -> None:
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'], stdin=None);"
    code = f"import os; r, w = os.pipe(); os.dup2(r, 0); {child}"
    found = run_probes(["one"], seconds=2, command=program(code))

    assert found.error("one") == "the process gave no answer within 2 s"


def test_what_is_not_waited_for_ends(tmp_path: Path) -> None:
    code = (
        f"import pathlib, time; pathlib.Path({str(tmp_path / 'begun')!r}).touch(); time.sleep(600)"
    )
    with start_probes(["one"], seconds=60, command=program(code)) as running:
        while not (tmp_path / "begun").exists():
            time.sleep(0.02)

    assert running.child.returncode == -signal.SIGKILL


def test_what_crashes_says_by_which_signal() -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    found = run_probes(["one"], seconds=60, command=program(code))

    assert found.error("one") == "the process was ended by SIGSEGV"


def test_what_leaves_early_says_its_status() -> None:
    found = run_probes(["one"], seconds=60, command=program("raise SystemExit(7)"))

    assert found.error("one") == "the process ended with status 7"
    assert run_probes(["one"], seconds=60, command=program("")).error("one") == (
        "the process ended without an answer"
    )


def test_half_a_line_and_words_on_stderr() -> None:
    code = (
        "import sys; print('{\"stage\": \"one\", \"ans', end=''); sys.stderr.write('CUPTI \\xff')"
    )
    found = run_probes(["one"], seconds=60, command=program(code))

    assert found.error("one") == "the process ended without an answer"
    assert found.stderr.startswith("CUPTI")
