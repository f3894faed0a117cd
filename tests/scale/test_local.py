"""Processes of this machine: every file once, whatever becomes of the processes."""

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from tests.scale import tasks

from selftime.scale import Local
from selftime.scale.engine import MAX_READ_ATTEMPTS_PER_FILE, FileLostByReader

PLACES = [f"rank{number}.json" for number in range(5)]
PROGRAM = """
import sys
from tests.scale import tasks
from selftime.scale import Local
for place, answer in Local(2).map(tasks.process, [str(number) for number in range(20)]):
    print(answer, flush=True)
    sys.stdin.read(1)
"""


def test_no_files_give_no_answers() -> None:
    assert list(Local().map(tasks.process, [])) == []


def test_one_file_is_read_here() -> None:
    assert list(Local(4).map(tasks.process, PLACES[:1])) == [(PLACES[0], os.getpid())]


def test_what_is_in_memory_is_read_here() -> None:
    [*answers] = Local(2).map(tasks.process, ["memory://a", "memory://b"])
    assert {answer for _, answer in answers} == {os.getpid()}


def test_processes_are_used_again_and_each_file_is_read_once() -> None:
    places = [str(number) for number in range(9)]
    answers = list(Local(2).map(tasks.process, places))
    assert sorted(place for place, _ in answers) == places
    pids = {pid for _, pid in answers}
    assert os.getpid() not in pids
    if sys.platform == "linux":  # elsewhere nothing tells what a process holds
        assert len(pids) == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_tasks_tell_how_far_they_are(workers: int) -> None:
    told: list[tuple[str, int, int | None]] = []
    found = Local(workers).map(
        tasks.halves, PLACES, progress=lambda place, done, total: told.append((place, done, total))
    )
    assert sorted(found) == [(place, place) for place in PLACES]
    assert sorted(told) == [(place, done, 2) for place in PLACES for done in (1, 2)]


def test_what_is_told_can_end_all() -> None:
    def end(place: str, done: int, _: int | None) -> None:
        if (place, done) == (PLACES[0], 2):
            raise KeyError(place)

    with pytest.raises(KeyError, match="rank0"):
        list(Local(2).map(tasks.halves, PLACES, progress=end))


def test_a_process_that_keeps_much_is_ended() -> None:
    answers = dict(Local(2).map(tasks.keep, ["a", "b", "c", "d"]))
    assert len(set(answers.values())) == 4


def test_a_killed_process_is_replaced_and_its_file_tried_again(marks: Path) -> None:
    answers = list(Local(2).map(partial(tasks.die, marks=str(marks), times=1), PLACES))
    assert sorted(answers) == [(place, place) for place in PLACES]
    tried = sorted(mark.name for mark in marks.iterdir())
    assert tried == sorted([*(f"{place}.0" for place in PLACES), "rank2.json.1"])


def test_a_file_that_always_kills_is_given_up_and_the_rest_is_there(marks: Path) -> None:
    answers = dict(Local(2).map(partial(tasks.die, marks=str(marks), times=99), PLACES))
    lost = answers.pop("rank2.json")
    assert isinstance(lost, FileLostByReader)
    assert lost.why.startswith("`rank2.json` was given up: the process that read it ended 3 times")
    assert answers == {place: place for place in PLACES if place != "rank2.json"}
    assert len(list(marks.glob("rank2.json.*"))) == MAX_READ_ATTEMPTS_PER_FILE


def test_no_memory_in_one_process_is_tried_in_another(
    capfd: pytest.CaptureFixture[str],
) -> None:
    answers = dict(Local(2).map(tasks.memory, PLACES))
    assert isinstance(answers.pop("rank2.json"), FileLostByReader)
    assert len(answers) == 4
    assert capfd.readouterr().err.count("    raise MemoryError\n") == MAX_READ_ATTEMPTS_PER_FILE


def test_an_error_is_raised_where_the_task_was_given() -> None:
    with pytest.raises(KeyError) as caught:
        list(Local(2).map(tasks.fail, PLACES))
    assert "in fail" in str(caught.value.__cause__)


def test_who_stops_asking_ends_the_processes() -> None:
    answers = Local(2).map(tasks.process, [str(number) for number in range(99)])
    _, pid = next(answers)
    assert isinstance(pid, int)
    answers.close()  # type: ignore[attr-defined]  # it is a generator
    assert is_gone(pid)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for one process")
def test_ctrl_c_ends_all_of_it() -> None:
    asking = subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert asking.stdout is not None
    pid = int(asking.stdout.readline())
    asking.send_signal(2)
    _, told = asking.communicate(timeout=60)
    assert told.rstrip().endswith("KeyboardInterrupt")
    assert is_gone(pid)


def is_gone(pid: int) -> bool:
    """Whether a process ends within a minute."""
    for _ in range(600):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False
