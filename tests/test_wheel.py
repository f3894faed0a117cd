"""The wheel holds the package, all of it and nothing else, and does not pull in torch."""

import subprocess
import sys
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

import selftime

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "selftime"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    done = subprocess.run(  # noqa: S603 - our own command
        [*command, str(ROOT)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture
def metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as archive:
        [name] = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode("utf-8"))


def test_the_wheel_holds_the_package_and_no_test(wheel: Path) -> None:
    source = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    expected = {name for name in source if not name.endswith("_test.py")}
    with ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert "selftime/py.typed" in held
    assert held == expected


def test_the_wheel_holds_the_licence_and_the_command(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        [entries] = [n for n in names if n.endswith("entry_points.txt")]
        text = archive.read(entries).decode("utf-8")
    assert [n for n in names if n.endswith("licenses/LICENSE")]
    assert "selftime = selftime.cli:main" in text


def test_torch_is_an_extra(metadata: Message) -> None:
    needed = [str(line) for line in metadata.get_all("Requires-Dist", [])]
    plain = [line for line in needed if "extra ==" not in line]
    assert len(plain) > 3
    assert not [line for line in plain if line.startswith(("torch", "ray", "tensorboard"))]
    assert [line for line in needed if line.startswith("torch") and "extra ==" in line]


def test_the_version_is_the_packages(metadata: Message) -> None:
    assert metadata["Version"] == selftime.__version__
