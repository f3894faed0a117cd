"""Programs that remove what a recording looks at, train elsewhere, or leave no room for a trace."""

import resource
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from selftime.capture.trace_file import trace_files
from selftime.errors import RecordingError

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

pytestmark = pytest.mark.torch

TRAINING = """
import os, sys
import torch
{before}
x = torch.ones(4, requires_grad=True)
optimizer = torch.optim.SGD([x], lr=0.1)
for step in range(30):
    x.sum().backward()
    optimizer.step()
    {each}
print("done")
"""


def training(before: str = "", each: str = "pass") -> str:
    return TRAINING.format(before=before, each=each)


@pytest.mark.parametrize(
    "removal",
    [
        "del sys.argv",
        "sys.argv = None",
        "import pathlib; sys.path += [pathlib.Path('x'), b'y', None]",
        "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); sys.path.append('')",
        "os.environ.clear()",
        "sys.modules['odd'] = None; sys.modules['odder'] = object()",
    ],
)
@pytest.mark.sweep(2)
def test_a_program_may_remove_what_facts_are_taken_from(record: "Runner", removal: str) -> None:
    program = training(before="torch.optim.SGD([torch.ones(1)])\nhome = os.getcwd()\n" + removal)
    outcome = record(program + "\nos.chdir(home)\n")

    assert outcome.status == 0, outcome.stderr
    assert outcome.stdout == "done\n"
    assert outcome.result["steps_recorded"] == 5
    assert all(isinstance(path, str) for path in outcome.facts["paths"])
    assert len(outcome.lines) > 0


def test_a_command_that_was_removed_is_unknown(record: "Runner") -> None:
    assert record(training(before="del sys.argv")).facts["argv"] is None


def test_where_a_file_stands_no_trace_is_written_and_the_program_goes_on(record: "Runner") -> None:
    (record.folder / "runs").touch()
    outcome = record(training())

    assert (outcome.status, outcome.stdout) == (0, "done\n")
    assert outcome.result["traces"] == []
    assert outcome.result["reason"] == (
        f"`{record.folder / 'runs'}` is a file, and traces go into a folder; choose another place"
    )


def test_a_full_temporary_folder_is_said_in_a_sentence(record: "Runner") -> None:
    limit = """
import os, resource, sys
sys.dont_write_bytecode = True  # half a compiled file would stay behind
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
"""
    outcome = record(training(before="torch.optim.SGD([torch.ones(1)])" + limit))

    assert (outcome.status, outcome.stdout) == (0, "done\n")
    assert outcome.result["traces"] == []
    assert "free space" in outcome.result["reason"]


def test_a_folder_that_cannot_be_made_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RecordingError, match=r"cannot be made: .*; choose another place"):
        trace_files.make_trace_folder(tmp_path / "file" / "runs")


def test_a_full_disk_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    body = tmp_path / "body.json"
    body.write_text('{"traceEvents": [' + ", ".join(map(str, range(20_000))) + "]}")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(RecordingError, match=r"cannot be written: .*; choose another place"):
            trace_files.write_trace_with_facts(body, tmp_path / "trace.json", {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert [path.name for path in tmp_path.iterdir()] == ["body.json"]


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("step", "awaits_trace"), [(1, False), (6, False), (29, True)])
def test_a_program_that_ends_at_once_leaves_nothing_half_done(
    record: "Runner", monkeypatch: pytest.MonkeyPatch, step: int, awaits_trace: bool
) -> None:
    (record.folder / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(record.folder / "temporary"))
    at_last = """
    from pathlib import Path
    import time

    def end():
        deadline = time.monotonic() + 60 * {awaits_trace}
        while time.monotonic() < deadline and not (
            list(Path("runs").glob("*.gz")) and not list(Path("temporary").glob("selftime-*"))
        ):
            time.sleep(0.01)  # it is written beside the program
        os._exit(4)
    """
    before = textwrap.dedent(at_last.format(awaits_trace=int(awaits_trace)))
    outcome = record(training(before=before, each=f"if step == {step}: end()"))

    assert outcome.status == 4
    assert len(list(record.folder.glob("runs/*.gz"))) == 1
    assert list(record.folder.glob("temporary/selftime-*")) == []


def test_two_steps_are_one_that_is_recorded_whole(record: "Runner") -> None:
    outcome = record(training().replace("range(30)", "range(2)"))

    assert outcome.result["steps_recorded"] == 1
    assert len(outcome.rows("ProfilerStep")) == 1
    assert len(outcome.facts["steps"]["profiled_ns"]) == 1


def test_a_program_that_ends_while_its_thread_is_recorded_says_so(record: "Runner") -> None:
    outcome = record("""
        import threading
        import torch

        def train():
            x = torch.ones(4, requires_grad=True)
            optimizer = torch.optim.SGD([x], lr=0.1)
            for _ in range(8):
                x.sum().backward()
                optimizer.step()

        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
        print("done")
    """)

    assert outcome.status == 0, outcome.stderr
    assert outcome.stdout == "done\n"
    assert outcome.result["traces"] == []
    assert "the profiler ran in another thread" in outcome.result["reason"]
