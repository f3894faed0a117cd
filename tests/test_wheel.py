"""The wheel holds the package, the built page, nothing else, and does not pull in torch.

It is built as a release is: a source archive first, then the wheel from that archive alone.
"""

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

import selftime

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = ROOT / "src" / "selftime"
STATIC: Final = "selftime/reports/static/"
PAGE: Final = {f"{STATIC}{name}" for name in ("app.css", "app.js", "index.html")}


def build(
    source: Path, outdir: Path, *words: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(outdir)]
    return subprocess.run(  # noqa: S603 - our own command
        [*command, *words, str(source)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(env or {})},
    )


def contents(wheel: Path) -> dict[str, bytes]:
    with ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def lacking(wheel: Path) -> set[str]:
    """Files of the page that a wheel should hold and does not, or holds empty."""
    held = contents(wheel)
    return {name for name in PAGE if not held.get(name)}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source archive, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    [found] = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def archive(built: Path) -> Path:
    [found] = built.glob("*.tar.gz")
    return found


@pytest.fixture
def source(archive: Path, tmp_path: Path) -> Path:
    """The source archive, unpacked."""
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "source", filter="data")
    [folder] = (tmp_path / "source").iterdir()
    return folder


@pytest.fixture
def metadata(wheel: Path) -> Message:
    [text] = [data for name, data in contents(wheel).items() if name.endswith("-info/METADATA")]
    return Parser().parsestr(text.decode("utf-8"))


def test_the_wheel_holds_the_package_and_no_test(wheel: Path) -> None:
    expected = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.match("*_test.py")
    }
    held = {name for name in contents(wheel) if ".dist-info/" not in name}
    assert "selftime/py.typed" in held
    assert without_page(held) == without_page(expected)


def without_page(names: set[str]) -> set[str]:
    return {name for name in names if not name.startswith(STATIC)}


def test_the_wheel_holds_the_page(wheel: Path) -> None:
    assert lacking(wheel) == set()
    held = contents(wheel)
    page = held[f"{STATIC}index.html"].decode("utf-8")
    assert 'src="app.js"' in page
    assert 'href="app.css"' in page
    assert {name for name in held if name.endswith((".ts", ".tsx", ".map"))} == set()


def test_the_wheel_names_the_licences_of_what_the_page_bundles(wheel: Path) -> None:
    text = contents(wheel)[f"{STATIC}licences.txt"].decode("utf-8")
    assert "preact" in text
    assert "Permission is hereby granted" in text
    assert str(Path.home()) not in text


@pytest.mark.sweep
def test_a_second_build_is_the_same_to_the_byte(wheel: Path, source: Path, tmp_path: Path) -> None:
    done = build(source, tmp_path / "again", "--wheel")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "again" / wheel.name).read_bytes() == wheel.read_bytes()


@pytest.mark.sweep
def test_without_the_hook_the_page_is_lacking(wheel: Path, source: Path, tmp_path: Path) -> None:
    """That wheel installs without a word, so the test of the page must tell it."""
    done = build(source, tmp_path / "bare", "--wheel", env={"HATCH_BUILD_NO_HOOKS": "true"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert lacking(tmp_path / "bare" / wheel.name) == PAGE


@pytest.mark.sweep
def test_a_broken_source_of_the_page_fails_the_wheel(source: Path, tmp_path: Path) -> None:
    (source / "frontend" / "src" / "shell" / "shell.tsx").unlink()
    done = build(source, tmp_path / "broken", "--wheel")
    assert done.returncode != 0
    assert "shell.tsx" in done.stdout + done.stderr
    assert not list((tmp_path / "broken").glob("*.whl"))


@pytest.mark.sweep
def test_a_partial_page_fails_the_wheel(source: Path, tmp_path: Path) -> None:
    (source / "frontend" / "build.mjs").write_text("// builds nothing\n", encoding="utf-8")
    done = build(source, tmp_path / "partial", "--wheel")
    assert done.returncode != 0
    assert "the build of the page left out app.js, app.css, index.html" in done.stderr + done.stdout


def test_the_source_archive_holds_what_builds_the_page_and_nothing_built(archive: Path) -> None:
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"hatch_build.py", "frontend/package-lock.json", "frontend/src/main.tsx"} <= names
    assert not {name for name in names if "/static/" in name or "node_modules" in name}


def test_the_lock_file_names_no_registry() -> None:
    """So that a build asks the registry that the builder has configured."""
    lock = json.loads((ROOT / "frontend" / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert packages
    assert {name for name, entry in packages.items() if "resolved" in entry} == set()
    assert {name for name, entry in packages.items() if "integrity" not in entry} == set()


def test_the_wheel_holds_the_licence_and_the_command(wheel: Path) -> None:
    held = contents(wheel)
    [entries] = [data for name, data in held.items() if name.endswith("entry_points.txt")]
    assert [name for name in held if name.endswith("licenses/LICENSE")]
    assert "selftime = selftime.cli:main" in entries.decode("utf-8")


def test_torch_is_an_extra(metadata: Message) -> None:
    needed = [str(line) for line in metadata.get_all("Requires-Dist", [])]
    plain = [line for line in needed if "extra ==" not in line]
    assert len(plain) > 3
    assert not [line for line in plain if line.startswith(("torch", "ray", "tensorboard"))]
    assert [line for line in needed if line.startswith("torch") and "extra ==" in line]


def test_the_version_is_the_packages(metadata: Message) -> None:
    assert metadata["Version"] == selftime.__version__
