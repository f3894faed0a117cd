"""The command as it is, on this machine and on spoilt ones."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]

MISSING = 'raise ModuleNotFoundError("No module named \'torch\'", name="torch")'
"""What Python says where there is no torch."""

pytestmark = pytest.mark.torch


def doctor(folder: Path, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    paths = [environment.pop("first", ""), str(ROOT / "src")]
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", "from selftime.cli import main; main()", "doctor", *words],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "COLUMNS": "80",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


def findings(done: "subprocess.CompletedProcess[str]") -> dict[str, dict[str, Any]]:
    told = json.loads(done.stdout)
    assert told["format"] == "selftime.doctor/1"
    assert told["can_record"] is (done.returncode == 0)
    return {finding["check"]: finding for finding in told["findings"]}


def test_this_machine_records(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    done = doctor(tmp_path, "--format", "json")
    found = findings(done)

    if found["device"]["seen"].startswith("none"):
        assert done.returncode == 0
    assert done.stderr == ""
    tried = ("torch", "kineto", "capture", "lines", "host clock", "workers")
    assert {found[check]["state"] for check in tried} == {"ok"}
    assert list(tmp_path.iterdir()) == []


def spoilt(folder: Path, code: str) -> str:
    """A folder with a torch that runs this code in place of being one."""
    package = folder / "packages" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(code)
    return str(package.parent)


def test_a_python_without_torch(tmp_path: Path) -> None:
    done = doctor(tmp_path, first=spoilt(tmp_path, MISSING))

    assert done.returncode == 1
    assert "not installed for this Python" in done.stdout
    assert done.stdout.endswith("1 problem prevents recording.\n")
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_torch_that_ends_the_process(tmp_path: Path) -> None:
    crash = "import os, signal\nos.kill(os.getpid(), signal.SIGILL)"
    found = findings(doctor(tmp_path, "--format", "json", first=spoilt(tmp_path, crash)))

    assert found["torch"]["state"] == "problem"
    assert "was ended by SIGILL" in found["torch"]["seen"]


@pytest.mark.sweep
def test_a_torch_that_hangs(tmp_path: Path) -> None:
    hang = "import time\ntime.sleep(600)"
    done = doctor(tmp_path, "--format", "json", "--seconds", "4", first=spoilt(tmp_path, hang))

    assert done.returncode == 1
    assert "gave no answer within 4 s" in findings(done)["torch"]["seen"]


def test_a_temporary_folder_that_is_not_there(tmp_path: Path) -> None:
    first = spoilt(tmp_path, MISSING)
    done = doctor(tmp_path, "--format", "json", first=first, TMPDIR=str(tmp_path / "none"))
    found = findings(done)["temporary folder"]

    assert found["state"] == "warning"
    assert "`TMPDIR` is set to" in found["seen"]
