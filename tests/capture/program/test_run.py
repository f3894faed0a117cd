import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

pytestmark = pytest.mark.torch

TRAINING = """
    import sys
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range({steps}):
        loss = net(torch.randn(8, 16)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        {each}
    print("done", __name__, sys.argv)
    {after}
"""


def training(steps: int, each: str = "pass", after: str = "pass") -> str:
    return TRAINING.format(steps=steps, each=each, after=after)


def test_a_training_loop_is_recorded_and_ends_as_its_own(record: "Runner") -> None:
    outcome = record(training(20), "--epochs", "3")

    assert outcome.status == 0
    assert outcome.stdout == "done __main__ ['program.py', '--epochs', '3']\n"
    assert outcome.result["source"] == "optimizer steps"
    assert outcome.result["steps_recorded"] == 5
    assert outcome.result["reason"] is None
    assert outcome.facts["partial"] is None
    assert [row["name"] for row in outcome.rows("ProfilerStep")] == [
        f"ProfilerStep#{number}" for number in range(1, 6)
    ]
    assert len(outcome.rows("Optimizer.step#SGD.step")) == 5
    assert outcome.facts["argv"] == ["program.py", "--epochs", "3"]


def test_steps_are_timed_with_and_without_the_recorder(record: "Runner") -> None:
    facts = record(training(20)).facts

    assert facts["steps"]["source"] == "optimizer steps"
    assert len(facts["steps"]["profiled_ns"]) == 5
    assert len(facts["steps"]["unprofiled_ns"]) == 1 + 5
    overhead = facts["overhead"]
    assert overhead["ratio"] > 0
    assert overhead["profiled_median_ns"] > 0


def test_events_have_the_times_of_steps_recorded_without_details(record: "Runner") -> None:
    outcome = record(training(40, each="torch.ones(4).sin().cos().exp().log().sin().cos().exp()"))

    steps = outcome.facts["steps"]
    assert steps["matched_share"] == 1.0
    assert len(steps["detailed_ns"]) == 5
    durations = [round(1000 * row["dur"]) for row in outcome.rows("ProfilerStep")]
    assert durations == steps["profiled_ns"] != steps["detailed_ns"]
    assert outcome.rows("nn.Module: ReLU")  # from the steps with Python frames


def test_the_step_ends_after_the_optimizer_has_closed_its_region(record: "Runner") -> None:
    outcome = record(training(20))
    steps = [(row["ts"], row["ts"] + row["dur"]) for row in outcome.rows("ProfilerStep")]
    rows = outcome.rows("Optimizer.step")
    assert len(rows) == len(steps) > 0
    for row in rows:
        inside = [s for s, e in steps if s <= row["ts"] and row["ts"] + row["dur"] <= e]
        assert len(inside) == 1


def test_the_options_set_what_is_recorded(record: "Runner") -> None:
    outcome = record(
        training(20), warmup=2, active=2, with_stack=False, record_shapes=False, profile_memory=True
    )

    assert outcome.result["steps_recorded"] == 2
    assert outcome.facts["flags"] == {
        "record_shapes": False,
        "profile_memory": True,
        "with_stack": False,
        "with_flops": False,
        "with_modules": False,
        "record_python_gc_info": False,
    }
    assert outcome.lines == {}


def test_large_steps_make_fewer_of_them(record: "Runner") -> None:
    outcome = record(training(20), max_bytes=1)

    assert outcome.result["steps_recorded"] == 1
    assert outcome.facts["partial"] is None


@pytest.mark.parametrize(("steps", "recorded"), [(2, 1), (3, 1), (5, 1), (7, 3)])
@pytest.mark.sweep(2)
def test_a_short_program_leaves_what_was_recorded_last(
    record: "Runner", steps: int, recorded: int
) -> None:
    outcome = record(training(steps))

    assert outcome.status == 0
    assert outcome.result["steps_recorded"] == recorded
    assert len(outcome.facts["steps"]["profiled_ns"]) == recorded
    assert outcome.rows("Optimizer.step")
    assert "before 5 were recorded" in outcome.facts["partial"]


