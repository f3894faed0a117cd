"""`%selftime` and `%%selftime` in a real shell, without a kernel."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("IPython")

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import selftime
from selftime.reports.page_data.snippets import source_snippet

pytestmark = pytest.mark.torch

NETWORK = """
import torch
net = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""
TRAINING = """%%selftime --steps 3 --warmup 2
for _ in range(20):
    net(torch.randn(4, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


class Shell:
    """A shell whose cells are run one by one."""

    def __init__(self) -> None:
        self.shell: Any = InteractiveShell.instance(colors="nocolor")
        self.run("%load_ext selftime")
        self.run(NETWORK)

    def run(self, cell: str) -> Any:
        with capture_output() as self.shown:
            self.result = self.shell.run_cell(cell, store_history=True)
        return self.result.result

    @property
    def text(self) -> str:
        return str(self.shown.stdout + self.shown.stderr)

    @property
    def answers(self) -> list[Any]:
        """Texts of what was displayed."""
        return [output.data["text/plain"] for output in self.shown.outputs]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)  # of whoever runs the tests
    monkeypatch.chdir(tmp_path)
    made = Shell()
    yield made
    made.shell.history_manager.end_session()
    InteractiveShell.clear_instance()


def test_a_cell_that_makes_steps_is_recorded_by_steps(
    shell: Shell, tmp_path: Path, steps: Callable[[Any], int]
) -> None:
    shell.run(TRAINING)

    assert shell.result.success, shell.text
    assert len(shell.answers) == 1
    (file,) = tmp_path.glob("selftime-runs/*.gz")
    assert steps(selftime.load(file)) == 3


@pytest.mark.sweep
def test_a_cell_without_steps_is_recorded_as_a_whole(shell: Shell) -> None:
    assert shell.run("%%selftime\ntotal = net(torch.randn(4, 8)).sum()\n42") == 42

    (answer,) = shell.answers
    assert "one step" in answer
    assert shell.run("total.shape") == ()


@pytest.mark.sweep
def test_each_run_of_a_cell_is_a_recording(shell: Shell, tmp_path: Path) -> None:
    shell.run(TRAINING)
    shell.run(TRAINING)
    assert len(list(tmp_path.glob("selftime-runs/*.gz"))) == 2


def test_a_statement_keeps_its_value(shell: Shell) -> None:
    assert shell.run("value = %selftime --no-stack 6 * 7\nvalue") == 42
    assert len(shell.answers) == 1


def test_a_notebook_shows_the_page(shell: Shell) -> None:
    shell.run("%%selftime\nnet(torch.randn(4, 8)).sum().item()")
    (output,) = shell.shown.outputs
    assert "<iframe" in output.data["text/html"]


def test_a_recording_names_cells_and_their_lines(shell: Shell, tmp_path: Path) -> None:
    shell.run("\ndef slow(x):\n    for _ in range(200):\n        x = torch.sin(x)\n    return x")
    defined = shell.shell.execution_count - 1
    shell.run("%%selftime\nimport torch\nslow(torch.zeros(9))")

    (answer,) = shell.answers
    (output,) = shell.shown.outputs
    assert "ipython-input" not in answer + output.data["text/html"]
    (file,) = tmp_path.glob("selftime-runs/*.gz")
    trace: Any = selftime.load(file)
    places = {(file, line) for file, line in trace.lines.select("file", "line").rows()}
    assert {(f"cell {defined}", 4), (f"cell {defined + 1}", 3)} <= places
    source = source_snippet(trace, f"cell {defined}", 4, 1)
    assert source is not None
    assert source["lines"] == ["        x = torch.sin(x)"]


@pytest.mark.sweep
def test_an_error_in_the_cell_is_shown_as_usual(shell: Shell) -> None:
    shell.run("%%selftime\nx = 1\nraise ValueError('no such thing')")

    assert isinstance(shell.result.error_in_exec, ValueError)
    assert "line 3" in shell.text, "the line as it is numbered in the cell"
    assert "selftime/frameworks" not in shell.text
    assert shell.answers == []
    assert shell.run("x") == 1
    shell.run(TRAINING)
    assert len(shell.answers) == 1, "and the next recording is not disturbed"


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("%selftime --nope 1", "no option `--nope`"),
        ("%selftime --steps many x", "`--steps` is `many`"),
        ("%selftime --steps 0 x", "`steps` of `%selftime` is 0"),
        ("%selftime", "there is nothing to record"),
        ("%%selftime x = 1\ny = 2", "write the code in the cell"),
    ],
)
def test_wrong_words_are_told_in_a_sentence(shell: Shell, cell: str, sentence: str) -> None:
    shell.run(cell)
    assert "UsageError: " in shell.text
    assert sentence in shell.text
    assert "Traceback" not in shell.text


def test_within_another_recording_nothing_is_disturbed(shell: Shell) -> None:
    shell.run("prof = torch.profiler.profile()\nprof.start()")
    shell.run("%selftime net(torch.randn(4, 8))")
    assert "another profiler is recording already" in shell.text
    shell.run("torch.ones(3).sum()\nprof.stop()\nlen(prof.key_averages())")
    assert shell.result.result > 0


@pytest.mark.sweep
def test_what_takes_too_long_is_cut(shell: Shell) -> None:
    shell.run("import time")
    shell.run(
        "%%selftime --seconds 0.3\nfor _ in range(100):\n    time.sleep(0.02)\n    torch.ones(1)"
    )
    assert "the limit of 0.3 s was reached" in shell.answers[0]


def test_a_cell_of_many_calls_is_recorded_in_part(shell: Shell) -> None:
    shell.run("def called(number):\n    return number")
    shell.run("%%selftime\nfor number in range(1_000_000):\n    called(number)\ntorch.ones(1)")

    assert shell.result.success, shell.text
    answer = " ".join(shell.answers[0].split())
    assert "the recording ended early: the program made about" in answer
    assert "only Python functions: torch did nothing while the recorder ran" in answer


def test_the_extension_can_be_unloaded(shell: Shell) -> None:
    shell.run("%unload_ext selftime")
    shell.run("%selftime 1")
    assert "not found" in shell.text
