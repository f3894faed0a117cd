"""`selftime run`: the program keeps its output and status; the answer comes on stderr."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.preloaded import Preloaded

import selftime
from selftime.cli.shared_options import separate_program_arguments

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


def only_line(text: str) -> str:
    assert text.count("\n") == 1, text
    return text.removesuffix("\n")


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
    assert separate_program_arguments(args, {"-m", "--module", "-o", "--output"}) == expected


@pytest.mark.torch
def test_a_program_keeps_its_output_and_status(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(TRAINING)
    done = run("--steps", "2", "-o", "runs", "train.py", "--steps", "7", "-o", "x", folder=tmp_path)
    assert done.returncode == 3, done.stderr
    assert done.stdout == "['--steps', '7', '-o', 'x']\ntrained\n"
    [trace] = (tmp_path / "runs").glob("*.gz")
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
    assert len(list((tmp_path / "selftime-runs").glob("*.gz"))) == 1


@pytest.mark.torch
def test_only_the_first_rank_answers(preloaded: Preloaded, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    done = run_forked(preloaded, "train.py", folder=tmp_path, RANK="1")
    assert done.returncode == 3
    assert "Health" not in done.stderr


@pytest.mark.torch
def test_a_rank_that_is_not_listed_keeps_its_ledger_alone(
    preloaded: Preloaded, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    words = ("--ranks", "0,2-3,9", "train.py")
    left_out = run_forked(preloaded, *words, folder=tmp_path, RANK="1", WORLD_SIZE="4")
    assert left_out.returncode == 3
    assert not list((tmp_path / "selftime-runs").glob("*.gz"))
    [ledger] = (tmp_path / "selftime-runs").glob("*.run.jsonl")
    assert '"kind":0,"name":"training"' in ledger.read_text()
    recorded = run_forked(preloaded, *words, folder=tmp_path, RANK="0", WORLD_SIZE="4")
    [other] = set((tmp_path / "selftime-runs").glob("*.run.jsonl")) - {ledger}
    assert '{"pause":' in other.read_text()
    assert len(list((tmp_path / "selftime-runs").glob("*_rank0_*.gz"))) == 1
    assert "also names 9, which this job does not have: its ranks are 0-3" in recorded.stderr


@pytest.mark.parametrize("ranks", ["", "x", "3-1"])
def test_a_list_of_ranks_that_is_none_starts_nothing(tmp_path: Path, ranks: str) -> None:
    (tmp_path / "hello.py").write_text("print('hello')")
    done = run("--ranks", ranks, "hello.py", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert only_line(done.stderr).startswith(f"Error: `--ranks {ranks}`")


def test_a_program_without_torch(tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text("print('hello')")
    done = run("-q", "hello.py", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "hello\n")
    line = only_line(done.stderr)
    assert line == "selftime: no step was recorded: the program never imported torch"


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
    done = run("-q", "hello.py", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "hello\n")
    line = only_line(done.stderr)
    assert line.startswith("selftime: no step was recorded: ")


def test_a_package_without_main_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    for target in ("package", "package.none"):
        done = run("-m", target, folder=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        line = only_line(done.stderr)
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
    assert re.search(r"[KM]iB of trace, more than 1 B: one is recorded without Python frames", said)


@pytest.mark.torch
@pytest.mark.parametrize("limits", [[], ["--max-bytes", "1"]])
def test_an_output_that_is_a_file(preloaded: Preloaded, tmp_path: Path, limits: list[str]) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    done = run_forked(preloaded, *limits, "-o", "train.py", "train.py", folder=tmp_path)
    assert (done.returncode, done.stdout) == (3, "[]\ntrained\n")
    line = only_line(done.stderr)
    assert line.startswith("selftime: nothing was recorded: ")
    assert "is a file" in line


@pytest.mark.torch
def test_a_ledger_that_cannot_be_written(preloaded: Preloaded, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    done = run_forked(preloaded, "--light", "-o", "train.py", "train.py", folder=tmp_path)
    assert (done.returncode, done.stdout) == (3, "[]\ntrained\n")
    line = only_line(done.stderr)
    assert line.startswith("selftime: the ledger of the run could not be written: ")
    assert "is a file" in line


def test_a_module_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    done = run("-m", "nonesuch", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nonesuch" in done.stderr
    assert "Traceback" not in done.stderr


JOB = """
import os, sys, tempfile
import torch
import torch.distributed as dist

def train(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(30):
        net(torch.ones(4)).sum().backward()
        for parameter in net.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
    dist.destroy_process_group()

children = []
for rank in range(2):
    pid = os.fork()
    if not pid:
        train(rank, os.path.join(os.getcwd(), "store"))
        sys.exit()
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
"""


@pytest.mark.torch
def test_a_job_is_answered_for_all_of_its_ranks(preloaded: Preloaded, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(JOB)
    said = run_forked(preloaded, "train.py", folder=tmp_path).stderr

    assert "recorded 5 steps in each of 2 processes:" in said
    assert "this answer is for 2 ranks; for one: selftime-runs/" in said
    assert "2 ranks" in said.partition("this answer")[0].partition("in each of 2 processes:")[2]
    traces = [json.loads(gzip.decompress(path.read_bytes())) for path in tmp_path.rglob("*.gz")]
    assert len({trace["selftime"]["steps"]["first_step"] for trace in traces}) == 1
