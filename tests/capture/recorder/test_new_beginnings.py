"""What of a program is kept where imports, a better source or a signal disturb a recording."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

pytestmark = pytest.mark.torch

TRAINING = """
import torch
{before}
weight = torch.ones(4, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range({steps}):
    {each}
    weight.sum().backward()
    optimizer.step()
print("done")
"""

IMPORT_IN_RECORDED_STEP = """if step == 5:
        import package
"""


def write_package(folder: Path, modules: int, seconds: float) -> None:
    """Writes a package that imports a number of modules, in some seconds."""
    package = folder / "package"
    package.mkdir()
    names = [f"late_{number}" for number in range(modules)]
    for name in names:
        (package / f"{name}.py").write_text(f"import time\ntime.sleep({seconds / modules})\n")
    (package / "__init__.py").write_text("".join(f"from package import {name}\n" for name in names))


def test_a_recording_begins_again_after_a_step_that_imports(record: "Runner") -> None:
    write_package(record.folder, 200, 1.0)

    program = TRAINING.format(before="", steps=30, each=IMPORT_IN_RECORDED_STEP)
    outcome = record(program)

    assert (outcome.status, outcome.stdout) == (0, "done\n"), outcome.stderr
    assert outcome.result["steps_recorded"] == 5
    assert outcome.facts["partial"] is None
    assert not outcome.rows("package/")


def test_a_recording_goes_on_through_few_imports(record: "Runner") -> None:
    write_package(record.folder, 20, 0.2)

    program = TRAINING.format(before="", steps=30, each=IMPORT_IN_RECORDED_STEP)
    outcome = record(program)

    assert outcome.result["steps_recorded"] == 5
    assert outcome.rows("package/")


def test_calls_before_the_only_step_of_an_optimizer_are_kept(record: "Runner") -> None:
    outcome = record("""
        import torch
        net = torch.nn.Linear(4, 4)
        with torch.no_grad():
            for _ in range(4):
                net(torch.ones(4))
        optimizer = torch.optim.LBFGS(net.parameters(), max_iter=5)

        def closure():
            optimizer.zero_grad()
            loss = net(torch.ones(4)).square().sum()
            loss.backward()
            return loss

        optimizer.step(closure)
    """)

    assert outcome.result["steps_recorded"] == 1
    assert outcome.rows("aten::linear")


def test_a_signal_amid_the_recorders_work_ends_the_recording_after_it(record: "Runner") -> None:
    signalling = """
import os, signal
from selftime.capture.profiler.profile import Profile
original = Profile.start_trace
def start_trace(profile):
    if not profile.with_stack:  # the times of the recorded steps are recorded once more
        os.kill(os.getpid(), signal.SIGTERM)
    original(profile)
Profile.start_trace = start_trace
"""
    slow = "for _ in range(200): torch.ones(4) + 1"
    outcome = record(TRAINING.format(before=signalling, steps=10_000, each=slow))

    assert outcome.status == -signal.SIGTERM
    assert outcome.stdout == ""
    assert outcome.facts["partial"] is None
    assert len(outcome.rows("ProfilerStep#")) == 5
