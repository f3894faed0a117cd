"""What is measured of the CPU at a program's end, and where nothing is."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.program.test_run import training

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

pytestmark = pytest.mark.torch


def end_of_ledger(folder: Path) -> dict[str, Any]:
    [path] = folder.glob("runs/*.run.jsonl")
    line: dict[str, Any] = json.loads(path.read_text().splitlines()[-1])
    assert "end" in line
    return line


def test_the_machine_and_its_rates_are_at_the_end_of_the_ledger(record: "Runner") -> None:
    record(training(20))
    end = end_of_ledger(record.folder)
    assert end["status"] == "ended"
    assert end["machine"].keys() == {"processor", "cores", "torch", "python", "threads"}
    if end["cpu_peaks"] is None:  # a machine whose cores or memory others take
        assert end["cpu_peaks_unknown"]
        return
    assert end["cpu_peaks"]["threads"] == 1
    assert end["cpu_peaks"]["flops"]["float32"] > 1e8
    assert [size for size, _ in end["cpu_peaks"]["copies"]] == sorted(
        size for size, _ in end["cpu_peaks"]["copies"]
    )


def test_the_trials_are_work_of_selftime(record: "Runner") -> None:
    """The program's own time after its last step does not hold them."""
    record(training(20))
    if end_of_ledger(record.folder)["cpu_peaks"] is None:
        return
    [path] = record.folder.glob("runs/*.run.jsonl")
    tables = [json.loads(line).get("segments") for line in path.read_text().splitlines()]
    last = [table for table in tables if table][-1]
    assert last["kind"][-1] == -2
    own = last["duration"][-1] - last["recording"][-1]
    assert own < last["recording"][-1]


@pytest.mark.parametrize(("after", "status"), [("raise ValueError('own')", 1), ("sys.exit(3)", 3)])
def test_a_program_that_ends_by_an_exception_is_measured_too(
    record: "Runner", after: str, status: int
) -> None:
    outcome = record(training(20, after=after))
    assert outcome.status == status
    assert outcome.stdout == "done __main__ ['program.py']\n"
    raised = outcome.stderr.count("ValueError: own")
    assert (raised, outcome.stderr.count("Traceback")) == ((1, 1) if status == 1 else (0, 0))
    end = end_of_ledger(record.folder)
    assert end["status"].startswith("ended by ")
    assert end["cpu_peaks"] or end["cpu_peaks_unknown"]


@pytest.mark.parametrize(
    ("after", "options"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", {}),
        ("import os; os._exit(0)", {}),
        ("pass", {"is_light": True}),
        ("raise MemoryError", {}),
        ("torch.empty(1 << 60)", {}),
        ("import os; os.environ['MKL_VERBOSE'] = '1'", {}),
    ],
)
@pytest.mark.sweep(3)
def test_nothing_is_measured_in_a_process_that_is_to_end_at_once_or_was_not_recorded(
    record: "Runner", after: str, options: dict[str, Any]
) -> None:
    record(training(20, after=after), **options)
    [path] = record.folder.glob("runs/*.run.jsonl")
    assert "cpu_peaks" not in path.read_text()


def test_ctrl_c_while_it_is_measured_leaves_the_program_its_own_end(record: "Runner") -> None:
    after = """import os, signal
    own = torch.mm
    def interrupted(*args, **options):
        os.kill(os.getpid(), signal.SIGINT)
        return own(*args, **options)
    torch.mm = interrupted
    raise ValueError("own")
    """
    outcome = record(training(20, after=after))
    assert outcome.status == 1
    assert "ValueError: own" in outcome.stderr
    assert "KeyboardInterrupt" not in outcome.stderr
    end = end_of_ledger(record.folder)
    assert end["status"] == "ended by ValueError"
    assert "cpu_peaks" not in end


def test_other_ranks_than_the_first_measure_nothing(record: "Runner") -> None:
    beginning = "import os; os.environ.update(LOCAL_RANK='1', RANK='1', WORLD_SIZE='2')\n"
    record(beginning + training(20).replace("\n    ", "\n"))
    assert "cpu_peaks" not in end_of_ledger(record.folder)
