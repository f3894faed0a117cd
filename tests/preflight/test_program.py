"""`selftime preflight`: programs as people write them, from the command line."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.preloaded import Preloaded

import selftime
from selftime.reports.schemas import schema

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

PYTHONPATH = str(Path(selftime.__file__).parents[1])
EXAMPLES = Path(__file__).parents[2] / "examples" / "segmentation"
SCHEMA = schema("preflight")

TRAINING = """
    import sys
    import torch
    from torch import nn

    print("given", sys.argv[1:])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = nn.Linear(4, 2).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(100):
        loss = net(torch.ones(3, 4, device=device)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown = loss.item()
        if step == 1:
            print("nothing is", torch.isnan(loss).any().item())
    print("to the end")
"""


Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def command(preloaded: Preloaded) -> Command:
    """The command with its words, in a folder."""

    def run(*words: str, folder: Path) -> "subprocess.CompletedProcess[str]":
        return preloaded.run(["-m", "selftime", "preflight", *words], cwd=folder)

    return run


@pytest.fixture
def command_from_the_start() -> Command:
    """The same with a Python of its own, in which the program imports torch."""

    def run(*words: str, folder: Path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "selftime", "preflight", *words],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": PYTHONPATH, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )

    return run


def write(folder: Path, program: str, name: str = "train.py") -> str:
    (folder / name).write_text(textwrap.dedent(program))
    return name


def answer(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.stdout, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(document, SCHEMA)
    return document


def lines(sites: list[dict[str, Any]], file: str, program: str) -> set[str]:
    """The texts of the lines that are named, in a file of this program."""
    source = textwrap.dedent(program).splitlines()
    assert {site["file"] for site in sites} <= {file}
    return {source[site["line"] - 1].strip() for site in sites}


def test_the_lines_of_a_training_loop(command_from_the_start: Command, tmp_path: Path) -> None:
    done = command_from_the_start(
        "--format", "json", write(tmp_path, TRAINING), "--x", "1", folder=tmp_path
    )
    found = answer(done)

    assert done.returncode == 0, done.stderr
    assert "given ['--x', '1']" in done.stderr, "stdout is for the answer"
    assert "to the end" not in done.stderr
    assert found["steps"]["counted"] == 3
    assert found["steps"]["source"] == "optimizer steps"
    assert found["steps"]["ended_early"] is True
    assert found["steps"]["ended_at"] == "train.py:14"
    assert lines(found["sites"], "train.py", TRAINING) == {
        "shown = loss.item()",
        'print("nothing is", torch.isnan(loss).any().item())',
    }
    assert [(s["times"], s["in_steps"]) for s in found["sites"]] == [(1, 3), (1, 1)]
    assert lines(found["outside"], "train.py", TRAINING) == {"net = nn.Linear(4, 2).to(device)"}


@pytest.mark.sweep
def test_selftime_may_be_imported_before_torch(
    command_from_the_start: Command, tmp_path: Path
) -> None:
    program = "\n    from selftime import profile" + TRAINING
    done = command_from_the_start("--format", "json", write(tmp_path, program), folder=tmp_path)

    sites = answer(done)["sites"]
    assert "shown = loss.item()" in lines(sites, "train.py", program)


@pytest.mark.sweep
def test_a_program_may_run_to_its_end(command: Command, tmp_path: Path) -> None:
    done = command("--to-the-end", write(tmp_path, TRAINING), folder=tmp_path)

    assert done.returncode == 0
    assert done.stdout.startswith("given []\nnothing is False\nto the end\n\n")
    assert "98 after the first" in done.stdout or "99 after the first" in done.stdout
    assert "shown = loss.item()" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_wait_fails_only_if_that_is_asked(command: Command, tmp_path: Path) -> None:
    clean = "import torch\ntorch.ones(3, device='cuda').sum()\n"
    waits = clean + "torch.ones((), device='cuda').item()\n"

    assert command("--fail-on-sync", write(tmp_path, waits), folder=tmp_path).returncode == 1
    assert command("--fail-on-sync", write(tmp_path, clean), folder=tmp_path).returncode == 0


def test_a_program_that_uses_no_device_does_not_pass(command: Command, tmp_path: Path) -> None:
    program = write(tmp_path, "import torch; torch.ones(3).sum().item()")
    done = command("--fail-on-sync", program, folder=tmp_path)

    assert done.returncode == 3
    assert "the program put nothing on a CUDA device: there was nothing to check" in done.stderr
    assert command(program, folder=tmp_path).returncode == 0


def test_a_program_that_fails_shows_its_own_traceback(command: Command, tmp_path: Path) -> None:
    program = """
        import torch
        x = torch.ones(3, device="cuda")
        x.sum().item()
        x + torch.ones(3)
    """
    done = command("--format", "json", write(tmp_path, program), folder=tmp_path)
    found = answer(done)

    assert done.returncode == 1
    assert "Expected all tensors to be on the same device" in done.stderr
    assert done.stderr.count("File ") == 1, "no frame is ours"
    assert (found["error"]["file"], found["error"]["line"]) == ("train.py", 5)
    assert [site["line"] for site in found["sites"]] == [4]


def test_a_status_of_the_programs_own_is_kept(command: Command, tmp_path: Path) -> None:
    program = "import sys, torch\ntry:\n    pass\nfinally:\n    sys.exit(5)\n"
    assert command(write(tmp_path, program), folder=tmp_path).returncode == 5


def test_what_a_program_cleans_up_is_cleaned_up(command: Command, tmp_path: Path) -> None:
    program = TRAINING.replace(
        "    for step", "    import atexit; atexit.register(print, 'closed')\n    for step"
    )
    done = command(write(tmp_path, program), folder=tmp_path)
    assert "closed" in done.stdout
    assert "to the end" not in done.stdout


def test_a_module_runs_too(command: Command, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    write(tmp_path / "package", TRAINING, "__main__.py")
    found = answer(command("--format", "json", "-m", "package", "-x", folder=tmp_path))
    assert {site["file"] for site in found["sites"]} == {"package/__main__.py"}


@pytest.mark.sweep
def test_a_program_without_steps_counts_as_one(command: Command, tmp_path: Path) -> None:
    program = "import torch\nfor _ in range(4):\n    torch.ones((), device='cuda').item()\n"
    found = answer(command("--format", "json", write(tmp_path, program), folder=tmp_path))
    assert found["steps"] == {
        "counted": 0,
        "source": None,
        "ended_early": False,
        "ended_at": None,
    }
    assert [(site["times"], site["in_steps"]) for site in found["sites"]] == [(4, 0)]


@pytest.mark.sweep
def test_an_answer_goes_to_a_file(command: Command, tmp_path: Path) -> None:
    name = write(tmp_path, "import os, torch\nprint('mine')\nos.chdir('/')\n")
    done = command("--format", "json", "-o", "found.json", name, folder=tmp_path)
    assert done.stdout == "mine\n"
    jsonschema.validate(json.loads((tmp_path / "found.json").read_text()), SCHEMA)


@pytest.mark.sweep
def test_steps_that_come_late_are_waited_for(command: Command, tmp_path: Path) -> None:
    program = """
        import torch
        from torch import nn

        policy = nn.Linear(4, 2, device="cuda")
        optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
        for update in range(9):
            with torch.no_grad():
                for _ in range(8):
                    policy(torch.ones(1, 4, device="cuda"))
            loss = policy(torch.ones(3, 4, device="cuda")).sum()
            loss.backward()
            optimizer.step()
            loss.item()
    """
    found = answer(command("--format", "json", write(tmp_path, program), folder=tmp_path))
    assert found["steps"]["source"] == "optimizer steps"
    assert lines(found["sites"], "train.py", program) == {"loss.item()"}


def test_the_words_of_the_command_are_checked(command: Command, tmp_path: Path) -> None:
    for words, said in (
        (("none.py",), "the script `none.py` does not exist"),
        ((), "there is no program to run"),
        (("--steps", "0", "x.py"), "steps"),
    ):
        done = command(*words, folder=tmp_path)
        assert done.returncode == 2
        assert said in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.sweep
def test_there_is_nothing_to_verify_without_a_device(command: Command, tmp_path: Path) -> None:
    import torch  # noqa: PLC0415 - the module may be skipped without it

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    done = command("--verify", write(tmp_path, "import torch\n"), folder=tmp_path)
    assert done.returncode == 2
    assert "torch finds none on this machine" in done.stderr
    assert done.stderr.count("\n") == 1


def test_all_waits_of_the_masked_loss_are_found_and_none_of_its_repair(command: Command) -> None:
    words = ("--size", "16", "--batch", "2")
    found = answer(command("--format", "json", "masked_loss.py", *words, folder=EXAMPLES))
    program = (EXAMPLES / "masked_loss.py").read_text()
    source = program.splitlines()
    told = {
        (source[site["line"] - 1].strip(), site["kind"], site["phase"]) for site in found["sites"]
    }
    chosen = "loss = self.loss(outputs.permute(0, 2, 3, 1)[counts], labels[counts])"
    assert told == {
        ("background = torch.nonzero(labels == BACKGROUND, as_tuple=True)", "sync", "forward"),
        ("labels[background] = IGNORED", "copy_to_device", "forward"),
        ("kinds = torch.unique(labels)", "sync", "forward"),
        (chosen, "sync", "forward"),
        (chosen, "sync", "backward"),
    }
    assert sum(site["times"] for site in found["sites"]) == 6
    assert found["harmless"] == 2

    repaired = answer(command("--format", "json", "masked_loss_fixed.py", *words, folder=EXAMPLES))
    assert repaired["sites"] == []
    assert repaired["steps"]["counted"] == 3
