"""Steps of programs without optimizers, modules, backward passes and DataLoaders: their loops."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from selftime.ingest.ledger import read_ledger
from selftime.ledger_format import UNCOUNTED_STEPS_NAME, UNUSUAL_KIND_SUFFIX
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
MAKES_DATA_FIRST = """
    import time
    import torch

    def make(number):
        time.sleep(0.01)
        return torch.randn(8, 8) * number

    rows, total = [make(number) for number in range(50)], 0.0
    for row in rows * 4:
        time.sleep(0.01)
        total += row.exp().sum().item()
"""
TWO_LOOPS_IN_TURN = """
    import time
    import torch

    def simulate(grid, steps):
        for step in range(steps):
            time.sleep(0.01)
            grid = grid + 0.1 * (torch.roll(grid, 1, 0) - grid)
        return grid

    def measure(grid, points):
        for point in range(points):
            time.sleep(0.01)
            grid.roll(point, 1).sum().item()

    grid = torch.rand(8, 8)
    for part in range(3):
        grid = simulate(grid, 60)
        measure(grid, 40)
"""
FEW_EPOCHS = """
    import time
    import torch

    weights = torch.zeros(8, 8)
    for epoch in range(5):
        for batch in range(30):
            time.sleep(0.005)
            weights = weights - 0.01 * torch.tanh(weights + 1)
"""
ITEMS_OF_A_BATCH = """
    import time
    import torch

    def batch(size):
        rows = []
        for item in range(size):
            time.sleep(0.01)
            rows.append(torch.randn(8).cumsum(0))
        return torch.stack(rows)

    net = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(6):
        net(batch(80)).mean().backward()
        optimizer.step()
"""
INTERRUPTED_FIRST = """
    import signal
    import time
    import torch

    rows = []
    for row in range(1_000_000):
        time.sleep(0.01)
        rows.append(torch.randn(8).cumsum(0))
        if row == 120:
            signal.raise_signal(signal.SIGINT)
    net = torch.nn.Linear(8, 1)
    for row in rows:
        net(row).mean().backward()
"""
EXACTLY = """
    import time
    import torch

    grid = torch.rand(8, 8)
    for part in range(4):
        for step in range(40):
            time.sleep(0.01)
            grid = torch.roll(grid, 1, 0)
        (torch.rand(600, 600) @ torch.rand(600, 600)).sum()
"""

COSTLY_TO_FOLLOW = """
    import time
    import torch

    def one(value):
        return abs(value)

    def change(row):
        for _ in range(20):
            one(1)
        time.sleep(0.002)
        return row * 0.5

    def solve(matrix, rounds):
        for part in range(rounds):
            for number in range(12):
                matrix = change(matrix)
        return matrix

    solve(torch.rand(8, 8), 140)
"""


def ledger(record: "Runner") -> Run:
    [path] = record.folder.rglob("*.run.jsonl")
    return read_ledger(path.read_bytes(), str(path))


def kinds(run: Run) -> Counter[str]:
    return Counter(run.segments.drop_nulls("kind")["kind"].cast(str).to_list())


@pytest.mark.sweep(1)
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


def without_unusual(found: Counter[str]) -> set[str]:
    return {kind.removesuffix(UNUSUAL_KIND_SUFFIX) for kind in found}


@pytest.mark.sweep
def test_a_later_loop_that_takes_longer_makes_the_steps(record: "Runner") -> None:
    outcome = record(MAKES_DATA_FIRST)
    assert outcome.result["steps_recorded"] == 5
    assert {line for _, line, _, _ in outcome.lines.values()} <= {11, 12}
    run = ledger(record)
    assert without_unusual(kinds(run)) == {"iteration", UNCOUNTED_STEPS_NAME}
    assert run.loop_lines["iteration"][1] == 10
    assert 100 <= kinds(run)["iteration"] <= 199
    names = run.segments["kind"].cast(str).to_list()
    assert names[-1] is None
    first = next(at for at, name in enumerate(names) if name is not None)
    assert first > 10  # iterations of the loop before are part of what comes before the steps
    assert None not in names[first:-1]


@pytest.mark.sweep
def test_a_shorter_loop_in_turn_has_a_kind_of_its_own(record: "Runner") -> None:
    outcome = record(TWO_LOOPS_IN_TURN)
    assert outcome.result["steps_recorded"] == 5
    run = ledger(record)
    assert run.loop_lines["iteration"][1] == 6
    assert run.loop_lines["iteration at program.py:12"][1] == 12
    assert kinds(run)["iteration at program.py:12"] > 40


def test_a_loop_within_one_that_costs_too_much_to_follow_makes_no_steps(record: "Runner") -> None:
    record(COSTLY_TO_FOLLOW)
    run = ledger(record)
    assert {line for _, line in run.loop_lines.values()} == {15}
    assert kinds(run)["iteration"] <= 140


def test_the_batches_of_few_epochs_are_the_steps(record: "Runner") -> None:
    outcome = record(FEW_EPOCHS)
    assert outcome.result["source"] == "loop iterations"
    [(_, line)] = set(ledger(record).loop_lines.values())
    assert line == 7


@pytest.mark.sweep
def test_items_of_a_batch_are_no_steps_before_the_training(record: "Runner") -> None:
    record(ITEMS_OF_A_BATCH)
    assert without_unusual(kinds(ledger(record))) == {"training"}


@pytest.mark.sweep
def test_data_that_is_made_is_no_step_where_the_training_never_begins(record: "Runner") -> None:
    outcome = record(INTERRUPTED_FIRST)
    assert outcome.status == 130
    assert not kinds(ledger(record))


def test_a_loop_that_runs_again_ends_no_more_steps_than_it_has_iterations(
    record: "Runner",
) -> None:
    record(EXACTLY)
    steps = ledger(record).segments.drop_nulls("kind")
    assert steps.height <= 160
    assert not [duration for duration in steps["duration"].to_list() if duration < 5_000_000]


def test_a_long_loop_makes_steps_from_when_it_is_found(record: "Runner") -> None:
    """The jump back over more than 256 instructions has a prefix."""
    work = "\n".join("        grid = grid + 0.1 * grid.roll(1, 0)" for _ in range(30))
    record(f"""
    import time
    import torch

    grid = torch.rand(8, 8)
    for step in range(120):
        time.sleep(0.01)
{work}
    """)
    assert kinds(ledger(record))["iteration"] > 50


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
