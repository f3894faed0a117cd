import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from selftime.capture.program import Program
from selftime.errors import UsageError

if TYPE_CHECKING:
    from tests.capture.conftest import Runner


def test_a_script_that_is_not_there_is_said_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the script `.*none\.py` does not exist"):
        Program(str(tmp_path / "none.py"), [], module=False)
    with pytest.raises(UsageError, match="is a folder; name the script in it"):
        Program(str(tmp_path), [], module=False)
    with pytest.raises(UsageError, match="is not a module's name"):
        Program("train.py/x", [], module=True)


LOOK = """
    import inspect, os, sys
    print(__name__, __file__, __package__, __spec__, __doc__)
    print(sys.argv, os.path.realpath(sys.path[0]))
    print(inspect.getsource(sys.modules["__main__"])[:12])
    print(sorted(name for name in globals() if name.startswith("__")))
"""


@pytest.mark.torch
def test_a_script_finds_the_world_as_python_makes_it(record: "Runner") -> None:
    plain = record.plainly(LOOK)

    assert record(LOOK).stdout == plain


def test_a_module_that_is_not_there_is_said_in_a_sentence() -> None:
    with pytest.raises(UsageError, match="there is no module `no_such_module`"):
        Program("no_such_module", [], module=True)


@pytest.mark.torch
def test_a_package_is_run_by_its_main(record: "Runner") -> None:
    record.write("import sys", "package/__init__.py")
    record.write("print(__name__, __package__, __spec__.name, __file__)", "package/__main__.py")
    outcome = record.outcome(record.start("module", "package"))

    assert outcome.status == 0, outcome.stderr
    path = record.folder / "package" / "__main__.py"
    assert outcome.stdout == f"__main__ package package.__main__ {path}\n"


@pytest.mark.torch
def test_a_missing_part_of_a_package_ends_with_status_1(record: "Runner") -> None:
    record.write("", "package/__init__.py")
    outcome = record.outcome(record.start("module", "package.none"))

    assert outcome.status == 1
    assert "package.none" in outcome.stderr


@pytest.mark.torch
def test_a_syntax_error_is_shown_as_python_shows_it(record: "Runner") -> None:
    outcome = record("x = (\n")
    plain = subprocess.run(
        [sys.executable, "program.py"], cwd=record.folder, capture_output=True, check=False
    )

    assert outcome.status == plain.returncode == 1
    assert outcome.stderr.splitlines()[-3:] == plain.stderr.decode().splitlines()[-3:]
    assert "selftime" not in outcome.stderr
