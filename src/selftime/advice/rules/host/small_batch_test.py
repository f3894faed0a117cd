"""Edges of `small_batch` that its page does not draw."""

import pytest

from selftime.advice.base import Finding
from selftime.testing import Judge

DRAWING = """
    column = 10 us
    {device}
    mark 1 | {s}
    cpu 1  | {ops}
    call 1 | {calls}
    gpu 7  | {work}
    {memory}
    s = ProfilerStep#1
    a = aten::mm; blocks_per_sm = {blocks}
    b = aten::add; blocks_per_sm = 4
    e = autograd::engine::evaluate_function: MmBackward0
"""
MEMORY = """memory 1 | A
    A = block; bytes = {used}; device_type = 1; device = 0; allocated = {used}"""


def drawing(blocks: float, *, used: int | None = None) -> str:
    known = used is not None
    return DRAWING.format(
        device='device = {"name": "A device", "memory": 1000}' if known else "",
        s="s" * 132,
        ops="aabb" * 32 + "eeee",
        calls="a b " * 32,
        work=" a b" * 32,
        memory=MEMORY.format(used=used) if known else "",
        blocks=blocks,
    )


def test_half_of_the_time_must_be_in_small_kernels(judge: Judge[Finding]) -> None:
    assert not judge(drawing(0.5))  # half of them, and half of the time
    assert judge(drawing(0.5).replace("blocks_per_sm = 4", "blocks_per_sm = 0.9"))


def test_memory_tells_how_sure_it_is(judge: Judge[Finding]) -> None:
    small = "blocks_per_sm = 0.9"
    [unknown] = judge(drawing(0.5).replace("blocks_per_sm = 4", small))
    [room] = judge(drawing(0.5, used=400).replace("blocks_per_sm = 4", small))
    assert (unknown.confidence, room.confidence) == ("low", "medium")
    assert not judge(drawing(0.5, used=600).replace("blocks_per_sm = 4", small))


def test_it_changes_how_the_network_learns(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing(0.5).replace("blocks_per_sm = 4", "blocks_per_sm = 0.9"))
    assert finding.semantics == "training"
    assert finding.saving.upper_ms is not None
    assert finding.saving.estimate_ms == pytest.approx(0.64, rel=0.2)  # the device is half busy
