"""A failure of selftime's own code ends the recording with a sentence, and nothing else."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

pytestmark = pytest.mark.torch

BROKEN = """
    import importlib

    def fail(*_, **__):
        raise MemoryError("injected")

    module, _, path = {place!r}.partition(":")
    owner = importlib.import_module("selftime.capture." + module)
    *owners, name = path.split(".")
    for part in owners:
        owner = getattr(owner, part)
    getattr(owner, name)
    setattr(owner, name, fail)
"""

TRAINING = """
    import torch

    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in torch.utils.data.DataLoader(torch.ones(80, 4), batch_size=4):
        net.train(not net.training)
        net(batch).sum().backward()
        optimizer.step()
    print("done", batch.shape[0])
"""

PASSES = """
    import torch

    net, x = torch.nn.Linear(4, 1), torch.ones(4)
    for number in range(2):
        with torch.no_grad():
            net(x)
    for number in range(20):
        (torch.ones(4, requires_grad=True) * 2).sum().backward()
    print("done", number)
"""

NUMERICS = """
    import time
    import torch

    def simulate(x, end):
        while time.monotonic() < end:
            for number in range(100):
                x = x * 0.5 + 1
        return x

    simulate(torch.ones(100, 100), time.monotonic() + 1.0)
    print("done", 1)
"""


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    "place",
    [
        "recorder.recorder:Recorder._handle_boundary",
        "recorder.recorder:Recorder._create_cycle",
        "recorder.recording_cycle:RecordingCycle._start_profile",
        "recorder.recording_guard:RecordingGuard.stop",
        "recorder.recording_cycle:RecordingCycle._plan_recording",
        "recorder.recording_guard:RecordingGuard.begin",
        "ledger.ledger:Ledger.end_segment",
        "ledger.activities:ActivityClock.enter",
        "ledger.ledger:Ledger.set_evaluating",
        "steps.batches:BatchStepFinder._on_batch_request",
        "steps.modules:ModuleStepFinder._on_call",
        "steps.backward:BackwardStepFinder.on_batch_request_or_module_call",
        "steps.optimizers:OptimizerStepFinder._remember_optimizer",
        "steps.optimizers:OptimizerStepFinder._on_optimizer_step_return",
    ],
)
def test_a_training_goes_on(record: "Runner", place: str) -> None:
    outcome = record(BROKEN.format(place=place) + TRAINING)

    assert (outcome.status, outcome.stdout) == (0, "done 4\n"), outcome.stderr
    assert outcome.stderr == ""
    assert outcome.result["traces"] == []
    assert outcome.result["reason"] == "selftime failed: MemoryError: injected; please report it"


def test_a_long_training_goes_on(record: "Runner") -> None:
    broken = BROKEN.format(place="ledger.ledger:Ledger.end_settled_step")
    program = TRAINING.replace("80, 4", "1200, 4").replace("net.train(not net.training)", "pass")
    outcome = record(broken + program, is_light=True)

    assert (outcome.status, outcome.stdout, outcome.stderr) == (0, "done 4\n", "")
    assert "MemoryError: injected" in outcome.result["reason"]


@pytest.mark.parametrize(
    "place",
    [
        "steps.modules:NestedLoopFinder.should_watch_nested_calls",
        "steps.backward:BackwardStepFinder._count_backward_pass",
    ],
)
def test_passes_and_calls_go_on(record: "Runner", place: str) -> None:
    outcome = record(BROKEN.format(place=place) + PASSES)

    assert (outcome.status, outcome.stdout, outcome.stderr) == (0, "done 19\n", "")
    assert "MemoryError: injected" in outcome.result["reason"]


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "place",
    [
        "steps.loop_search:LoopSearch._finish_probe",
        "steps.loops:LoopStepFinder._trace_of_frame",
        "steps.loop_trace:LoopCounterTrace._trace_line",
        "steps.loop_trace:StepLoopTrace._on_event",
        "steps.loops:LoopStepFinder._begin_loop",
        "ledger.watcher:StackWatcher._read",
    ],
)
def test_a_loop_goes_on(record: "Runner", place: str) -> None:
    outcome = record(BROKEN.format(place=place) + NUMERICS)

    assert (outcome.status, outcome.stdout, outcome.stderr) == (0, "done 1\n", "")
    assert outcome.result["traces"] == []


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "place",
    [
        "recorder.recorder:Recorder.finish",
        "steps.step_detector:StepDetector.detach",
        "ledger.run_ledger:RunLedger.finish",
        "ledger.collection_clock:CollectionClock.take_ns",
        "ledger.compilations:CompilationClock._poll",
        "recorder.trace_writer:TraceWriter.write_now",
    ],
)
def test_the_end_of_a_program_is_its_own(record: "Runner", place: str) -> None:
    program = "import gc; gc.collect(); raise SystemExit(7)"
    outcome = record(BROKEN.format(place=place) + TRAINING + f"    {program}\n")

    assert (outcome.status, outcome.stdout, outcome.stderr) == (7, "done 4\n", "")


def test_a_profiler_of_the_program_starts_although_ours_cannot_stop(record: "Runner") -> None:
    program = """
    import torch

    with torch.profiler.profile() as profile:
        torch.ones(4).sum()
    print("done", len([e for e in profile.events() if e.name == "aten::sum"]))
    """
    place = "recorder.recorder:Recorder.pause_for_profiler"
    outcome = record(BROKEN.format(place=place) + program)

    assert (outcome.status, outcome.stdout) == (0, "done 1\n"), outcome.stderr