EVALUATING_FIRST = """
    import torch

    net = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(40):
        net(torch.ones(8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 0:
            net.eval()
            with torch.no_grad():
                for _ in range(4000):
                    net(torch.ones(8))
            net.train()
"""


@pytest.mark.timed
def test_an_evaluation_in_the_first_recorded_step_leaves_the_others(record: "Runner") -> None:
    outcome = record(EVALUATING_FIRST, hold=0.4)

    assert outcome.result["steps_recorded"] == 5


ACTING_FIRST = """
    import time
    import torch

    net = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for number in range(200):
        with torch.no_grad():
            net(torch.ones(1, 8))
        if number == 99:
            time.sleep(1)  # what was recorded until now is written
        if number > 120:
            net(torch.ones(8)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
"""


def test_a_program_that_trains_long_after_it_began_to_infer_is_recorded_anew(
    record: "Runner",
) -> None:
    outcome = record(ACTING_FIRST)

    assert outcome.result["source"] == "optimizer steps"
    assert outcome.result["steps_recorded"] == 5
    assert len(outcome.rows("Optimizer.step#SGD.step")) == 5


def test_a_single_step_leaves_no_trace_and_the_reason(record: "Runner") -> None:
    outcome = record(training(1))

    assert outcome.status == 0
    assert outcome.result["traces"] == []
    assert "1 step" in outcome.result["reason"]


def test_a_program_without_steps_says_so(record: "Runner") -> None:
    outcome = record("import torch\nprint(torch.ones(2).sum().item())\n")

    assert outcome.status == 0
    assert outcome.stdout == "2.0\n"
    assert outcome.result["traces"] == []
    assert outcome.result["reason"] == (
        "no step was found: the program used torch for too short a time to be recorded, or "
        "not at all; see `selftime ledger` for what it did"
    )


@pytest.mark.parametrize("ending", ["raise FileNotFoundError('data')", "import sys; sys.exit(2)"])
def test_a_program_that_fails_before_its_first_step_says_so(record: "Runner", ending: str) -> None:
    outcome = record(f"import torch\ntorch.ones(2).sum()\n{ending}\n")

    assert outcome.status != 0
    assert outcome.result["reason"].startswith("the program was ended by ")
    assert outcome.result["reason"].endswith(" before its first step")


def test_a_program_without_torch_says_so_and_is_not_given_it(
    record_from_the_start: "Runner",
) -> None:
    outcome = record_from_the_start("import sys\nprint('torch' in sys.modules)\n")

    assert outcome.stdout == "False\n"
    assert outcome.result["reason"] == "the program never imported torch"


def test_an_exception_shows_the_programs_own_frames_and_leaves_a_partial_trace(
    record: "Runner",
) -> None:
    outcome = record(training(20, each="if step == 6: raise ValueError('boom')"))

    assert outcome.status == 1
    assert "ValueError: boom" in outcome.stderr
    assert "program.py" in outcome.stderr
    assert "selftime" not in outcome.stderr
    assert "driver.py" not in outcome.stderr
    assert outcome.facts["partial"] == "ended by ValueError"


@pytest.mark.parametrize(
    ("code", "status", "stderr"),
    [("3", 3, ""), ("", 0, ""), ("None", 0, ""), ("'no data'", 1, "no data\n")],
)
@pytest.mark.sweep(2)
def test_sys_exit_keeps_its_status(record: "Runner", code: str, status: int, stderr: str) -> None:
    outcome = record(training(20, each=f"if step == 6: sys.exit({code})"))

    assert outcome.status == status
    assert outcome.stderr == stderr
    assert outcome.facts["partial"]


def test_ctrl_c_leaves_a_partial_trace(record: "Runner") -> None:
    waiting = "if step == 6: open('ready', 'w').close(); import time; time.sleep(60)"
    outcome = record.signalled(training(20, each=waiting), signal.SIGINT)

    assert outcome.status == 130
    assert "KeyboardInterrupt" in outcome.stderr
    assert outcome.facts["partial"] == "ended by KeyboardInterrupt"


