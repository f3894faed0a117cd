"""`selftime run`: the program keeps its output and status; the answer comes on stderr."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.preloaded import Preloaded

import selftime
from selftime.cli.arguments import closed

PYTHONPATH = str(Path(selftime.__file__).parents[1])

TRAINING = """
import os, sys
import torch

print(sys.argv[1:], flush=True)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
print("trained")
os.chdir("/")
sys.stderr = open(os.devnull, "w")
sys.exit(3)
"""


def run(*words: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "selftime", "run", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": PYTHONPATH, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def run_forked(
    preloaded: Preloaded, *words: str, folder: Path, **env: str
) -> subprocess.CompletedProcess[str]:
    return preloaded.run(["-m", "selftime", "run", *words], cwd=folder, env={**os.environ, **env})


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["t.py", "-m", "x"], ["t.py", "-m", "x"]),
        (["-m", "p", "-o", "x"], ["-m", "p", "--", "-o", "x"]),
        (["-mp", "-o"], ["-mp", "--", "-o"]),
        (["--module=p", "-m"], ["--module=p", "--", "-m"]),
        (["-o", "-m", "-m", "p", "q"], ["-o", "-m", "-m", "p", "--", "q"]),
        (["--quiet", "-m", "p", "--", "q"], ["--quiet", "-m", "p", "--", "--", "q"]),
        (["--", "-m", "p"], ["--", "-m", "p"]),
        (["-m"], ["-m", "--"]),
        ([], []),
    ],
)
def test_our_options_end_at_the_module(args: list[str], expected: list[str]) -> None:
    assert closed(args, {"-m", "--module", "-o", "--output"}) == expected


@pytest.mark.torch
def test_a_program_keeps_its_output_and_status(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(TRAINING)
    done = run("--steps", "2", "-o", "runs", "train.py", "--steps", "7", "-o", "x", folder=tmp_path)
    assert done.returncode == 3, done.stderr
    assert done.stdout == "['--steps', '7', '-o', 'x']\ntrained\n"
    [trace] = (tmp_path / "runs").iterdir()
    assert "Health" in done.stderr
    assert f"trace saved to runs/{trace.name}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.torch
def test_a_module_runs_quietly(preloaded: Preloaded, tmp_path: Path) -> None:
    (tmp_path / "training.py").write_text(TRAINING)
    done = run_forked(preloaded, "--quiet", "-m", "training", "-m", "x", folder=tmp_path)
    assert done.returncode == 3, done.stderr
    assert done.stdout == "['-m', 'x']\ntrained\n"
    assert "Health" not in done.stderr
    assert len(list((tmp_path / "selftime-runs").iterdir())) == 1


@pytest.mark.torch
def test_only_the_first_rank_answers(preloaded: Preloaded, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    done = run_forked(preloaded, "train.py", folder=tmp_path, RANK="1")
    assert done.returncode == 3
    assert "Health" not in done.stderr


def test_a_program_without_torch(tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text("print('hello')")
    done = run("hello.py", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "hello\n")
    [line] = done.stderr.splitlines()
    assert line.startswith("selftime: nothing was recorded: ")


@pytest.mark.parametrize("words", [(), ("nonesuch.py",), ("-m", "none such")])
@pytest.mark.sweep(2)
def test_no_program(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run(*words, folder=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Error: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("end", ["sys.stdout.close()", "sys.stdout = None", "del sys.stdout"])
@pytest.mark.sweep(1)
def test_a_program_without_a_stdout(tmp_path: Path, end: str) -> None:
    (tmp_path / "hello.py").write_text(f"import sys\nprint('hello')\n{end}\n")
    done = run("hello.py", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "hello\n")
    [line] = done.stderr.splitlines()
    assert line.startswith("selftime: nothing was recorded: ")


def test_a_package_without_main_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    for target in ("package", "package.none"):
        done = run("-m", target, folder=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        [line] = done.stderr.splitlines()
        assert line.startswith("Error: ")
        assert f"`{target}`" in line


def test_a_folder_with_main_is_a_program(tmp_path: Path) -> None:
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "__main__.py").write_text("import sys; sys.exit(5)")
    assert run("program", folder=tmp_path).returncode == 5


@pytest.mark.torch
@pytest.mark.sweep
def test_sizes_are_told_in_units(preloaded: Preloaded, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    said = run_forked(preloaded, "--max-bytes", "1", "train.py", folder=tmp_path).stderr
    assert "KiB of trace, more than 1 B: one is recorded without Python's frames" in said


@pytest.mark.torch
def test_an_output_that_is_a_file(preloaded: Preloaded, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    done = run_forked(preloaded, "-o", "train.py", "train.py", folder=tmp_path)
    assert (done.returncode, done.stdout) == (3, "[]\ntrained\n")
    [line] = done.stderr.splitlines()
    assert line.startswith("selftime: nothing was recorded: ")
    assert "is a file" in line


def test_a_module_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    done = run("-m", "nonesuch", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nonesuch" in done.stderr
    assert "Traceback" not in done.stderr
