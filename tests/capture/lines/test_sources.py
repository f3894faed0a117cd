import json
import linecache
import sys
from pathlib import Path

import pytest

from selftime.capture.lines import sources
from selftime.capture.lines.sources import SourceFiles


def test_the_users_code_is_told_from_installed_code() -> None:
    files = SourceFiles()

    assert files.user_file(__file__) == __file__
    assert files.user_file(json.__file__) is None
    assert files.user_file(pytest.__file__) is None
    assert files.user_file(sources.__file__) is None


def test_a_name_that_was_cut_is_found_again() -> None:
    recorded = SourceFiles.recorded_name(json.__file__)

    assert recorded == str(Path("json", "__init__.py"))
    assert SourceFiles().user_file(recorded) is None


def test_a_file_below_a_folder_of_imports_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.py").touch()
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])

    assert SourceFiles().user_file("model.py") == str(tmp_path / "model.py")


@pytest.mark.parametrize("name", ["<string>", "<frozen os>", "<eval_with_key>.1", "gone.py"])
def test_generated_code_is_nobodys(name: str) -> None:
    assert SourceFiles().user_file(name) is None


def test_a_notebooks_cells_are_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(linecache.cache, "cell.py", (1, None, ["x\n"], "cell.py"))
    files = SourceFiles()

    assert files.user_file("/tmp/ipykernel_1/2.py") == "/tmp/ipykernel_1/2.py"  # noqa: S108 - where notebooks put cells
    assert files.user_file("<ipython-input-3>") == "<ipython-input-3>"
    assert files.user_file("cell.py") == "cell.py"


def test_a_package_of_the_users_choice_is_the_users(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "mine"
    file = str(package / "train.py")

    assert SourceFiles().user_file(file) is None
    assert SourceFiles([str(package)]).user_file(file) == file


def test_the_compilers_output_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/fast/cache")

    assert SourceFiles().user_file("/fast/cache/ab/kernel.py") is None
