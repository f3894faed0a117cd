"""Which cell code is of, as a real shell knows it, under the names of IPython and ipykernel."""

import ast
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("IPython")

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from selftime.capture.facts import notebook_cells
from selftime.capture.facts.notebook_cells import cell_facts, current_cell_count

pytestmark = pytest.mark.torch


class Shell:
    """A shell whose cells are run one by one; `files` are those that `here()` was called in."""

    def __init__(self) -> None:
        self.shell: Any = InteractiveShell.instance(colors="nocolor")
        self.shell.user_ns["here"] = self._here
        self.files: list[str] = []
        self.lines: list[int] = []

    def _here(self) -> None:
        import sys  # noqa: PLC0415 - a frame of the caller

        frame = sys._getframe(1)
        self.files.append(frame.f_code.co_filename)
        self.lines.append(frame.f_lineno)

    def run(self, cell: str) -> None:
        with capture_output():
            self.shell.run_cell(cell, store_history=True)

    def cells(self, first_cell: int = 0) -> list[tuple[int, int] | None]:
        """Returns (cell, line in it) of each call of `here()`; None where that is unknown."""
        told = cell_facts(self.files, first_cell) or {"file": [], "cell": [], "above": []}
        known = {
            file: (cell, above)
            for file, cell, above in zip(told["file"], told["cell"], told["above"], strict=True)
        }
        return [
            (known[file][0], line + known[file][1]) if file in known else None
            for file, line in zip(self.files, self.lines, strict=True)
        ]


def as_ipykernel_names(raw_code: str, transformed_code: str, number: int) -> str:  # noqa: ARG001 - IPython's signature
    return f"/folder/ipykernel_7/{zlib.crc32(raw_code.encode())}.py"


@pytest.fixture(params=["ipython", "ipykernel"])
def shell(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shell]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)  # of whoever runs the tests
    made = Shell()
    if request.param == "ipykernel":
        made.shell.compile.get_code_name = as_ipykernel_names
    yield made
    made.shell.history_manager.end_session()
    InteractiveShell.clear_instance()


def test_outside_of_a_notebook_there_are_no_cells() -> None:
    assert cell_facts([__file__]) is None
    assert current_cell_count() == 0


def test_a_line_is_that_of_the_cell_as_it_was_typed(shell: Shell) -> None:
    shell.run("x = 1")
    shell.run("\n\n%matplotlib_is_not_here\nhere()\n")
    shell.run("y = !echo a\nhere()")
    assert shell.cells() == [(3, 2)]  # the one before raised an error at its magic
    told = cell_facts(shell.files)
    assert told is not None
    assert told["text"] == ["y = !echo a\nhere()"]


def test_code_below_a_magic_is_numbered_in_its_cell(shell: Shell) -> None:
    shell.run("\n%%capture output\nhere()")
    shell.run("x = 1\nhere()")
    assert shell.cells() == [(1, 3), (2, 2)]


def test_code_that_may_be_of_two_cells_is_of_none(shell: Shell) -> None:
    shell.run("%%capture output\nhere()")
    shell.run("here()")
    assert shell.cells() == [None, None]


def test_a_function_is_in_the_cell_that_defines_it(shell: Shell) -> None:
    shell.run("def called():\n    here()")
    shell.run("x = 2")
    shell.run("called()")
    assert shell.cells() == [(1, 2)]


def test_a_cell_that_ran_twice_is_the_last_of_its_runs(shell: Shell) -> None:
    shell.run("here()")
    shell.run("here()")
    files = dict.fromkeys(shell.files)
    assert shell.cells() == ([(2, 1), (2, 1)] if len(files) == 1 else [(1, 1), (2, 1)])


def test_an_edited_cell_keeps_the_text_that_ran(shell: Shell) -> None:
    shell.run("# before\nhere()")
    shell.run("here()  # after")
    told = cell_facts(shell.files)
    assert told is not None
    assert list(zip(told["cell"], told["text"], strict=True)) == [
        (1, "# before\nhere()"),
        (2, "here()  # after"),
    ]


def test_code_that_a_cell_makes_is_of_no_cell(shell: Shell) -> None:
    shell.run("get_ipython().run_cell('z = 5; here()')\nx = 1")
    assert shell.cells() == [None]


def test_after_the_history_was_cleared_nothing_is_claimed(shell: Shell) -> None:
    shell.run("here()")
    shell.shell.history_manager.reset()
    assert shell.cells() == [None]


@pytest.mark.parametrize(
    ("cell", "line"),
    [("%%time\n\nx = 1\nhere()", 4), ("%%time\nhere()", 2), ("x = 1\n%time here()\nx", 2)],
)
def test_timed_code_is_in_its_cell(shell: Shell, cell: str, line: int) -> None:
    shell.run("x = 2")
    shell.run(cell)
    assert shell.files[0].startswith("<timed")
    assert shell.cells() == [(2, line)]


def test_timed_code_of_several_cells_is_told_where_the_recording_began(shell: Shell) -> None:
    shell.run("%%time\nx = 1\nx")
    shell.run("%%time\nhere()")
    assert current_cell_count() == 2
    assert shell.cells(first_cell=2) == [(2, 2)]
    assert shell.cells(first_cell=1) == [None], "both may have run in it"


def test_a_function_of_an_earlier_timed_cell_makes_it_unknown(shell: Shell) -> None:
    shell.run("%%time\ndef called():\n    here()")
    shell.run("%%time\ncalled()")
    assert shell.cells(first_cell=2) == [None]


def test_large_cells_leave_their_text(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook_cells, "MAX_CELL_CHARACTERS", 20)
    monkeypatch.setattr(notebook_cells, "MAX_CHARACTERS", 25)
    for comment in ("1", "2" * 40, "3", "4"):
        shell.run(f"here()  # {comment}")
    told = cell_facts(shell.files)
    assert told is not None
    assert told["cell"] == [1, 2, 3, 4]
    assert told["text"] == ["here()  # 1", None, "here()  # 3", None]
    monkeypatch.setattr(notebook_cells, "MAX_CELLS", 2)
    assert cell_facts(shell.files) is not None
    assert len((cell_facts(shell.files) or {})["file"]) == 2


def test_files_that_are_no_cells_are_left_out(shell: Shell) -> None:
    shell.run("here()")
    assert (cell_facts([__file__, ast.__file__, *shell.files]) or {})["cell"] == [1]