def test_sigterm_leaves_a_partial_trace_and_kills(record: "Runner") -> None:
    waiting = "if step == 6: open('ready', 'w').close(); import time; time.sleep(60)"
    outcome = record.signalled(training(20, each=waiting), signal.SIGTERM)

    assert outcome.status == -signal.SIGTERM
    assert outcome.facts["partial"] == "ended by SIGTERM"


def test_a_program_that_handles_sigterm_is_left_alone(record: "Runner") -> None:
    handled = """
    import signal, sys
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
    """ + training(20, each="if step == 6: open('ready', 'w').close(); import time; time.sleep(60)")
    outcome = record.signalled(handled, signal.SIGTERM)

    assert outcome.status == 7
    assert outcome.facts["partial"] == "ended by SystemExit"


def test_the_handler_of_sigterm_goes_with_the_recording(record: "Runner") -> None:
    outcome = record(
        training(
            60,
            each="import time; time.sleep(0.05)",
            after="import signal; print(signal.getsignal(signal.SIGTERM).name)",
        )
    )

    assert outcome.stdout.endswith("SIG_DFL\n")


def test_a_limit_of_seconds_ends_the_recording_not_the_program(record: "Runner") -> None:
    outcome = record(training(20, each="import time; time.sleep(0.05)"), seconds=0.06)

    assert outcome.status == 0
    assert 1 <= outcome.result["steps_recorded"] < 5
    assert outcome.stdout.startswith("done")


def test_a_limit_of_seconds_ends_a_recording_within_a_long_step(record: "Runner") -> None:
    outcome = record(
        """
        import time
        import torch
        from torch.utils.data import DataLoader

        net = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for number, batch in enumerate(DataLoader(torch.randn(60, 4), batch_size=1)):
            net(batch).sum().backward()
            time.sleep(0.01)
            if number % 20 == 19:
                optimizer.step()
                optimizer.zero_grad()
        print("done")
        """,
        seconds=0.05,
    )

    assert outcome.stdout == "done\n"
    assert outcome.facts["partial"] == "the limit of 0.05 s was reached within a step"
    assert outcome.result["steps_recorded"] == 0
    assert 1 <= len(outcome.rows("aten::linear")) < 20


def test_a_module_is_run_as_python_does(record: "Runner", tmp_path: Path) -> None:
    record.write("", "package/__init__.py")
    record.write(
        "from package import helper\n"
        "import textwrap\n"
        f"exec(textwrap.dedent({training(12)!r}))\n"
        "print(__spec__.name, __package__, helper.NAME)\n",
        "package/train.py",
    )
    record.write("NAME = 'helped'\n", "package/helper.py")
    outcome = record.outcome(record.start("module", "package.train", "x"))

    assert outcome.status == 0, outcome.stderr
    assert outcome.stdout.endswith("package.train package helped\n")
    assert f"['{tmp_path}/package/train.py', 'x']" in outcome.stdout
    assert outcome.result["steps_recorded"] == 5


def test_a_forked_child_ends_without_an_answer(record: "Runner") -> None:
    fork = """if step == 6:
            import os
            child = os.fork()
            if child == 0:
                net(torch.randn(8, 16))
                print("child")
                sys.exit(5)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), os.path.exists('result.json'))
    """
    outcome = record(training(20, each=fork))

    assert outcome.status == 0, outcome.stderr
    assert outcome.stdout.startswith("child\n5 False\ndone")
    assert outcome.result["steps_recorded"] == 5


def test_processes_that_start_at_once_leave_a_file_each(record: "Runner") -> None:
    program = record.write(training(12))
    processes = [record.start("script", program) for _ in range(3)]
    for process in processes:
        _, stderr = process.communicate(timeout=120)
        assert process.returncode == 0, stderr
    traces = list(record.folder.glob("runs/*.pt.trace.json.gz"))

    assert len({path.name for path in traces}) == 3


def test_two_runs_leave_two_files(record: "Runner") -> None:
    first = record(training(12)).result["traces"]
    Path(record.folder / first[0]).rename(record.folder / "kept")
    second = record(training(12)).result["traces"]

    assert first != second
