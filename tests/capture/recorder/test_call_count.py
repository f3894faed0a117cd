"""Calls are counted while a recording of Python frames runs, which then ends in time."""

import ctypes
import os
import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("torch")

from selftime.capture.facts.malloc import bytes_in_arenas
from selftime.capture.recorder.call_count import (
    BYTES_PER_FRAME,
    FRAME_BLOCK_BYTES,
    FRAMES_PER_CALL,
    CallCount,
    FrameBlocks,
    end_count_in_forked_child,
)
from selftime.capture.recorder.recording_guard import excess_of_frames
from selftime.capture.recorder.recording_plan import EventLimit, limit_of_unknown_step
from selftime.capture.recorder.run_options import RunOptions

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

pytestmark = pytest.mark.torch

IS_MONITORED = sys.version_info >= (3, 12)
needs_no_trace = pytest.mark.skipif(
    not IS_MONITORED and sys.gettrace() is not None, reason="a debugger or coverage traces"
)


def called(number: int) -> int:
    return number


@needs_no_trace
def test_calls_are_counted_from_begin_to_end() -> None:
    count = CallCount()
    assert count.frames == 0
    count.begin()
    for number in range(1_000):
        called(number)
    frames = count.frames
    count.end()

    assert 1_000 <= frames <= 1_010 * FRAMES_PER_CALL
    assert count.frames == 0
    assert sys.gettrace() is None


@pytest.mark.skipif(IS_MONITORED, reason="it uses no trace function")
def test_a_trace_function_of_the_program_stays() -> None:
    def trace(_frame: FrameType, _event: str, _argument: Any) -> None:
        return None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        count = CallCount()
        count.begin()
        frames, during = count.frames, sys.gettrace()
        count.end()
        after = sys.gettrace()
    finally:
        sys.settrace(before)
    assert (frames, during, after) == (0, trace, trace)


@needs_no_trace
def test_a_forked_child_counts_no_calls() -> None:
    count = CallCount()
    count.begin()
    child = os.fork()
    if not child:
        end_count_in_forked_child()
        is_off = sys.gettrace() is None
        if IS_MONITORED:
            monitoring: Any = sys.monitoring  # type: ignore[attr-defined]  # of Python 3.12
            is_off = is_off and monitoring.get_tool(3) is None
        os._exit(0 if is_off else 1)
    _, status = os.waitpid(child, 0)
    count.end()
    assert status == 0


def test_frames_are_limited_by_the_hold_and_the_memory() -> None:
    options = RunOptions(hold=0.7)
    limit = limit_of_unknown_step(options, free_bytes=None)
    assert limit.max_frames == 100_000  # of 7 us each
    limit = limit_of_unknown_step(options, free_bytes=1 << 20)
    assert limit.max_frames == 104  # a fourth of it, at 2,500 bytes each
    assert limit_of_unknown_step(RunOptions(with_stack=False), None).max_frames is None


def test_too_many_frames_are_told() -> None:
    limit = EventLimit(1_000, 1_000, max_frames=50_000)
    assert excess_of_frames(limit, 50_000) is None
    told = "the program made about 60,000 calls, whose frames hold it for 420 ms at the end"
    assert excess_of_frames(limit, 60_000) == told
    assert excess_of_frames(EventLimit(1_000, 1_000), 60_000) is None


@pytest.mark.skipif(bytes_in_arenas() is None, reason="the C library tells nothing")
def test_only_memory_that_has_grown_by_blocks_of_frames_is_counted() -> None:
    library = ctypes.CDLL(None)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
    library.free.argtypes = (ctypes.c_void_p,)
    blocks = FrameBlocks()
    before = blocks.count()
    held = [library.malloc(FRAME_BLOCK_BYTES - 16)]  # glibc adds 16 bytes to that
    with_block = blocks.count() - before
    held.extend(library.malloc(5_000) for _ in range(10))
    with_others = blocks.count() - before
    for block in held:
        library.free(block)

    assert with_block == with_others == FRAME_BLOCK_BYTES // BYTES_PER_FRAME


CALLS = """
    import torch

    def called(number):
        return number

    net = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range({steps}):
        for number in range({calls}):
            called(number)
        net(torch.ones(8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    print("done")
"""


@needs_no_trace
def test_a_step_of_many_calls_is_recorded_in_part_at_first(record: "Runner") -> None:
    outcome = record(CALLS.format(steps=2, calls=400_000), hold=0.1, warmup=None)

    assert (outcome.status, outcome.stdout) == (0, "done\n")
    assert outcome.result["steps_recorded"] == 0
    assert "calls, whose frames hold it for" in outcome.facts["partial"]
    assert 1_000 < len(outcome.rows("program.py(4): called")) < 200_000


@needs_no_trace
def test_whole_steps_of_many_calls_are_recorded_without_frames(record: "Runner") -> None:
    outcome = record(CALLS.format(steps=12, calls=400_000), hold=0.1, warmup=None)

    assert (outcome.status, outcome.stdout) == (0, "done\n")
    assert outcome.result["steps_recorded"] >= 1
    assert not outcome.facts["flags"]["with_stack"]
    assert outcome.facts["flags"]["record_shapes"]
    assert "stacks" in outcome.facts["steps"]["left_out"]
    assert outcome.rows("aten::linear")


@needs_no_trace
@pytest.mark.skipif(bytes_in_arenas() is None, reason="the C library tells nothing")
def test_calls_of_functions_in_c_are_frames_too(record: "Runner") -> None:
    program = CALLS.replace("            called", "            abs")
    program = program.format(steps=2, calls=1_000_000)
    outcome = record(program, hold=0.1, warmup=None)

    assert (outcome.status, outcome.stdout) == (0, "done\n")
    assert "calls, whose frames hold it for" in outcome.facts["partial"]
    assert 1_000 < len(outcome.rows("<built-in function abs>")) < 500_000


@needs_no_trace
def test_a_recording_with_frames_ends_where_a_later_step_makes_many_calls(
    record: "Runner",
) -> None:
    program = CALLS.format(steps=12, calls="400_000 if step >= 4 else 10")
    outcome = record(program, hold=0.1)

    assert (outcome.status, outcome.stdout) == (0, "done\n")
    assert outcome.facts["flags"]["with_stack"]
    assert "calls, whose frames hold it for" in outcome.facts["partial"]
    assert len(outcome.rows("program.py(4): called")) < 200_000
