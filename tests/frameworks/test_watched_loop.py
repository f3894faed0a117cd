"""`selftime.watch` around loops as people write them."""

import copy
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

import selftime
from selftime.capture.ledger import stacks
from selftime.capture.ledger.watcher import StackWatcher
from selftime.capture.lines.sources import SourceFiles
from selftime.capture.recorder.step_watch import ACTIVE_RECORDER
from selftime.errors import RecordingError, UsageError

pytestmark = pytest.mark.torch

LONG = 100
"""Rounds after which a recording is whole, however long steps take to be steady."""
OPTIONS: Any = {"steps": 2, "warmup": 2}
NEEDED = 2 + 1 + 2 + 1 + 5 + 1 + 2
"""Rounds of a whole recording with these: two pass, one warms up, two are recorded, one is marked,
five are timed without the recorder, one warms up again, and two are recorded for their times."""

Files = Callable[[], list[Path]]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """Runs the test in a folder of its own; what is in its folder of recordings."""
    monkeypatch.chdir(tmp_path)
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(ACTIVE_RECORDER, "_sent", set())  # of other tests
    return lambda: sorted(tmp_path.glob("selftime-runs/*.gz"))


def work(number: int = 0) -> None:
    torch.mm(torch.ones(8, 8), torch.ones(8, 8)).add_(number)


def test_a_long_loop_leaves_one_whole_file(
    files: Files, steps: Callable[[Any], int], capsys: pytest.CaptureFixture[str]
) -> None:
    for number in selftime.watch(range(LONG)):
        work(number)

    (file,) = files()
    trace: Any = selftime.load(file)
    assert steps(trace) == 5
    assert trace.metadata["selftime"]["steps"]["source"] == "the program"
    assert trace.metadata["selftime"]["partial"] is None
    told = f"selftime: recorded 5 steps; what to change: selftime advise selftime-runs/{file.name}"
    assert capsys.readouterr().err.splitlines() == [told]


def test_epochs_make_one_file(files: Files) -> None:
    loader = range(NEEDED + 1)
    for _ in range(3):
        for number in selftime.watch(loader, **OPTIONS):
            work(number)
    assert len(files()) == 1


def test_epochs_of_one_batch_are_recorded_as_one_loop(
    files: Files, steps: Callable[[Any], int]
) -> None:
    for number in range(NEEDED + 2):
        for _ in selftime.watch([number], **OPTIONS):
            work()

    (file,) = files()
    assert steps(selftime.load(file)) == 2


def test_what_begins_between_two_runs_goes_first(files: Files, steps: Callable[[Any], int]) -> None:
    for _ in range(4):
        for _ in selftime.watch(range(3), **OPTIONS):
            work()
    for _ in selftime.watch(range(LONG)):
        work()
    assert {steps(selftime.load(file)) for file in files()} == {2, 5}


def test_the_file_that_holds_more_stays(files: Files, steps: Callable[[Any], int]) -> None:
    kept = []
    for rounds in (3, 2 * NEEDED):
        for _ in selftime.watch(range(rounds), **OPTIONS):
            work()
        kept += [steps(selftime.load(file)) for file in files()]
    assert kept == [1, 2]


