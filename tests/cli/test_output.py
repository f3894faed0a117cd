"""Every command with `-o` writes pipes and what the shell makes of `>(command)` in place."""

import gzip
import json
import os
import shlex
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

import selftime
from selftime.cli import app

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the files of POSIX")

ENVIRONMENT: Final = {**os.environ, "PYTHONPATH": str(Path(selftime.__file__).parents[1])}
EVENTS: Final[list[dict[str, Any]]] = [
    {"ph": "X", "cat": "cpu_op", "name": f"op{n}", "pid": 1, "tid": 1, "ts": n * 10, "dur": 5}
    for n in range(50)
] + [
    {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{n}", "pid": 1, "tid": 1}
    | {"ts": n * 100, "dur": 100}
    for n in range(5)
]
SAYING: Final = ("repair trace.json", "cut trace.json --steps 1:2", "redact trace.json")
EXPORTS: Final = tuple(
    f"export trace.json --to {to}" for to in ("chrome", "perfetto", "speedscope", "folded")
)
QUIET: Final = (
    "view operators trace.json --format csv",
    "view operators trace.json --format parquet",
    "advise trace.json",
    "sql trace.json 'select 1'",
    "compare trace.json trace.json",
    "compare trace.json trace.json --format html",
    "check trace.json --budget operators=100",
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": EVENTS}))
    return tmp_path


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """A line in bash, in which `selftime` is the command that is tested."""
    function = f'selftime() {{ "{sys.executable}" -m selftime "$@"; }}; '
    return subprocess.run(  # noqa: S603 - our own line
        ["/bin/bash", "-c", function + line],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        timeout=200,
        check=False,
    )


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "command",
    [*SAYING, *EXPORTS, *QUIET, "report trace.json", "check trace.json --write-baseline"],
)
def test_a_pipe_gets_the_same_as_a_file(command: str, here: Path) -> None:
    words = shlex.split(command)
    option = [] if words[-1] == "--write-baseline" else ["-o"]
    done = CliRunner().invoke(app, [*words, *option, "file"])
    assert done.exit_code == 0, done.output
    os.mkfifo("pipe")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(Path("pipe").read_bytes()), daemon=True)
    reader.start()
    done = CliRunner().invoke(app, [*words, *option, "pipe"])
    assert done.exit_code == 0, done.output
    assert Path("pipe").is_fifo()
    reader.join(60)
    assert got == [Path("file").read_bytes()]
    assert sorted(path.name for path in here.iterdir()) == ["file", "pipe", "trace.json"]


def test_the_shell_may_take_the_output_as_a_program_input(here: Path) -> None:
    line = "selftime view operators trace.json --format csv"
    done = shell(f"{line} > straight; {line} -o >(gzip > packed.gz); wait $!", here)
    assert (done.returncode, done.stderr) == (0, b"")
    packed = gzip.decompress((here / "packed.gz").read_bytes())
    assert packed == (here / "straight").read_bytes()
    assert packed.startswith(b"name,")


@pytest.mark.sweep(1)
@pytest.mark.parametrize("to", ["> got", ">> got", "| cat > got"])
def test_stdout_by_its_name_is_written_in_turn(to: str, here: Path) -> None:
    """The machine's own `/dev/stdout` is such a link; a test must not be able to replace it."""
    (here / "stdout").symlink_to("/proc/self/fd/1")
    line = "selftime view operators trace.json --format csv"
    done = shell(f"{{ echo before; {line} -o stdout; echo after; }} {to}; {line} > plain", here)
    assert (done.returncode, done.stderr) == (0, b"")
    got = (here / "got").read_bytes()
    assert got == b"before\n" + (here / "plain").read_bytes() + b"after\n"
    assert (here / "stdout").is_symlink()


@pytest.mark.sweep(2)
@pytest.mark.parametrize("command", [*SAYING, EXPORTS[0]])
def test_what_is_said_does_not_mix_with_a_trace_on_stdout(command: str, here: Path) -> None:
    done = shell(f"selftime {command} -o /dev/fd/1 | cat", here)
    assert json.loads(done.stdout)["traceEvents"]
    assert done.stderr.startswith(b"/dev/fd/1: ")


@pytest.mark.sweep(1)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_the_size_of_what_went_to_a_pipe_is_told(ending: str, here: Path) -> None:
    (here / f"pipe{ending}").symlink_to("/dev/fd/9")
    line = f"selftime export trace.json --to folded --format json -o pipe{ending} 9> >(cat > got)"
    done = shell(f"{line}; wait $!", here)
    assert done.returncode == 0, done.stderr
    [told] = json.loads(done.stdout)["outputs"]
    assert told["bytes"] == (here / "got").stat().st_size > 0


@pytest.mark.parametrize(
    "command",
    [
        "view operators trace.json --format csv",
        "view operators trace.json --engine local --format csv",
        "view ranks trace.json --format csv",
        "advise trace.json --format markdown",
        "advise trace.json --format json",
        "sql trace.json 'select 1' --format csv",
        "check trace.json --budget operators=9 --format json",
        "compare trace.json trace.json --format json",
        "check trace.json --write-baseline",
    ],
)
def test_the_trace_itself_is_not_overwritten(command: str, here: Path) -> None:
    before = Path("trace.json").read_bytes()
    words = shlex.split(command)
    option = "--write-baseline" if words[-1] == "--write-baseline" else "-o"
    for name in ("trace.json", "./trace.json", str(here / "trace.json")):
        done = CliRunner().invoke(app, [*words, *([option] if option == "-o" else []), name])
        assert done.exit_code == 2, done.output
        assert f"is the trace itself; name another file with `{option}`" in done.stderr
        assert Path("trace.json").read_bytes() == before


def test_a_baseline_that_cannot_be_written_names_its_option(here: Path) -> None:
    words = ["check", "trace.json", "--write-baseline", str(here / "none" / "baseline.json")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "choose another path with `--write-baseline`" in done.stderr


def test_a_folder_that_cannot_be_made_is_one_sentence(here: Path) -> None:
    (here / "job").mkdir()
    for rank in range(2):
        events = [{**event, "ts": event["ts"] + rank} for event in EVENTS]
        (here / "job" / f"rank{rank}.json").write_text(json.dumps({"traceEvents": events}))
    done = CliRunner().invoke(app, ["export", "job", "--to", "csv", "-o", "trace.json/below"])
    assert done.exit_code == 2
    assert "`trace.json/below` cannot be written: Not a directory" in done.stderr
    assert done.stderr.count("Error: ") == 1
