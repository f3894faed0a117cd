"""A recording ends within a step before it has more events than memory or the user allow."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("torch")

from selftime.capture.facts.free_memory import (
    free_memory_bytes,
    peak_resident_bytes,
    resident_bytes,
)
from selftime.capture.recorder.no_recording import cut_reason
from selftime.capture.recorder.recording_guard import (
    RecordingGuard,
    excess_over_limit,
    is_window_over,
)
from selftime.capture.recorder.recording_plan import EventLimit
from selftime.capture.steps import StepSource

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

pytestmark = pytest.mark.torch

MIB = 1 << 20
MS = 1_000_000
LIMIT = EventLimit(max_events=100_000, events_in_memory=400_000, expected_ns=600 * MS)


@pytest.mark.parametrize(
    ("elapsed_ms", "resident", "expected"),
    [
        (599, 900, False),
        (601, 900, True),
        (601, 540, False),
        (1_799, 540, False),
        (1_801, 540, True),
        (1_801, 200, False),
    ],
    ids=[
        "as many steps as planned may take so long",
        "more memory than the program ever used, for long enough",
        "memory that the program used before",
        "a long step that was expected",
        "late, and much memory",
        "late, but little memory",
    ],
)
def test_both_time_and_memory_tell_how_many_events_there_may_be(
    elapsed_ms: int, resident: int, expected: bool
) -> None:
    excess = excess_over_limit(LIMIT, elapsed_ms * MS, 100 * MIB, 500 * MIB, resident * MIB)
    assert (excess is not None) == expected


def test_of_an_unknown_step_the_least_time_of_its_events_tells() -> None:
    unknown = replace(LIMIT, expected_ns=0)
    assert excess_over_limit(unknown, 99 * MS, 100 * MIB, 500 * MIB, 900 * MIB) is None
    assert excess_over_limit(unknown, 101 * MS, 100 * MIB, 500 * MIB, 900 * MIB) is not None


def test_what_is_known_of_the_excess_is_told() -> None:
    assert excess_over_limit(LIMIT, 601 * MS, 100 * MIB, 500 * MIB, 900 * MIB) == (
        "it took 400.00 MiB more memory than the program had used before, and at most 63.68 MiB "
        "was planned"
    )
    late = excess_over_limit(LIMIT, 2_100 * MS, 100 * MIB, 500 * MIB, 540 * MIB)
    assert late == "it ran for 2.100 s and took 440.00 MiB of memory, which is more than planned"
    told = cut_reason(StepSource.OPTIMIZER, 1, late)
    assert told == f"the recording ended within a step: {late}"
    assert cut_reason(StepSource.OPTIMIZER, 0, late) == f"{told}; this is the step's beginning"


def test_a_part_of_a_step_is_recorded_for_the_time_that_its_events_take() -> None:
    window = replace(LIMIT, window_ns=50 * MS)
    assert not is_window_over(window, 49 * MS)
    assert is_window_over(window, 51 * MS)
    assert not is_window_over(LIMIT, 51 * MS)


def test_where_memory_is_hidden_time_alone_tells() -> None:
    assert excess_over_limit(LIMIT, 1_700 * MS, 0, 0, None) is None
    told = "it ran for 2.100 s, and at most 1.800 s was planned"
    assert excess_over_limit(LIMIT, 2_100 * MS, 0, 0, None) == told


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system hides it")
def test_the_main_thread_is_called_once_a_limit_is_reached() -> None:
    called = threading.Event()
    guard = RecordingGuard(called.set, lambda error: pytest.fail(str(error)))
    held = bytearray(32 * MIB)
    guard.prepare(EventLimit(1, 1))
    guard.begin()
    held += bytes(256 * MIB)  # no recording has so much memory with one event
    while not called.is_set():
        pass

    assert guard.is_reached
    guard.end()
    assert not guard.is_reached
    assert len(held) == 288 * MIB


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system hides it")
def test_time_in_which_the_process_has_no_core_does_not_count() -> None:
    called = threading.Event()
    guard = RecordingGuard(called.set, lambda error: pytest.fail(str(error)))
    guard.prepare(EventLimit(100_000, 400_000))
    held = b"x" * (512 * MIB)  # more than so many events take
    guard.begin()
    threading.Event().wait(0.3)  # three times as long as so many events take

    assert not guard.is_reached
    while not called.is_set():
        pass
    assert "more" in guard.excess
    guard.end()
    assert len(held) == 512 * MIB


def test_free_memory_is_what_the_tightest_group_leaves(tmp_path: Path) -> None:
    assert free_memory_bytes(tmp_path) is None
    write(tmp_path, "proc/meminfo", "MemTotal: 100 kB\nMemAvailable:   64000 kB\n")
    assert free_memory_bytes(tmp_path) == 64_000 << 10
    write(tmp_path, "proc/self/cgroup", "0::/outer/inner\n")
    write(tmp_path, "sys/fs/cgroup/outer/inner/memory.max", "max\n")
    write(tmp_path, "sys/fs/cgroup/outer/memory.max", "50000\n")
    write(tmp_path, "sys/fs/cgroup/outer/memory.current", "40000\n")
    write(tmp_path, "sys/fs/cgroup/outer/memory.stat", "anon 20000\ninactive_file 5000\n")
    assert free_memory_bytes(tmp_path) == 15_000


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system hides it")
def test_a_process_uses_no_more_than_its_peak() -> None:
    used = resident_bytes()
    peak = peak_resident_bytes()
    assert used is not None
    assert peak is not None
    assert 0 < used <= peak


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


MANY = """
    import torch

    net = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.ones(8), torch.ones(8)
    for step in range({steps}):
        if step in {large}:
            net.eval()
            for _ in range(100_000):
                x = x * y
            net.train()
        net(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    print("done")
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system hides it")
def test_steps_too_large_for_the_hold_are_recorded_in_part(record: "Runner") -> None:
    outcome = record(MANY.format(steps=6, large="range(6)"), hold=0.01, active=2)

    assert (outcome.status, outcome.stdout) == (0, "done\n")
    assert outcome.result["steps_recorded"] == 0
    assert "this is the step's beginning" in outcome.facts["partial"]
    assert outcome.facts["steps"]["window"]
    assert not outcome.facts["flags"]["record_shapes"]
    assert not outcome.facts["flags"]["with_stack"]
    assert 100 < len(outcome.rows("aten::mul")) < 100_000


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system hides it")
def test_a_recording_does_not_go_on_through_an_evaluation(record: "Runner") -> None:
    outcome = record(MANY.format(steps=20, large="[6]"), hold=0.3)

    assert (outcome.status, outcome.stdout) == (0, "done\n")
    assert outcome.result["steps_recorded"] == 2
    assert "the recording ended within a step: it " in outcome.facts["partial"]
    assert len(outcome.rows("aten::mul")) < 100_000
