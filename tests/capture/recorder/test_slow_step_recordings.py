"""A slow step that comes again is recorded when it does, in a file beside the main trace."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from selftime.ingest.load import load
from selftime.ledger_format import SLOW_STEP_SUFFIX
from selftime.trace import Trace

if TYPE_CHECKING:
    from tests.capture.conftest import Outcome, ReadTrace, Runner

pytestmark = pytest.mark.torch

EVERY = """
    import glob, os, signal, sys, time
    import torch

    def write():
        time.sleep(0.6)
        for _ in range(7):
            torch.eye(3).inverse()

    def wait_for(is_there):
        for _ in range(6_000):
            if is_there():
                break
            time.sleep(0.01)

    def is_recorded():
        return glob.glob("runs/*.pt.trace.json.gz")

    def is_told():
        return any("recorded_slow_step" in open(path).read() for path in glob.glob("runs/*.jsonl"))

    net = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range({steps}):
        net(torch.ones(8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep({pause})
        if {condition}:
            write()
        {each}
        if {waits} and step == 30:
            wait_for(is_recorded)
    {after}
"""


RANK = '    os.environ.update(RANK="0", WORLD_SIZE="2")\n'


def program(
    steps: int = 200,
    condition: str = "step % 40 == 39",
    each: str = "pass",
    after: str = "pass",
    waits: bool = True,
    pause: float = 0.005,
) -> str:
    """A training whose steps are slow under a condition.

    One of them waits until the main recording is written, if that `waits`.
    """
    return EVERY.format(
        steps=steps, condition=condition, each=each, after=after, waits=waits, pause=pause
    )


def record_slow_steps(record: "Runner", text: str, **options: Any) -> "Outcome":
    options = {"warmup": 2, "active": 2, "records_slow_steps": True, **options}
    return record(text, **options)


def slow_traces(record: "Runner") -> list[Path]:
    return sorted((record.folder / "runs").glob(f"*{SLOW_STEP_SUFFIX}"))


def main_traces(record: "Runner") -> list[Path]:
    found = sorted((record.folder / "runs").glob("*.pt.trace.json.gz"))
    return [path for path in found if path not in slow_traces(record)]


def operators(trace: dict[str, Any], name: str) -> int:
    return sum(event.get("name") == name for event in trace["traceEvents"])


def test_a_slow_step_of_equal_distances_is_recorded(
    record: "Runner", read_trace: "ReadTrace"
) -> None:
    outcome = record_slow_steps(record, program())

    assert outcome.result["steps_recorded"] == 2
    [main], [slow] = main_traces(record), slow_traces(record)
    assert slow.name == main.name.removesuffix(".pt.trace.json.gz") + SLOW_STEP_SUFFIX
    assert outcome.result["traces"] == [str(main)]
    trace = read_trace(slow)
    assert operators(trace, "aten::inverse") == 7
    assert operators(trace, "Optimizer.step#SGD.step") == 1
    told = trace["selftime"]["slow_step"]
    assert told["index"] % 40 == 0
    assert told["begin_s"] > 0
    assert trace["selftime"]["partial"] is None
    assert operators(outcome.trace, "aten::inverse") == 0
    assert outcome.facts["slow_step"] is None


EVALUATION = "if step % 40 == 39: net.eval(); time.sleep(0.6); net.train()"


def test_a_slow_step_that_evaluates_is_recorded_if_that_is_cheap(record: "Runner") -> None:
    record_slow_steps(record, program(condition="False", each=EVALUATION, pause=0.02))

    assert len(slow_traces(record)) == 1


def test_an_evaluation_of_many_events_is_not_recorded(record: "Runner") -> None:
    evaluating = program(condition="False", each=EVALUATION, pause=0)
    outcome = record_slow_steps(record, evaluating, hold=0.1)

    assert outcome.result["steps_recorded"] in (1, 2)  # as the first recording held it
    assert slow_traces(record) == []


def test_a_folder_is_read_without_the_slow_step(record: "Runner") -> None:
    record_slow_steps(record, program())

    [main], [slow] = main_traces(record), slow_traces(record)
    job = load(record.folder / "runs")
    assert not isinstance(job, Trace)
    assert list(job.traces) == [str(main)]
    alone = load(slow)
    assert isinstance(alone, Trace)
    assert alone.run.source == ""
    assert "slow_step" in alone.view("health")["check"].to_list()
    [run] = [trace.run for trace in job.traces.values()]
    [(segment, name)] = run.recorded_slow_steps.items()
    assert name == slow.name
    assert run.segments["recorded"][segment]
    assert run.segments["duration"][segment] >= 600_000_000


def test_without_slow_steps_nothing_more_is_recorded(record: "Runner") -> None:
    record_slow_steps(record, program(150, condition="False"))
    assert len(main_traces(record)) == 1
    assert slow_traces(record) == []


def test_slow_steps_without_a_rhythm_are_not_recorded(record: "Runner") -> None:
    record_slow_steps(record, program(250, condition="step in (40, 66, 130, 141, 203)"))
    assert len(main_traces(record)) == 1
    assert slow_traces(record) == []


def test_where_the_slow_step_does_not_come_nothing_is_kept(record: "Runner") -> None:
    outcome = record_slow_steps(record, program(250, condition="step in (40, 80, 120)"))
    assert outcome.status == 0
    assert len(main_traces(record)) == 1
    assert slow_traces(record) == []


@pytest.mark.parametrize(
    "options",
    [{"records_slow_steps": False}, {"is_light": True}, {"trigger": "file"}],
    ids=lambda options: next(iter(options)),
)
@pytest.mark.sweep(1)
def test_slow_steps_are_left_alone(record: "Runner", options: dict[str, Any]) -> None:
    waits = options.keys() <= {"records_slow_steps"}
    outcome = record_slow_steps(record, program(220, waits=waits), **options)
    assert outcome.status == 0
    assert slow_traces(record) == []


def test_in_a_job_of_several_ranks_slow_steps_are_left_alone(record: "Runner") -> None:
    text = program(180).replace("    import torch\n", "    import torch\n" + RANK)
    record_slow_steps(record, text)
    [main] = main_traces(record)
    assert "rank0" in main.name
    assert slow_traces(record) == []


def test_two_rhythms_are_recorded_once_each(record: "Runner", read_trace: "ReadTrace") -> None:
    logs = "step % 30 == 9 and time.sleep(0.1)"
    record_slow_steps(record, program(500, condition="step % 70 == 69", each=logs))

    counts = [operators(read_trace(path), "aten::inverse") for path in slow_traces(record)]
    assert sorted(counts) == [0, 7]


def test_a_program_that_ends_in_the_slow_step_keeps_its_main_trace(record: "Runner") -> None:
    each = "step == 158 and sys.exit(3)"
    outcome = record_slow_steps(record, program(300, condition="step % 40 == 38", each=each))
    assert outcome.status == 3
    assert len(main_traces(record)) == 1
    assert slow_traces(record) == []
    assert outcome.facts["partial"] is None


PROFILING = """
        if step == 156:
            profiler = torch.profiler.profile()
            profiler.start()
        if step == 170:
            profiler.stop()
            print(sum(a.count for a in profiler.key_averages() if a.key == "aten::inverse"))
"""


def test_the_programs_own_profiler_goes_first(record: "Runner") -> None:
    outcome = record_slow_steps(record, program(180, each=PROFILING.strip()))
    assert outcome.status == 0, outcome.stderr
    assert outcome.stdout == "7\n"
    assert slow_traces(record) == []


TOLD = """
    import glob, time
    import selftime, torch

    net = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in selftime.watch(range(200)):
        {work}
        time.sleep(0.005)
        if step % 40 == 39:
            time.sleep(0.6)
            torch.eye(3).inverse()
        for _ in range(6_000 * (step == 30)):
            if glob.glob("runs/*.pt.trace.json.gz"):
                break
            time.sleep(0.01)
"""


@pytest.mark.parametrize(
    "work",
    ["net(torch.ones(8)).sum().backward(); optimizer.step()", "torch.ones(8).sum()"],
    ids=["with an optimizer", "with operators alone"],
)
def test_a_slow_step_is_recorded_where_the_program_tells_its_steps(
    record: "Runner", read_trace: "ReadTrace", work: str
) -> None:
    outcome = record_slow_steps(record, TOLD.format(work=work))
    assert outcome.result["source"] == "the program"
    [slow] = slow_traces(record)
    assert operators(read_trace(slow), "aten::inverse") == 1
    [process] = outcome.result["processes"]
    ns = process["step_ns_by_kind"]
    assert ns.get("training", 0) < 0.1 * ns["step"], "its steps are not counted twice"


FORKING = """
        if step % 40 == 39:
            child = os.fork()
            if child == 0:
                torch.ones(2) + 1
                os._exit(7)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_children_forked_in_a_slow_step_go_on(record: "Runner", read_trace: "ReadTrace") -> None:
    text = program(250, each=FORKING.strip())
    outcome = record_slow_steps(record, text)
    assert outcome.status == 0, outcome.stderr
    assert outcome.stdout == 6 * "7\n"
    [slow] = slow_traces(record)
    assert operators(read_trace(slow), "aten::inverse") == 7


def test_a_slow_step_of_too_many_events_is_recorded_in_part(
    record: "Runner", read_trace: "ReadTrace"
) -> None:
    each = "[torch.ones(2).add(1) for _ in range(60_000 * (step % 40 == 39))]"
    record_slow_steps(record, program(220, condition="False", each=each), hold=0.1)
    [slow] = slow_traces(record)
    trace = read_trace(slow)
    assert "within a step" in trace["selftime"]["partial"]
    assert 100 < operators(trace, "aten::add.Tensor") < 60_000


def test_the_ledger_tells_of_the_file_while_the_program_runs(record: "Runner") -> None:
    after = "wait_for(is_told); os.kill(os.getpid(), signal.SIGKILL)"
    record_slow_steps(record, program(200, after=after))
    [slow] = slow_traces(record)
    [ledger] = (record.folder / "runs").glob("*.run.jsonl")
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    [told] = [line["recorded_slow_step"] for line in lines if "recorded_slow_step" in line]
    assert told["file"] == slow.name
