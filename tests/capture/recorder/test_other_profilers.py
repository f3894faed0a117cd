"""A program that records itself goes first; what it recorded is the answer if nothing else is."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

pytestmark = pytest.mark.torch

SELF_RECORDED = """
    import torch

    x = torch.ones(4, requires_grad=True)
    optimizer = torch.optim.SGD([x], lr=0.1)

    def step():
        x.sum().backward()
        optimizer.step()

    def recorded():
        with torch.profiler.profile({options}) as profile:
            for _ in range({steps}):
                step()
                {each}
        {end}
        print(len([e for e in profile.events() if e.name == "Optimizer.step#SGD.step"]))

    recorded()
"""
SCHEDULE = "schedule=torch.profiler.schedule(wait=1, warmup=1, active=3, repeat=1)"


@pytest.mark.parametrize(
    "end",
    [
        "pass",
        "profile.export_chrome_trace('own.json')",
        "profile.export_chrome_trace('own.json.gz')",
    ],
    ids=["never exported", "exported", "exported and packed"],
)
def test_what_it_recorded_is_kept(record: "Runner", end: str) -> None:
    outcome = record(SELF_RECORDED.format(options="", steps=12, each="pass", end=end))

    assert (outcome.status, outcome.stdout) == (0, "12\n")
    assert len(outcome.rows("Optimizer.step#SGD.step")) == 12
    assert outcome.facts["ledger"].endswith(".run.jsonl")
    assert outcome.result["source"] == "the program's own profiler"
    assert outcome.result["reason"] is None


def test_a_file_that_the_program_deletes_is_not_missed(record: "Runner") -> None:
    end = "import os; profile.export_chrome_trace('own.json'); os.remove('own.json')"
    outcome = record(SELF_RECORDED.format(options="", steps=12, each="pass", end=end))

    assert (outcome.status, outcome.stdout) == (0, "12\n")
    assert outcome.result["traces"] == []
    assert "before" not in outcome.stderr


def test_steps_after_its_own_recording_are_recorded(record: "Runner") -> None:
    outcome = record(
        SELF_RECORDED.format(options=SCHEDULE, steps=60, each="profile.step()", end="pass")
    )

    assert (outcome.status, outcome.stdout) == (0, "3\n")
    assert outcome.result["steps_recorded"] == 5
    assert len(outcome.rows("Optimizer.step#SGD.step")) == 5
    assert [row["name"] for row in outcome.rows("ProfilerStep")] == [
        f"ProfilerStep#{number}" for number in range(1, 6)
    ]


def test_a_recording_that_it_interrupts_is_made_afterwards(record: "Runner") -> None:
    outcome = record(
        """
        import torch

        x = torch.ones(4, requires_grad=True)
        optimizer = torch.optim.SGD([x], lr=0.1)
        for number in range(40):
            if number == 5:
                profile = torch.profiler.profile()
                profile.start()
            x.sum().backward()
            optimizer.step()
            if number == 7:
                profile.stop()
        print(len([e for e in profile.events() if e.name == "Optimizer.step#SGD.step"]))
        """
    )

    assert (outcome.status, outcome.stdout) == (0, "3\n")
    assert outcome.result["steps_recorded"] == 5


def test_a_profile_of_selftime_counts_as_the_programs_own(record: "Runner") -> None:
    outcome = record(
        SELF_RECORDED.format(options="", steps=12, each="pass", end="pass").replace(
            "torch.profiler.profile", "__import__('selftime').profile"
        )
    )

    assert (outcome.status, outcome.stdout) == (0, "12\n")
    assert len(outcome.rows("Optimizer.step#SGD.step")) == 12


@pytest.mark.parametrize("swapped_after", [1, 6, 12, 20])
def test_tensors_that_a_recording_refers_to_can_be_swapped(
    record: "Runner", swapped_after: int
) -> None:
    outcome = record(
        f"""
        import torch

        torch.__future__.set_swap_module_params_on_conversion(True)
        model = torch.nn.Linear(4, 4)
        for number in range(60):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            model(torch.ones(2, 4, dtype=model.weight.dtype)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            if number == {swapped_after}:
                with torch.no_grad():
                    model.weight.add_(1)
                model.double()
        print(model.weight.dtype)
        """
    )

    assert (outcome.status, outcome.stdout) == (0, "torch.float64\n")
    assert outcome.result["steps_recorded"] == 5
