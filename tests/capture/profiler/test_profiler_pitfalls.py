import inspect
import os
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.experimental import experimental_config

torch = pytest.importorskip("torch")

import selftime  # noqa: E402 - it is there where torch is
from selftime.errors import RecordingError, UsageError  # noqa: E402 - likewise

CPU, CUDA = torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA
ROOT = Path(__file__).parents[3]

pytestmark = [
    pytest.mark.torch,
    # torch says so once a process, at the second cycle of any profiler.
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"),
]
no_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")


def plan(**options: int) -> Any:
    return selftime.schedule(**{"wait": 0, "warmup": 1, "active": 2, "repeat": 1, **options})


def loop(prof: Any, steps: int) -> None:
    for _ in range(steps):
        torch.ones(2).add(1)
        prof.step()


def ones(prof: Any) -> int:
    """How often the operator of a step was recorded."""
    return sum(row.count for row in prof.key_averages() if row.key == "aten::ones")


@pytest.fixture
def told() -> Iterator[list[warnings.WarningMessage]]:
    """All warnings, as often as they come."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def run(folder: Path, program: str) -> "subprocess.CompletedProcess[str]":
    (folder / "program.py").write_text(textwrap.dedent(program))
    return subprocess.run(
        [sys.executable, "program.py"],
        executable=sys.executable,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


# Arguments


@pytest.mark.parametrize(
    ("options", "cure"),
    [
        ({"schedule": {"wait": 1}}, r"pass selftime\.schedule\("),
        ({"on_trace_ready": "log"}, r"pass selftime\.tensorboard_trace_handler"),
        ({"on_trace_ready": selftime.tensorboard_trace_handler}, "call it"),
        ({"on_trace_ready": torch.profiler.tensorboard_trace_handler}, "call it"),
        ({"activities": CPU}, r"not a list; pass \["),
        pytest.param({"activities": [CUDA]}, r"add ProfilerActivity\.CPU", marks=no_cuda),
        pytest.param({"activities": [{CUDA: ["KERNEL"]}]}, "asks for CUDA alone", marks=no_cuda),
    ],
)
def test_an_argument_that_records_nothing_is_refused(options: dict[str, Any], cure: str) -> None:
    with pytest.raises(UsageError, match=cure):
        selftime.profile(**options)


def test_activities_may_be_a_generator() -> None:
    with selftime.profile(activities=(kind for kind in [CPU])) as prof:
        torch.ones(2)

    assert ones(prof) == 1


def test_what_torch_refuses_it_refuses_itself() -> None:
    with pytest.raises(TypeError, match="Expected ProfilerActivity"):
        selftime.profile(activities=[CPU, "cuda"])
    with pytest.raises(AssertionError, match="active=0"):
        selftime.schedule(wait=0, warmup=1, active=0)


def test_a_function_of_the_programs_own_may_be_the_schedule() -> None:
    with selftime.profile(schedule=lambda _: selftime.ProfilerAction.RECORD) as prof:
        loop(prof, 2)

    assert ones(prof) == 2


# Steps


def test_steps_without_a_schedule_are_told_once(told: list[Any]) -> None:
    with selftime.profile() as prof:
        loop(prof, 3)

    (warning,) = told
    assert "pass schedule=selftime.schedule(" in str(warning.message)
    assert warning.filename == __file__
    assert ones(prof) == 3


@pytest.mark.parametrize(
    ("options", "steps", "sentence"),
    [
        ({}, 0, r"prof\.step\(\) was never called"),
        ({"wait": 4}, 1, r"after 1 call of prof\.step\(\), and begins to record after 5;"),
        ({"wait": 4, "skip_first": 3}, 6, "6 calls .* begins to record after 8"),
        ({"wait": 4, "skip_first": 3, "skip_first_wait": 1}, 2, "begins to record after 4"),
    ],
)
def test_a_schedule_longer_than_the_run(options: dict[str, int], steps: int, sentence: str) -> None:
    prof = selftime.profile(schedule=plan(**options))
    prof.start()
    loop(prof, steps)
    with pytest.warns(UserWarning, match=sentence):
        prof.stop()


@pytest.mark.parametrize("steps", range(8))
def test_when_a_schedule_records_is_told_rightly(steps: int, told: list[Any]) -> None:
    """As many calls as the sentence says, and one step to be recorded."""
    with selftime.profile(schedule=plan(wait=2, skip_first=2)) as prof:
        loop(prof, steps)

    never = [str(w.message) for w in told if "nothing was recorded" in str(w.message)]
    assert bool(never) == (steps < 5)
    assert all("begins to record after 5" in sentence for sentence in never) or steps == 0


@pytest.mark.parametrize(("steps", "whole"), [(1, 0), (2, 1), (3, 2), (4, 2)])
def test_a_recording_that_is_cut_off(steps: int, whole: int, told: list[Any]) -> None:
    with selftime.profile(schedule=plan()) as prof:
        loop(prof, steps)

    sentences = [str(warning.message) for warning in told]
    expected = [] if whole == 2 else [f"the recording was stopped after {whole} of its 2 steps;"]
    assert [sentence[: len(expected[0])] for sentence in sentences] == expected


def test_a_schedule_that_repeats_is_always_cut_off(told: list[Any]) -> None:
    with selftime.profile(schedule=plan(repeat=0)) as prof:
        loop(prof, 5)

    assert not [str(w.message) for w in told if "stopped after" in str(w.message)]


def test_an_exception_is_not_told_twice(told: list[Any]) -> None:
    def fail() -> None:
        with selftime.profile(schedule=plan(wait=5)):
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fail()
    assert told == []


# Start and stop


def test_started_twice() -> None:
    with selftime.profile() as prof:
        torch.ones(2)
        with pytest.raises(RecordingError, match=r"call prof\.stop\(\) before"):
            prof.start()

    assert ones(prof) == 1


def test_stopped_within_its_block_keeps_the_recording(told: list[Any]) -> None:
    with selftime.profile() as prof:
        torch.ones(2)
        prof.stop()
        torch.ones(2)
        prof.stop()

    assert ones(prof) == 1
    assert told == []


def test_stopped_and_never_started() -> None:
    with pytest.warns(UserWarning, match=r"call prof\.start\(\) before"):
        selftime.profile().stop()


@pytest.mark.parametrize("begun", [False, True])
def test_steps_of_a_profiler_that_does_not_run(begun: bool) -> None:
    """Torch crashes, or begins to record."""
    prof = selftime.profile(schedule=plan())
    if begun:
        prof.start()
        loop(prof, 3)
        prof.stop()
    with pytest.warns(UserWarning, match="the profiler does not run") as caught:
        loop(prof, 9)

    assert len(caught) == 1
    assert not torch.autograd.profiler._is_profiler_enabled


def test_two_at_once() -> None:
    with selftime.profile() as first:
        torch.ones(2)
        with (
            pytest.raises(RecordingError, match=r"another selftime\.profile is recording"),
            selftime.profile(),
        ):
            pass
    with selftime.profile() as second:
        torch.ones(2)

    assert (ones(first), ones(second)) == (1, 1)


def test_two_at_once_by_their_schedules() -> None:
    with selftime.profile(schedule=plan(active=4)) as first:
        loop(first, 2)
        second = selftime.profile(schedule=plan(wait=1))
        second.start()
        with pytest.raises(RecordingError, match="only one can run at a time"):
            second.step()
        loop(first, 3)

    assert ones(first) == 4
    with pytest.warns(UserWarning, match="nothing was recorded"):
        second.stop()


def test_within_torchs_own_profiler() -> None:
    with torch.profiler.profile() as outer:
        torch.ones(2)
        with pytest.raises(RecordingError, match="another profiler of torch is recording"):
            selftime.profile().start()

    assert "aten::ones" in {row.key for row in outer.key_averages()}


def test_torchs_own_profiler_within() -> None:
    prof = selftime.profile()
    prof.start()
    with torch.profiler.profile():
        torch.ones(2)
    with pytest.warns(UserWarning, match="another profiler started during it"):
        prof.stop()


def test_one_that_nobody_can_stop_any_more_stands_in_no_ones_way() -> None:
    prof = selftime.profile()
    prof.start()
    del prof
    with selftime.profile() as later:
        torch.ones(2)

    assert ones(later) == 1


def test_one_that_could_not_begin_stands_in_no_ones_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("the driver says no")

    first = selftime.profile()
    with monkeypatch.context() as patch:
        patch.setattr(torch.autograd.profiler.profile, "_prepare_trace", fail)
        with pytest.raises(RuntimeError, match="says no"):
            first.start()
    with selftime.profile() as later:
        torch.ones(2)

    assert ones(later) == 1


@pytest.mark.parametrize("call", ["stop", "step"])
def test_another_thread(call: str) -> None:
    errors: list[BaseException] = []

    def other() -> None:
        try:
            getattr(prof, call)()
        except RecordingError as error:
            errors.append(error)

    with selftime.profile(schedule=plan(warmup=1, active=1)) as prof:
        loop(prof, 1)
        torch.ones(2)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        prof.step()

    assert f"prof.{call}() is called in another thread" in str(errors[0])
    assert ones(prof) == 1


def test_all_threads_may_stop_what_records_all_threads() -> None:
    config = experimental_config(profile_all_threads=True)
    prof = selftime.profile(experimental_config=config)
    prof.start()
    torch.ones(2)
    thread = threading.Thread(target=prof.stop)
    thread.start()
    thread.join()

    assert ones(prof) == 1


@pytest.mark.parametrize("lost", ["", "del prof\n"])
@pytest.mark.sweep(1)
def test_a_program_that_ends_within_a_recording_does_not_crash(tmp_path: Path, lost: str) -> None:
    done = run(
        tmp_path,
        "import torch, selftime\n"
        "prof = selftime.profile()\n"
        "prof.start()\n"
        "torch.ones(2)\n"
        f"{lost}"
        "print('the end')\n",
    )

    assert (done.returncode, done.stdout) == (0, "the end\n")
    if not lost:
        assert "program.py:3: UserWarning: the profiler was still running" in done.stderr


@pytest.mark.sweep
def test_a_program_that_fails_within_a_recording_fails_as_it_would(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        import torch, selftime
        prof = selftime.profile(with_stack=True)
        prof.start()
        raise SystemExit(3)
        """,
    )

    assert done.returncode == 3


