"""A program in which nothing comes again is recorded in part, once it has worked for long."""

from typing import TYPE_CHECKING

import pytest

import selftime

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

pytestmark = pytest.mark.torch

SINGLE_STEP = """
    import pathlib
    import time
    import torch

    x = torch.ones(50, 50, requires_grad=True)
    optimizer = torch.optim.LBFGS([x])

    def is_recorded():
        return list(pathlib.Path("runs").glob("*.gz"))

    def closure():
        optimizer.zero_grad()
        loss = (x @ x).sum()
        while not is_recorded():
            loss = (x @ x).sum()
            time.sleep(0.01)  # events are few: they are written in no time
        loss.backward()
        return loss

    {before}
    optimizer.step(closure)
    print("done")
"""


@pytest.mark.parametrize("before", ["torch.nn.Linear(50, 50)(x)", ""])
def test_a_single_step_of_seconds_is_recorded_in_part(record: "Runner", before: str) -> None:
    outcome = record(SINGLE_STEP.replace("{before}", before))

    assert (outcome.status, outcome.stdout) == (0, "done\n"), outcome.stderr
    assert outcome.result["steps_recorded"] == 0
    assert "no repeating part was found" in outcome.facts["partial"]
    assert outcome.facts["steps"] == {
        "source": "no steps",
        "window": True,
        "unprofiled_ns": [],
        "profiled_ns": [],
    }
    assert len(outcome.rows("aten::mm")) > 10
    (path,) = (record.folder / "runs").glob("*.gz")
    steps = selftime.load(path).view("steps")
    assert steps["counted"].to_list() == [True]
