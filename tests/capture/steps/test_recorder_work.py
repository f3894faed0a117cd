"""The recorder's own work counts for no step of the program that it records."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import selftime
from selftime import names

torch = pytest.importorskip("torch")

from selftime.capture.steps import RecorderWork, recorder_work  # noqa: E402 - torch is looked for first

if TYPE_CHECKING:
    from tests.capture.conftest import Outcome, ReadTrace, Runner

pytestmark = pytest.mark.torch

OPTIMIZER = """
    import torch

    net = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(30):
        net(torch.randn(8, 16)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""

COMPILED = OPTIMIZER.replace("nn.Linear(16, 1)", "compile(torch.nn.Linear(16, 1), backend='eager')")

IN_TURN = """
    import torch

    nets = [torch.nn.Linear(16, 1) for _ in range(2)]
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
    for step in range(30):
        for net, optimizer in zip(nets, optimizers):
            net(torch.randn(8, 16)).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
"""

LOADED = """
    import torch

    net = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in torch.utils.data.DataLoader(torch.randn(240, 16), batch_size=8):
        net(batch).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""

BY_HAND = """
    import torch

    weight = torch.randn(16, 1, requires_grad=True)
    for step in range(30):
        (torch.randn(8, 16) @ weight).pow(2).mean().backward()
        with torch.no_grad():
            weight -= 0.1 * weight.grad
            weight.grad = None
"""

INFERRING = """
    import torch

    net = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    with torch.inference_mode():
        for step in range(30):
            net(torch.randn(8, 16)).sum().item()
"""

BATCHES = """
    import torch

    for batch in torch.utils.data.DataLoader(torch.randn(240, 16), batch_size=8):
        (batch @ batch.T).sum().item()
"""

TOLD = """
    import selftime
    import torch

    for step in selftime.watch(range(30)):
        torch.randn(8, 16).pow(2).mean().item()
"""

AROUND = (
    ("selftime/capture/steps/", (": step", ": run_backward", ": next_batch", ": __call__")),
    ("selftime/capture/steps/modules.py", (": _call_module", ": _call_watching_nested")),
    (
        "selftime/capture/steps/recorder_work.py",
        (": __enter__", ": __exit__", ": _exit_profiler_range"),
    ),
    ("selftime/frameworks/", (": _iterate_and_record", ": step")),
    ("selftime/capture/profiler/open_ranges.py", (": begin_range", ": end_range")),
    ("selftime/capture/recorder/step_watch.py", (": step", ": _call_safely")),
    ("selftime/capture/recorder/recorder.py", (": on_step_boundary",)),
)
"""What lies around a call of the program's, or is called by it, and the begin and end of marks."""


def spans(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Begins and ends in nanoseconds."""
    times = [(round(row["ts"] * 1000), round(row["dur"] * 1000)) for row in rows]
    return sorted((start, start + duration) for start, duration in times)


def is_around(name: str) -> bool:
    return any(name.startswith(file) and name.endswith(functions) for file, functions in AROUND)


def own(outcome: "Outcome") -> list[tuple[int, int]]:
    rows = outcome.rows(names.SELFTIME_WORK_SLICE)
    assert {row["cat"] for row in rows} == {"overhead"}
    return spans(rows)


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "program", [OPTIMIZER, COMPILED, IN_TURN, LOADED, BY_HAND, INFERRING, BATCHES, TOLD]
)
def test_steps_begin_and_end_where_our_work_does(record: "Runner", program: str) -> None:
    outcome = record(program)
    steps, ours = spans(outcome.rows("ProfilerStep")), own(outcome)

    assert len(steps) == 5
    assert {start for start, _ in steps} <= {end for _, end in ours}
    assert {end for _, end in steps} <= {start for start, _ in ours}


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "program", [OPTIMIZER, COMPILED, IN_TURN, LOADED, BY_HAND, INFERRING, BATCHES, TOLD]
)
def test_nothing_that_we_do_is_in_a_step(record: "Runner", program: str) -> None:
    """But for what is marked as ours, and what cannot but lie around the program's own calls."""
    outcome = record(program)
    steps, ours = spans(outcome.rows("ProfilerStep")), own(outcome)
    found = {
        row["name"]
        for row in outcome.rows("selftime/")
        for begin, end in spans([row])
        if not any(begin <= low and high <= end for low, high in steps)
        if any(begin < high and low < end for low, high in steps)
        if not any(low <= begin and end <= high for low, high in ours)
    }

    assert {name for name in found if not is_around(name)} == set()


def test_what_was_recorded_for_a_short_program_is_freed_after_the_steps(record: "Runner") -> None:
    outcome = record(OPTIMIZER)

    assert len(outcome.rows("selftime/capture/profiler/profile.py")) > 0
    assert [row["name"] for row in outcome.rows("selftime/") if "forget" in row["name"]] == []


def test_a_program_that_ends_soon_has_a_step_without_our_work(record: "Runner") -> None:
    outcome = record(OPTIMIZER.replace("30", "3"))
    [(start, end)], ours = spans(outcome.rows("ProfilerStep")), own(outcome)

    assert start in {until for _, until in ours}
    assert end in {begin for begin, _ in ours}


def test_times_of_steps_leave_our_work_out(monkeypatch: pytest.MonkeyPatch) -> None:
    instants = iter([100, 130, 1000, 1007, 2000, 2500, 4000, 4001])
    monkeypatch.setattr(recorder_work, "perf_counter_ns", lambda: next(instants))
    ours = RecorderWork()

    with ours:
        ours.end_step()
    with ours:  # within a step
        pass
    with ours, ours:
        assert ours.end_step() == (2000 - 130) - (1007 - 1000)
    with ours:
        assert ours.end_step() == 4000 - 2500


def test_the_profiler_of_a_program_marks_its_steps_last_and_first(
    tmp_path: Path, read_trace: "ReadTrace"
) -> None:
    plan = selftime.schedule(wait=0, warmup=1, active=3, repeat=1)
    with selftime.profile(schedule=plan, with_stack=True) as prof:
        for _ in range(4):
            torch.ones(3)
            prof.step()
    prof.write_trace(tmp_path / "t.json")
    rows = [e for e in read_trace(tmp_path / "t.json")["traceEvents"] if e.get("ph") == "X"]
    steps = spans([row for row in rows if row["name"].startswith("ProfilerStep")])
    ours = {
        row["name"].partition(": ")[2]
        for row in rows
        if row["name"].startswith("selftime/")
        for begin, end in spans([row])
        if any(begin < high and low < end for low, high in steps)
    }

    assert len(steps) == 3
    assert ours == {"step", "_open_step_annotation", "_close_step_annotation"}
