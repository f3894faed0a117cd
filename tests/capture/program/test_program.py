import py_compile
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from selftime.capture.program import main_code
from selftime.capture.program.main_code import ProgramNotRunnable
from selftime.capture.program.python_program import PythonProgram
from selftime.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.capture.conftest import Runner


@pytest.fixture
def record(record_from_the_start: "Runner") -> "Runner":
    """Here it is the start of a process that is looked at."""
    return record_from_the_start


def test_a_script_that_is_not_there_is_said_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the script `.*none\.py` does not exist"):
        PythonProgram(str(tmp_path / "none.py"), [], module=False)
    with pytest.raises(UsageError, match="is not a module's name"):
        PythonProgram("train.py/x", [], module=True)


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
        PythonProgram("no_such_module", [], module=True)


@pytest.mark.torch
def test_a_package_is_run_by_its_main(record: "Runner") -> None:
    record.write("import sys", "package/__init__.py")
    record.write("print(__name__, __package__, __spec__.name, __file__)", "package/__main__.py")
    outcome = record.outcome(record.start("module", "package"))

    assert outcome.status == 0, outcome.stderr
    path = record.folder / "package" / "__main__.py"
    assert outcome.stdout == f"__main__ package package.__main__ {path}\n"


LOOK_AROUND = """
    import sys, part
    print(__name__, __file__, __package__, __cached__, type(__loader__).__name__)
    print(__spec__ and (__spec__.name, __spec__.origin), sys.argv, sys.path[0])
    print(sorted(name for name in globals() if name.startswith("__")))
    part.fail()
"""


def make_folder(record: "Runner", folder: str) -> None:
    record.write(LOOK_AROUND, f"{folder}/__main__.py")
    record.write("def fail():\n    raise ValueError('no data')\n", f"{folder}/part.py")


def make_archive(record: "Runner", name: str) -> None:
    make_folder(record, "inside")
    with zipfile.ZipFile(record.folder / name, "w") as archive:
        for file in (record.folder / "inside").glob("*.py"):
            archive.write(file, file.name)


def make_compiled(record: "Runner", name: str) -> None:
    make_folder(record, "inside")
    (record.folder / "inside" / "part.py").rename(record.folder / "part.py")
    source = str(record.folder / "inside" / "__main__.py")
    py_compile.compile(source, str(record.folder / name), doraise=True)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("make", "target"),
    [
        (make_folder, "program"),
        (make_folder, "program/"),
        (make_archive, "program.zip"),
        (make_archive, "program"),
        (make_compiled, "program.pyc"),
        (make_compiled, "program"),
    ],
)
def test_what_python_runs_is_run_as_python_runs_it(
    record: "Runner", make: "Callable[[Runner, str], None]", target: str
) -> None:
    make(record, target.rstrip("/"))
    plain = subprocess.run(  # noqa: S603 - a test's own program
        [sys.executable, target, "x"],
        cwd=record.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    outcome = record.outcome(record.start("script", target, "x"))

    assert "ValueError: no data" in plain.stderr
    assert (outcome.status, outcome.stdout) == (plain.returncode, plain.stdout)
    python_runner = [line for line in plain.stderr.splitlines() if "<frozen runpy>" not in line]
    assert outcome.stderr.splitlines() == python_runner


@pytest.fixture
def main_module() -> ModuleType:
    return ModuleType("__main__")


def test_a_folder_without_main_is_said_in_a_sentence(
    tmp_path: Path, main_module: ModuleType
) -> None:
    message = "is a folder that cannot be run: it has no `__main__`"
    with pytest.raises(ProgramNotRunnable, match=message):
        main_code.code_of_importable(str(tmp_path), main_module)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("part.py", "")
    with pytest.raises(ProgramNotRunnable, match=r"a\.zip` is an archive that cannot be run"):
        main_code.code_of_importable(str(tmp_path / "a.zip"), main_module)


def test_a_package_without_main_is_said_in_a_sentence(
    tmp_path: Path, main_module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mainless").mkdir()
    (tmp_path / "mainless" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ProgramNotRunnable, match="`mainless` is a package that cannot be run"):
        main_code.code_of_module("mainless", main_module)
    with pytest.raises(ProgramNotRunnable, match=r"there is no module `mainless\.part`"):
        main_code.code_of_module("mainless.part", main_module)
    with pytest.raises(ProgramNotRunnable, match=r"`sys` has no Python code"):
        main_code.code_of_module("sys", main_module)


def test_what_a_package_misses_is_its_own_error(
    tmp_path: Path, main_module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "needy").mkdir()
    (tmp_path / "needy" / "__init__.py").write_text("import nonesuch_at_all")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ModuleNotFoundError, match="nonesuch_at_all"):
        main_code.code_of_module("needy.train", main_module)


@pytest.mark.torch
def test_a_syntax_error_is_shown_as_python_shows_it(record: "Runner") -> None:
    outcome = record("x = (\n")
    plain = subprocess.run(
        [sys.executable, "program.py"], cwd=record.folder, capture_output=True, check=False
    )

    assert outcome.status == plain.returncode == 1
    assert outcome.stderr.splitlines()[-3:] == plain.stderr.decode().splitlines()[-3:]
    assert "selftime" not in outcome.stderr