def test_modules_are_looked_at_before_a_recording_and_not_within(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first stack that is read looks at all modules, also where no thread has read one yet."""
    within = []

    class Watched(SourceFiles):
        def __init__(self, user_paths: Iterable[str] = ()) -> None:
            within.append(torch.autograd.profiler._is_profiler_enabled)
            super().__init__(user_paths)

    monkeypatch.setattr(stacks, "SourceFiles", Watched)
    monkeypatch.setattr(StackWatcher, "_read", lambda *_: None)
    monkeypatch.setattr(StackWatcher, "_sample_usual_step", lambda *_: 1.0)
    for _ in selftime.watch(range(4), **OPTIONS):
        work()
    assert files()
    assert within == [False]


def test_the_wait_for_a_batch_belongs_to_its_step(files: Files) -> None:
    def batches() -> Iterator[int]:
        for number in range(LONG):
            with selftime.record_function(f"fetch {number}"):
                pass
            yield number

    for number in selftime.watch(batches()):
        with selftime.record_function(f"use {number}"):
            work()

    (file,) = files()
    trace: Any = selftime.load(file)
    spans = [
        (start, start + length)
        for start, length in trace.view("steps").select("start", "host_time").rows()
    ]
    named = trace.slices.filter(trace.slices["category"].cast(str) == "user_annotation")
    at = dict(named.select("name", "start").with_columns(name=named["name"].cast(str)).rows())
    numbers = {int(name.split()[1]) for name in at if name.startswith("use ")}
    within = {
        number
        for number in numbers
        for begin, end in spans
        if begin <= at[f"fetch {number}"] < end and begin <= at[f"use {number}"] < end
    }
    assert len(within) == 5


def test_what_is_watched_is_as_it_was() -> None:
    loader: Any = torch.utils.data.DataLoader(range(6), batch_size=2)  # type: ignore[arg-type]  # a range is enough
    watched = selftime.watch(loader)
    assert len(watched) == 3
    assert watched.batch_size == 2
    assert watched
    assert not selftime.watch([])
    assert copy.copy(watched).dataset == range(6)
    with pytest.raises(TypeError, match="no len"):
        len(selftime.watch(iter([1])))
    with pytest.raises(AttributeError, match="nothing_such"):
        watched.nothing_such  # noqa: B018 - it raises
    assert list(enumerate(selftime.watch("ab", quiet=True))) == [(0, "a"), (1, "b")]


def test_leaving_the_loop_leaves_a_partial_file(files: Files) -> None:
    for number in selftime.watch(range(LONG), warmup=1, steps=5):
        work()
        if number == 4:
            break

    (file,) = files()
    trace: Any = selftime.load(file)
    assert trace.metadata["selftime"]["partial"] == "the loop was left"


def test_an_exception_in_the_loop_is_the_programs(files: Files) -> None:
    def train() -> None:
        for number in selftime.watch(range(LONG), warmup=1, steps=5):
            work()
            if number == 4:
                raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        train()
    del caught  # it holds the loop's frame
    assert len(files()) == 1
    assert not torch._C._autograd._profiler_enabled()


def test_an_exception_of_the_loader_is_the_programs(files: Files) -> None:
    def batches() -> Iterator[int]:
        yield from range(5)
        raise OSError("gone")

    def train() -> None:
        for _ in selftime.watch(batches(), warmup=1, steps=5):
            work()

    with pytest.raises(OSError, match="gone"):
        train()
    (file,) = files()
    trace: Any = selftime.load(file)
    assert trace.metadata["selftime"]["partial"] == "ended by OSError"


def test_of_nested_loops_the_outer_one_is_recorded(
    files: Files, steps: Callable[[Any], int], capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in selftime.watch(range(LONG)):
        for number in selftime.watch(range(3)):
            work(number)

    (file,) = files()
    assert steps(selftime.load(file)) == 5
    said = capsys.readouterr().err.splitlines()
    assert sum("records nothing" in line for line in said) == 1, "it is said once"


def test_a_profiler_of_the_programs_goes_first(files: Files) -> None:
    with torch.profiler.profile() as prof:
        for _ in selftime.watch(range(LONG)):
            work()
    assert prof.key_averages()
    assert files() == []


def test_a_profiler_that_begins_within_the_loop_goes_first(files: Files) -> None:
    for number in selftime.watch(range(LONG), warmup=1, steps=20):
        work()
        if number == 10:
            with torch.profiler.profile() as prof:
                work()
    assert prof.key_averages()
    (file,) = files()
    trace: Any = selftime.load(file)
    assert "began to record" in trace.metadata["selftime"]["partial"]


def test_a_loop_within_itself_is_inert(files: Files) -> None:
    def walk(depth: int) -> None:
        for _ in selftime.watch(range(NEEDED + 1), **OPTIONS):
            work()
            if depth:
                walk(depth - 1)

    walk(1)
    assert len(files()) == 1


def test_another_thread_tells_no_steps(files: Files, steps: Callable[[Any], int]) -> None:
    def aside() -> None:
        for _ in selftime.watch(range(LONG), quiet=True):
            work()

    for number in selftime.watch(range(LONG)):
        work()
        if number == 3:
            thread = threading.Thread(target=aside)
            thread.start()
            thread.join()
    (file,) = files()
    assert steps(selftime.load(file)) == 5


@pytest.mark.sweep
def test_a_loader_with_workers_forks_within_the_recording(files: Files) -> None:
    dataset: Any = torch.utils.data.TensorDataset(torch.arange(6.0))
    for number in selftime.watch(range(NEEDED + 2), **OPTIONS):
        for _ in torch.utils.data.DataLoader(dataset, num_workers=int(number > 1)):
            work()
    assert len(files()) == 1


def test_a_folder_that_cannot_be_made_is_told_and_harms_nothing(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    rounds = 0
    for _ in selftime.watch(range(LONG), folder=tmp_path / "file"):
        work()
        rounds += 1
    assert rounds == LONG
    assert files() == []
    assert "is a file, and traces go into a folder" in capsys.readouterr().err


def test_the_folder_is_where_the_loop_began(files: Files, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    for _ in selftime.watch(range(LONG)):
        os.chdir(tmp_path / "elsewhere")
        work()
    assert len(files()) == 1


def test_the_answer_can_be_asked_for(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    loop = selftime.watch(range(LONG), answer=True)
    for _ in loop:
        work()
    assert "Health" in capsys.readouterr().err
    assert loop.recording.trace == files()[0]
    assert loop.recording.advise().step.count > 0


def test_what_was_not_recorded_cannot_be_asked() -> None:
    with pytest.raises(RecordingError, match="has recorded nothing"):
        selftime.watch([1]).recording.advise()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"step": 3}, "has no option `step`"),
        ({"steps": 0}, "`steps` of `selftime.watch` is 0"),
        ({"steps": "5"}, "`steps` of `selftime.watch` is '5'"),
    ],
)
def test_wrong_words_are_told(options: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        selftime.watch([1], **options)


def test_only_what_can_be_iterated_is_watched() -> None:
    with pytest.raises(UsageError, match="was given a `Linear`, which cannot be iterated"):
        selftime.watch(nn.Linear(1, 1))  # type: ignore[arg-type]  # the point of the test


def test_a_torch_that_cannot_be_watched_is_told_and_harms_nothing() -> None:
    script = (
        "import sys\nsys.modules['torch'] = None\nimport selftime\n"
        "for _ in range(2):\n    for number in selftime.watch(range(3)):\n        print(number)"
    )
    done = subprocess.run(  # noqa: S603 - our own lines
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["0", "1", "2"] * 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("selftime: `selftime.watch` records nothing: steps cannot be detected")