# Reading


READS: list[Callable[[Any], Any]] = [
    lambda prof: prof.key_averages(),
    lambda prof: prof.events(),
    lambda prof: prof.advise(),
    lambda prof: prof.trace(),
    lambda prof: prof.export_chrome_trace("trace.json"),
    lambda prof: prof.export_stacks("stacks.txt"),
    lambda prof: prof.export_memory_timeline("memory.json"),
]


@pytest.mark.filterwarnings("ignore:.export_memory_timeline. is deprecated:FutureWarning")
@pytest.mark.parametrize("read", READS)
def test_reading_before_the_end(read: Callable[[Any], Any]) -> None:
    prof = selftime.profile(with_stack=True, record_shapes=True, profile_memory=True)
    with pytest.raises(RecordingError, match="nothing has been recorded"):
        read(prof)
    with prof:
        torch.ones(2)
        with pytest.raises(RecordingError, match=r"read from it after the `with` block"):
            read(prof)

    assert ones(prof) == 1


@pytest.mark.parametrize(
    ("grouping", "cure"),
    [
        ({"group_by_input_shape": True}, "pass record_shapes=True"),
        ({"group_by_stack_n": 3}, "pass with_stack=True"),
    ],
)
@pytest.mark.parametrize("accumulated", [False, True])
def test_groups_of_what_was_not_recorded(
    grouping: dict[str, Any], cure: str, *, accumulated: bool
) -> None:
    with selftime.profile(acc_events=accumulated) as prof:
        torch.ones(2)
    with pytest.warns(UserWarning, match=cure) as caught:
        prof.key_averages(**grouping)

    assert [warning.filename for warning in caught] == [__file__]


