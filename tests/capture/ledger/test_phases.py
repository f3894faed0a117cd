"""Tests the times of the phases of a step: forward, backward, optimizer, device."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.ledgers import MS, Step, run_of

from selftime.analysis.run.step_kinds import step_kinds
from selftime.capture.ledger import device_times
from selftime.capture.ledger.device_times import MAX_STEPS_AHEAD, STEPS_A_LINE, DeviceStepTimes
from selftime.capture.ledger.ledger import Ledger
from selftime.capture.steps.step_phases import StepPhases
from selftime.ingest.ledger import read_ledger
from selftime.reports.ledger import as_text

if TYPE_CHECKING:
    from tests.capture.conftest import Runner


def test_waits_are_no_part_of_the_forward_pass() -> None:
    phases, counted = StepPhases(), {"data_wait": 3, "garbage_collection": 2}
    phases.add_backward(10, 15, in_optimizer=False)
    phases.add_optimizer(16, 18)
    phases.take(20, counted)
    assert counted == {**counted, "forward": 7, "backward": 5, "optimizer": 2}
    phases.add_backward(24, 25, in_optimizer=False)
    assert taken(phases, 26) == {"forward": 4, "backward": 1}


def taken(phases: StepPhases, ended: int) -> dict[str, int]:
    counted: dict[str, int] = {}
    phases.take(ended, counted)
    return counted


def test_several_passes_and_optimizers_of_a_step_add_up() -> None:
    phases = StepPhases()
    phases.add_backward(10, 15, in_optimizer=False)
    phases.add_optimizer(15, 18)
    phases.add_backward(22, 24, in_optimizer=False)
    phases.add_optimizer(25, 26)
    assert taken(phases, 26) == {"forward": 14, "backward": 7, "optimizer": 4, "passes": 2}


def test_a_closure_is_no_part_of_the_optimizer() -> None:
    phases = StepPhases()
    phases.add_backward(10, 15, in_optimizer=True)
    phases.add_optimizer(2, 20)
    assert taken(phases, 20) == {"forward": 10, "backward": 5, "optimizer": 5}


def test_what_lies_between_several_closures_is_not_divided() -> None:
    phases = StepPhases()
    phases.add_backward(4, 6, in_optimizer=True)
    phases.add_backward(8, 9, in_optimizer=True)
    phases.add_optimizer(2, 20)
    assert taken(phases, 20) == {"backward": 3, "passes": 2}
    phases.add_backward(25, 26, in_optimizer=False)
    assert taken(phases, 26) == {"forward": 5, "backward": 1}


def test_a_step_that_accumulates_gradients_has_several_passes() -> None:
    one_pass = {"backward": 4.0}
    counts = [25 / MS, 25 / MS, 24 / MS]  # a count is told in ns, too
    run = run_of([Step(10, counted={**one_pass, "passes": count}) for count in counts])
    assert step_kinds(run)["passes"].to_list() == [25]
    assert "/project/train.py:20, 25 backward passes each" in " ".join(as_text(run).split())
    assert step_kinds(run_of([Step(10, counted=one_pass)] * 3))["passes"].to_list() == [1]
    assert step_kinds(run_of([Step(10)] * 3))["passes"].to_list() == [None]


def test_a_step_without_them_has_none() -> None:
    assert taken(StepPhases(), 7) == {}


def test_kinds_have_the_medians_of_what_is_known() -> None:
    told = [{"forward": 2.0, "backward": 4.0}, {"forward": 3.0, "backward": 6.0}, {"backward": 5.0}]
    run = run_of([Step(10, counted=one) for one in told])
    [kind] = step_kinds(run).rows(named=True)
    assert (kind["forward"], kind["backward"]) == (2_500_000, 5_000_000)
    assert kind["optimizer"] is kind["device"] is None


class Device:
    """A device that reaches events when a test says so, in place of `torch.cuda`."""

    def __init__(self) -> None:
        self.is_on = True
        self.is_capturing = False
        self.has_failed = False
        self.index = 0
        self.events: list[Any] = []
        self.reached = 0

    def is_initialized(self) -> bool:
        return self.is_on

    def is_current_stream_capturing(self) -> bool:
        return self.is_capturing

    def current_device(self) -> int:
        return self.index

    def Event(self, *, enable_timing: bool) -> Any:  # noqa: N802 - torch's name
        assert enable_timing
        number = len(self.events)
        event = SimpleNamespace(
            number=number,
            record=lambda: None,
            query=lambda: self._query(number),
            elapsed_time=lambda other: 2.5 * (other.number - number),
        )
        self.events.append(event)
        return event

    def _query(self, number: int) -> bool:
        if self.has_failed:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        return number < self.reached


class Stepped:
    """A ledger whose steps end when a test says so, on a device."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.device = Device()
        monkeypatch.setitem(sys.modules, "torch.cuda", self.device)
        monkeypatch.setattr(device_times, "torch_has_cuda", lambda: True)
        self.ledger = Ledger(folder)
        self.lines: list[dict[str, Any]] = []
        monkeypatch.setattr(self.ledger, "add_line", self.lines.append)
        self.times = DeviceStepTimes(self.ledger)

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.ledger.last_segment, self.ledger.segment = (
                self.ledger.segment,
                self.ledger.segment + 1,
            )
            self.times.end_step()

    def told(self) -> list[int]:
        self.times.finish()
        return [time for line in self.lines for time in line["device"]["duration"]]


