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
from selftime.capture.facts.malloc import bytes_in_arenas
from selftime.capture.recorder.no_recording import cut_reason
from selftime.capture.recorder.program_memory import (
    Growth,
    MemoryBefore,
    ProgramMemory,
    UsedMemory,
    used_memory,
)
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
BEFORE = MemoryBefore(UsedMemory(100 * MIB), peak=500 * MIB)


def excess(limit: EventLimit, ran_ms: int, resident_mib: int) -> str | None:
    return excess_over_limit(limit, ran_ms * MS, BEFORE, UsedMemory(resident_mib * MIB))


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
    assert (excess(LIMIT, elapsed_ms, resident) is not None) == expected


def test_of_an_unknown_step_the_least_time_of_its_events_tells() -> None:
    unknown = replace(LIMIT, expected_ns=0)
    assert excess(unknown, 99, 900) is None
    assert excess(unknown, 101, 900) is not None


def test_a_late_recording_may_hold_many_frames_in_little_memory() -> None:
    def is_cut(elapsed_ms: int, beyond_mib: int, limit: EventLimit = LIMIT) -> bool:
        before = MemoryBefore(UsedMemory(500 * MIB), peak=500 * MIB)
        now = UsedMemory((500 + beyond_mib) * MIB)
        return excess_over_limit(limit, elapsed_ms * MS, before, now) is not None

    assert not is_cut(1_799, 13)
    assert not is_cut(1_801, 11)
    assert is_cut(1_801, 13)  # 10 MiB, and 20 bytes for each planned event
    assert not is_cut(1_801, 13, replace(LIMIT, expected_ns=0))  # nothing is late


def test_growth_in_a_short_time_is_not_taken_to_go_on_for_long() -> None:
    growth = Growth(ns=2 * MS, resident=MIB, in_arenas=MIB)
    assert growth.resident_in(4 * MS) == 2 * MIB
    assert growth.resident_in(1_000 * MS) == growth.in_arenas_in(1_000 * MS) == 10 * MIB


def test_what_is_known_of_the_excess_is_told() -> None:
    assert excess(LIMIT, 601, 900) == (
        "it took 400 MiB more memory than the program had used before, and at most 63.7 MiB "
        "was planned"
    )
    late = excess(LIMIT, 2_100, 540)
    assert late == "it ran for 2.1 s and took 440 MiB of memory, which is more than planned"
    told = cut_reason(StepSource.OPTIMIZER, 1, late)
    assert told == f"the recording ended within a step: {late}"
    assert cut_reason(StepSource.OPTIMIZER, 0, late) == f"{told}; this is the step's beginning"


def test_a_part_of_a_step_is_recorded_for_the_time_that_its_events_take() -> None:
    window = replace(LIMIT, window_ns=50 * MS)
    assert not is_window_over(window, 49 * MS)
    assert is_window_over(window, 51 * MS)
    assert not is_window_over(LIMIT, 51 * MS)


def test_where_memory_is_hidden_time_alone_tells() -> None:
    hidden = UsedMemory(None)
    assert excess_over_limit(LIMIT, 1_700 * MS, BEFORE, hidden) is None
    told = "it ran for 2.1 s, and at most 1.8 s was planned"
    assert excess_over_limit(LIMIT, 2_100 * MS, BEFORE, hidden) == told


def test_large_blocks_are_the_programs_own_and_small_ones_may_be_events() -> None:
    before = MemoryBefore(UsedMemory(100 * MIB, 50 * MIB), peak=500 * MIB)
    large = UsedMemory(1_000 * MIB, 60 * MIB)
    assert excess_over_limit(LIMIT, 601 * MS, before, large) is None
    assert excess_over_limit(LIMIT, 2_100 * MS, before, large) is None
    small = UsedMemory(1_000 * MIB, 150 * MIB)
    told = excess_over_limit(LIMIT, 601 * MS, before, small)
    assert told is not None
    assert told.startswith("it took 100 MiB more memory than the program had used before")
    many = UsedMemory(500 * MIB, 300 * MIB)  # below the peak, for longer than expected
    assert excess_over_limit(LIMIT, 601 * MS, before, many) is None
    assert excess_over_limit(LIMIT, 2_100 * MS, before, many) is not None


