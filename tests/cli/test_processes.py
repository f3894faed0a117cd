"""The command as the shell sees it: status, streams, pipes, what it loads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import selftime

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(selftime.__file__).parents[1])}

EVENTS = [
    {"ph": "X", "cat": "cpu_op", "name": f"op{i}", "pid": 1, "tid": 1, "ts": i * 10, "dur": 5}
    for i in range(3000)
]


def command(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "selftime", *words],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


@pytest.fixture
def trace(tmp_path: Path) -> str:
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"traceEvents": EVENTS}))
    return str(file)


def test_bad_input_is_one_sentence_and_status_2(tmp_path: Path) -> None:
    done = command("advise", "nonesuch", folder=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_bad_words_are_status_2(tmp_path: Path) -> None:
    for words in (("nonesuch",), ("advise",), ("view", "--nonesuch")):
        done = command(*words, folder=tmp_path)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


def test_a_closed_pipe_is_quiet(tmp_path: Path, trace: str) -> None:
    words = [sys.executable, "-m", "selftime", "view", "operators", trace, "--format", "csv"]
    with subprocess.Popen(  # noqa: S603 - our own command
        words, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        said = running.stderr.read()
    assert said == b""


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys; from selftime.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'polars', 'numpy', 'rich.console'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(  # noqa: S603 - our own line
        [sys.executable, "-c", script], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"
    assert "Commands:" in done.stdout


def test_output_in_an_encoding_that_lacks_its_letters(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"traceEvents": [{**EVENTS[0], "name": "größe日"}]}))
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-X", "utf8=0", "-m", "selftime", "view", "operators", str(file)],
        env={**ENVIRONMENT, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "gr\\xf6\\xdfe" in done.stdout