def test_operations_need_shapes_and_record_them() -> None:
    with selftime.profile(with_flops=True) as prof:
        torch.ones(2, 2).mm(torch.ones(2, 2))
    shapes = {tuple(map(tuple, row.input_shapes)) for row in prof.key_averages(True)}

    assert ((2, 2), (2, 2)) in shapes


# What is called at the end of a recording


@pytest.mark.parametrize("caught", [False, True])
def test_an_exception_in_the_callback(caught: bool) -> None:
    """Torch dies of it, by SIGSEGV."""
    calls = []

    def ready(prof: Any) -> None:
        calls.append(prof.step_num)
        raise LookupError("mine")

    prof = selftime.profile(schedule=plan(active=1, repeat=0), on_trace_ready=ready)
    if not caught:
        with pytest.raises(LookupError, match="mine"), prof:
            loop(prof, 6)
        assert calls == [2]
        return
    with prof:
        for _ in range(6):
            with suppress(LookupError):
                loop(prof, 1)
    assert calls == [2, 4, 6]
    assert ones(prof) == 1


def test_an_exception_in_the_callback_at_the_end() -> None:
    def ready(_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), selftime.profile(on_trace_ready=ready) as prof:
        torch.ones(2)

    assert ones(prof) == 1


def test_each_cycle_over_the_same_file(tmp_path: Path, told: list[Any]) -> None:
    def ready(prof: Any) -> None:
        prof.export_chrome_trace(str(tmp_path / "trace.json"))

    with selftime.profile(schedule=plan(active=1, repeat=3), on_trace_ready=ready) as prof:
        loop(prof, 6)

    (sentence,) = [str(w.message) for w in told if "written over" in str(w.message)]
    assert "put prof.step_num in its name" in sentence


