"""Steps of programs without optimizers, modules, backward passes and DataLoaders: their loops."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from selftime.ingest.ledger import read_ledger
from selftime.ledger_format import UNCOUNTED_STEPS_NAME
from selftime.run import Run

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

pytestmark = pytest.mark.torch

SIMULATION = """
    import time
    import torch

    def simulate(grid, steps):
        for step in range(steps):
            for axis in range(2):
                grid = grid + 0.1 * (torch.roll(grid, 1, axis) - grid)
            time.sleep(0.01)
        return grid

    simulate(torch.rand(8, 8), 150)
"""
ITERATION = """
    import time
    import torch

    def improve(matrix):
        time.sleep(0.01)
        return matrix @ matrix / matrix.norm()

    matrix, count = torch.rand(8, 8), 0
    while count < 150:
        matrix = improve(matrix)
        count += 1
"""
EPOCHS = """
    import time
    import torch

    def batches():
        for _ in range(60):
            time.sleep(0.01)
            yield torch.randn(8, 8)

    def fit(weights):
        for batch in batches():
            weights = weights - 0.01 * torch.tanh(batch @ weights)
        return weights

    weights = torch.zeros(8, 8)
    for epoch in range(3):
        weights = fit(weights)
        torch.linalg.svd(weights)
"""


def ledger(record: "Runner") -> Run:
    [path] = record.folder.rglob("*.run.jsonl")
    return read_ledger(path.read_bytes(), str(path))


def kinds(run: Run) -> Counter[str]:
    return Counter(run.segments.drop_nulls("kind")["kind"].cast(str).to_list())


@pytest.mark.parametrize(("program", "line"), [(SIMULATION, 6), (ITERATION, 10), (EPOCHS, 11)])
def test_the_iterations_of_a_loop_are_the_steps(record: "Runner", program: str, line: int) -> None:
    outcome = record(program)
    assert outcome.result["source"] == "loop iterations"
    assert outcome.result["steps_recorded"] == 5
    run = ledger(record)
    [(file, number)] = set(run.loop_lines.values())
    assert (file.rpartition("/")[2], number) == ("program.py", line)
    found = kinds(run)
    assert 50 <= found["iteration"] + found["iteration, unusual"] <= 190
    assert found[UNCOUNTED_STEPS_NAME] >= 1  # those before the loop was known
    iterations = run.segments.filter(run.segments["kind"].cast(str) == "iteration")
    assert sorted(iterations["duration"].to_list())[iterations.height // 2] > 10_000_000


def test_a_recorded_iteration_begins_and_ends_between_two(record: "Runner") -> None:
    """Each step has the operators of one iteration, and no function of ours is on their stacks."""
    outcome = record(SIMULATION)
    rolls = outcome.rows("aten::roll")
    ours = [row for row in outcome.rows("selftime/capture/") if "/steps/" in row["name"]]
    assert not [roll for roll in rolls if any(_holds(frame, roll) for frame in ours)]
    steps = outcome.rows("ProfilerStep#")
    assert [sum(_holds(step, roll) for roll in rolls) for step in steps] == [2] * 5
    numbers = {roll["args"]["External id"] for roll in rolls}
    assert {outcome.lines[number][1] for number in numbers} == {8}


def _holds(outer: dict[str, Any], inner: dict[str, Any]) -> bool:
    begins = outer["ts"] <= inner["ts"] and outer["tid"] == inner["tid"]
    return bool(begins and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"])


def test_a_program_that_is_traced_is_left_alone(record: "Runner") -> None:
    program = SIMULATION.replace(
        "simulate(torch.rand(8, 8), 150)",
        "import sys; seen = []\n"
        "    def trace(frame, event, argument): seen.append(frame.f_code.co_name)\n"
        "    sys.settrace(trace); simulate(torch.rand(8, 8), 60)\n"
        "    assert sys.gettrace() is trace, sys.gettrace()\n"
        "    assert 'simulate' in seen",
    )
    outcome = record(program)
    assert outcome.result["source"] is None


def test_a_loop_without_torch_is_no_loop_of_steps(record: "Runner") -> None:
    outcome = record("""
        import time
        import torch
        for _ in range(60):
            time.sleep(0.01)
    """)
    assert outcome.result["source"] is None


def test_a_better_source_takes_over(record: "Runner") -> None:
    outcome = record(
        SIMULATION
        + """
    import sys
    weight = torch.zeros(8, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(20):
        optimizer.zero_grad()
        (weight - 1).pow(2).sum().backward()
        optimizer.step()
    assert sys.gettrace() is None
"""
    )
    assert outcome.result["source"] == "optimizer steps"
    assert kinds(ledger(record))["training"] >= 19