@pytest.mark.parametrize("in_arenas", [None, 50 * MIB], ids=["resident", "small blocks"])
def test_a_program_that_grows_by_itself_may_go_on_as_before(in_arenas: int | None) -> None:
    growth = Growth(ns=300 * MS, resident=250 * MIB, in_arenas=250 * MIB)
    before = MemoryBefore(UsedMemory(500 * MIB, in_arenas), 500 * MIB, growth)

    def now(more: int) -> UsedMemory:
        return UsedMemory(more + 500 * MIB, None if in_arenas is None else more + in_arenas)

    assert excess_over_limit(LIMIT, 601 * MS, before, now(550 * MIB)) is None
    assert excess_over_limit(LIMIT, 601 * MS, before, now(600 * MIB)) is not None


def test_growth_is_measured_between_recordings() -> None:
    memory = ProgramMemory()
    memory.begin_growth()
    held = [bytes(100_000) for _ in range(500)]
    memory.end_growth()
    growth = memory.before_recording().growth
    del held
    memory.end_growth()  # without a begin

    assert memory.before_recording().growth == growth
    if used_memory().in_arenas is not None:
        assert growth.in_arenas > 45 * MIB
        assert growth.in_arenas_in(2 * growth.ns) == 2 * growth.in_arenas


@pytest.mark.timed  # a process that has run other tests may have moved the allocator's limits
@pytest.mark.skipif(bytes_in_arenas() is None, reason="the C library tells nothing")
def test_small_blocks_are_counted_and_large_ones_are_not() -> None:
    before = bytes_in_arenas()
    assert before is not None
    small = [bytes(100_000) for _ in range(500)]
    with_small = bytes_in_arenas()
    assert with_small is not None
    large = b"x" * (64 * MIB)  # no allocator has so much in an arena
    with_large = bytes_in_arenas()
    assert with_large is not None

    assert len(small) * 100_000 <= with_small - before < 70 * MIB
    assert with_large - with_small < MIB
    assert len(large) == 64 * MIB


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system hides it")
def test_the_main_thread_is_called_once_a_limit_is_reached() -> None:
    called = threading.Event()
    guard = RecordingGuard(called.set, lambda error: pytest.fail(str(error)))
    guard.prepare(EventLimit(1, 1))
    guard.begin()
    held = small_blocks(256 * MIB)  # no recording has so much memory with one event
    while not called.is_set():
        pass

    assert guard.is_reached
    guard.end()
    assert not guard.is_reached
    assert sum(map(len, held)) >= 256 * MIB


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system hides it")
def test_time_in_which_the_process_has_no_core_does_not_count() -> None:
    called = threading.Event()
    guard = RecordingGuard(called.set, lambda error: pytest.fail(str(error)))
    guard.prepare(EventLimit(100_000, 400_000))
    held = small_blocks(512 * MIB)  # more than so many events take
    guard.begin()
    threading.Event().wait(0.3)  # three times as long as so many events take

    assert not guard.is_reached
    while not called.is_set():
        pass
    assert "more" in guard.excess
    guard.end()
    assert sum(map(len, held)) >= 512 * MIB


def small_blocks(size: int) -> list[bytes]:
    return [b"x" * 10_000 for _ in range(size // 10_000 + 1)]


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


GROWING = """
    import time
    import torch

    net = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    large, kept = torch.ones(1 << 21), []
    for step in range(3):
        kept.append(torch.ones(32 << 20))
        began = time.process_time()
        while time.process_time() < began + 0.3:
            large.sin()
        net(torch.ones(8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    print(len(kept))
"""


@pytest.mark.skipif(bytes_in_arenas() is None, reason="the C library tells nothing")
def test_a_program_that_keeps_more_each_step_is_recorded_whole(record: "Runner") -> None:
    outcome = record(GROWING, warmup=10)

    assert (outcome.status, outcome.stdout) == (0, "3\n")
    assert outcome.result["steps_recorded"] == 1
    assert "within a step" not in outcome.facts["partial"]