def test_the_same_recording_twice_into_a_file_is_no_trap(tmp_path: Path, told: list[Any]) -> None:
    def ready(prof: Any) -> None:
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        prof.export_chrome_trace(str(tmp_path / "trace.json"))

    with selftime.profile(on_trace_ready=ready):
        torch.ones(2)

    assert told == []


@pytest.mark.parametrize(("repeat", "sentences"), [(0, 1), (12, 0)])
def test_a_schedule_without_an_end(repeat: int, sentences: int, told: list[Any]) -> None:
    cycle = plan(active=1, repeat=repeat)
    with selftime.profile(schedule=cycle, on_trace_ready=lambda _: None) as prof:
        loop(prof, 24)

    assert sum("pass repeat=1" in str(warning.message) for warning in told) == sentences


# Torch's own warnings


@no_cuda
def test_torchs_warnings_point_to_the_program_too(told: list[Any]) -> None:
    with selftime.profile(activities=[CPU, CUDA]):
        torch.ones(2)
    expected = {"CUDA is not available, d": __file__}
    if "use_cuda" in inspect.signature(torch.profiler.profile).parameters:  # until torch 2.13
        selftime.profile(use_cuda=True)
        expected["`use_cuda` is deprecated"] = __file__

    assert {str(warning.message)[:24]: warning.filename for warning in told} == expected


@pytest.mark.sweep
def test_warnings_that_are_errors_break_nothing(tmp_path: Path) -> None:
    """Torch crashes if one of its own is an error: at the second cycle, in this program."""
    done = run(
        tmp_path,
        """
        import torch, selftime, warnings
        warnings.simplefilter("error")
        cycle = selftime.schedule(wait=0, warmup=1, active=1, repeat=2)
        raised = []
        with selftime.profile(schedule=cycle, on_trace_ready=lambda _: print("ready")) as prof:
            for _ in range(4):
                torch.ones(2)
                try:
                    prof.step()
                except UserWarning as warning:
                    raised.append(str(warning))
        print(len(raised), "Profiler clears events" in raised[0])
        """,
    )

    assert (done.returncode, done.stdout) == (0, "ready\nready\n1 True\n")


# Compilation


def test_compilation_within_a_recording(told: list[Any]) -> None:
    def double(rows: Any) -> Any:
        return rows * 2

    compiled = torch.compile(double, backend="eager")
    with selftime.profile():
        compiled(torch.ones(3))
    first = [str(w.message) for w in told if "torch.compile" in str(w.message)]
    told.clear()
    with selftime.profile():
        compiled(torch.ones(3))

    assert len(first) == 1
    assert "run a few steps first" in first[0]
    assert not [str(w.message) for w in told if "torch.compile" in str(w.message)]


def test_warnings_point_to_the_line_of_the_program(told: list[Any]) -> None:
    with selftime.profile(schedule=plan(wait=9)) as prof:
        prof.step()

    (warning,) = told
    assert warning.filename == __file__
    assert Path(__file__).read_text().splitlines()[warning.lineno - 1].strip().startswith("with")