@pytest.fixture
def stepped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Stepped:
    return Stepped(monkeypatch, tmp_path)


def test_steps_are_timed_that_the_device_has_reached(stepped: Stepped) -> None:
    stepped.steps(5)
    stepped.device.reached = 4
    assert stepped.told() == [2_500_000] * 3
    [line] = stepped.lines
    began = stepped.ledger.segment - 5
    assert line["device"]["start"] == [began + number for number in (1, 2, 3)]


def test_many_steps_are_told_in_few_lines(stepped: Stepped) -> None:
    stepped.device.reached = 10_000
    stepped.steps(2 * STEPS_A_LINE + 10)
    assert len(stepped.lines) == 2
    assert len(stepped.told()) == 2 * STEPS_A_LINE + 9


def test_a_device_far_behind_takes_no_more_memory(stepped: Stepped) -> None:
    stepped.steps(MAX_STEPS_AHEAD + 50)
    stepped.device.reached = MAX_STEPS_AHEAD + 50
    assert len(stepped.told()) == MAX_STEPS_AHEAD


def test_what_lies_between_two_loops_is_not_the_next_step(stepped: Stepped) -> None:
    stepped.device.reached = 100
    stepped.steps(2)
    stepped.ledger.segment += 10  # a segment that is no step ended
    stepped.steps(2)
    assert len(stepped.told()) == 2


@pytest.mark.parametrize("how", ["is_on", "is_capturing", "index", "has_failed"])
def test_times_that_cannot_be_known_are_left_out(stepped: Stepped, how: str) -> None:
    stepped.device.reached = 100
    stepped.steps(2)
    setattr(stepped.device, how, not getattr(stepped.device, how))
    stepped.steps(1)
    assert len(stepped.told()) == (0 if how == "has_failed" else 1)


def test_the_times_of_a_device_are_read_beside_the_steps() -> None:
    start = 1_500_000_000
    line = {"device": {"start": [start, start + 10_000_000], "duration": [7, 8]}}
    run = run_of([Step(10), Step(10), Step(10)], more=[line])
    assert run.segments["device"].to_list() == [None, 7, 8, None, None]


@pytest.mark.parametrize("told", [None, {}, {"start": [1], "duration": []}, {"start": ["a"]}])
def test_device_times_that_make_no_sense_are_left_out(told: object) -> None:
    run = run_of([Step(10)], more=[{"device": told}])
    assert run.segments["device"].null_count() == run.segments.height


TRAINING = """
    import torch
    from torch import nn

    net = nn.Linear(64, 64)
    optimizer = torch.optim.{made}
    def closure():
        optimizer.zero_grad()
        loss = net(torch.randn(32, 64)).square().mean()
        loss.backward()
        return loss
    for _ in range(40):
        {each}
"""


@pytest.mark.torch
@pytest.mark.parametrize(
    ("made", "each", "seen"),
    [
        ("Adam(net.parameters())", "closure(); optimizer.step()", [True, True, True]),
        ("Adam(net.parameters())", "optimizer.step(closure)", [True, True, True]),
        ("LBFGS(net.parameters(), max_iter=3)", "optimizer.step(closure)", [False, True, False]),
    ],
)
@pytest.mark.sweep(1)
def test_a_program_that_trains_shows_its_phases(
    record: "Runner", made: str, each: str, seen: list[bool]
) -> None:
    record(TRAINING.format(made=made, each=each))
    [path] = record.folder.rglob("*.run.jsonl")
    [kind] = step_kinds(read_ledger(path.read_bytes(), str(path))).rows(named=True)
    phases = [kind[name] for name in ("forward", "backward", "optimizer")]
    assert [phase is not None for phase in phases] == seen
    assert sum(phase or 0 for phase in phases) <= kind["p95"]
