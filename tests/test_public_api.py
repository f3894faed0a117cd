"""The public door: its names, in order, imported at first use, each with its sentence."""

import subprocess
import sys
from types import ModuleType

import pytest

import selftime

PROMISED = {
    "Job",
    "Trace",
    "load",
    "profile",
    "record_function",
    "schedule",
    "tensorboard_trace_handler",
}
"""What the documents tell people to write."""

RECORDING = ("profile", "record_function", "schedule")
"""Names that are nothing without torch."""


def in_fresh_process(script: str) -> str:
    done = subprocess.run(  # noqa: S603 - our own lines
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_promised_names_are_public() -> None:
    assert set(selftime.__all__) >= PROMISED


def test_names_are_sorted() -> None:
    assert list(selftime.__all__) == sorted(selftime.__all__)


def test_only_listed_names_are_shown() -> None:
    assert dir(selftime) == list(selftime.__all__)


def test_names_are_imported_at_first_use() -> None:
    script = (
        "import sys, selftime\n"
        "print([n for n in selftime.__all__ if n in vars(selftime) and n != '__version__'],"
        " [m for m in ('numpy', 'polars', 'rich', 'typer') if m in sys.modules])"
    )
    assert in_fresh_process(script) == "[] []"


def test_reading_needs_no_torch() -> None:
    script = (
        "import sys\nsys.modules['torch'] = None\nimport selftime\n"
        "print(selftime.load.__name__, selftime.Trace.__name__, selftime.Job.__name__)"
    )
    assert in_fresh_process(script) == "load Trace Job"


@pytest.mark.parametrize("name", RECORDING)
def test_recording_without_torch_says_what_to_install(name: str) -> None:
    script = (
        "import sys\nsys.modules['torch'] = None\n"
        "import selftime\nfrom selftime.errors import MissingDependency\n"
        f"try: selftime.{name}\n"
        "except MissingDependency as error: print(error)"
    )
    assert "torch" in in_fresh_process(script)


def test_an_unknown_name_is_an_attribute_error() -> None:
    name = "no_such_name"
    with pytest.raises(AttributeError, match="no_such_name"):
        getattr(selftime, name)


@pytest.mark.torch
def test_every_name_has_a_docstring() -> None:
    pytest.importorskip("torch")
    values = {name: getattr(selftime, name) for name in selftime.__all__}
    texts = {
        name: value for name, value in values.items() if not isinstance(value, (str, ModuleType))
    }
    assert {name for name, value in texts.items() if not (value.__doc__ or "").strip()} == set()


@pytest.mark.sweep
@pytest.mark.torch
def test_star_import_gives_the_names() -> None:
    pytest.importorskip("torch")
    script = "import selftime\nfrom selftime import *\nprint(set(selftime.__all__) <= set(dir()))"
    assert in_fresh_process(script) == "True"
