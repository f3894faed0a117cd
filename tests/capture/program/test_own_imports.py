"""Programs in which a module of ours is what imports torch."""

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

pytestmark = pytest.mark.torch

TRAINING = """
    import torch

    net = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(20):
        net(torch.randn(4, 8)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""

IN_A_THREAD = """
import threading
import selftime

loading = threading.Thread(target=lambda: selftime.profile)
loading.start()
loading.join()
"""


@pytest.fixture
def record(record_from_the_start: "Runner") -> "Runner":
    """Here it is the import of torch that is looked at."""
    return record_from_the_start


def training(opening: str) -> str:
    return f"{opening}\n{textwrap.dedent(TRAINING)}"


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    "opening",
    [
        "from selftime import profile",
        "import selftime; selftime.profile",
        "from selftime import watch",
        "from selftime import *",
        "from selftime.session import profile",
        IN_A_THREAD,
    ],
)
def test_selftime_may_be_imported_before_torch(record: "Runner", opening: str) -> None:
    outcome = record(training(opening))

    assert outcome.result["reason"] is None
    assert outcome.result["steps_recorded"] == 5


@pytest.mark.sweep
def test_so_may_it_by_what_a_module_imports(record: "Runner") -> None:
    record.write("from selftime import profile\n", "helper.py")
    record.write(training("import helper"), "training.py")

    outcome = record.outcome(record.start("module", "training"))

    assert outcome.result["reason"] is None
    assert outcome.result["steps_recorded"] == 5


@pytest.mark.sweep
def test_so_may_it_in_a_process_that_the_program_starts(record: "Runner") -> None:
    record.write(training("from selftime import profile"), "training.py")

    outcome = record("""
        import subprocess, sys
        sys.exit(subprocess.call([sys.executable, "training.py"]))
    """)

    assert outcome.status == 0
    assert [one["steps_recorded"] for one in outcome.result["processes"]] == [5]


@pytest.mark.sweep
def test_an_import_of_ours_that_fails_leaves_torch_watched(record: "Runner") -> None:
    record.write("import torch\nraise ValueError\n", "lightning.py")
    opening = """
try:
    import selftime.frameworks.lightning
except ValueError:
    print("failed")
"""

    outcome = record(training(opening))

    assert outcome.stdout == "failed\n"
    assert outcome.result["steps_recorded"] == 5


def test_a_module_that_is_looked_for_is_not_imported(tmp_path: Path) -> None:
    """A program may ask whether torch is there, and never import it."""
    (tmp_path / "torch.py").write_text("print('imported')\n")
    script = """
import importlib.util, sys
from selftime.capture.program.after_import import after_import, cancel_after_import
after_import("torch", lambda: print("acted"))
importlib.util.find_spec("torch")
import selftime.units
print("looked")
import torch
cancel_after_import("torch")
"""

    done = subprocess.run(  # noqa: S603 - our own line
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["looked", "imported", "acted"]
