"""Tests the rule `small_batch` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Finding
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


def drawing(blocks_per_sm: float, *, used_bytes: int | None = None) -> str:
    known = used_bytes is not None
    return DRAWING.format(
        device='device = {"name": "A device", "memory": 1000}' if known else "",
        s="s" * 132,
        ops="aabb" * 32 + "eeee",
        calls="a b " * 32,
        work=" a b" * 32,
        memory=MEMORY.format(used=used_bytes) if known else "",
        blocks=blocks_per_sm,
    )


def test_more_than_half_of_the_kernel_time_must_be_in_small_kernels(judge: Judge[Finding]) -> None:
    assert not judge(drawing(0.5))  # half of them, and half of the time
    assert judge(drawing(0.5).replace("blocks_per_sm = 4", "blocks_per_sm = 0.9"))


def test_confidence_depends_on_known_memory_use(judge: Judge[Finding]) -> None:
    small = "blocks_per_sm = 0.9"
    [unknown] = judge(drawing(0.5).replace("blocks_per_sm = 4", small))
    [room] = judge(drawing(0.5, used_bytes=400).replace("blocks_per_sm = 4", small))
    assert (unknown.confidence, room.confidence) == ("low", "medium")
    assert not judge(drawing(0.5, used_bytes=600).replace("blocks_per_sm = 4", small))


def test_a_larger_batch_is_marked_as_changing_training(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing(0.5).replace("blocks_per_sm = 4", "blocks_per_sm = 0.9"))
    assert finding.semantics == "training"
    assert finding.saving.upper_ms is not None
    assert finding.saving.estimate_ms == pytest.approx(0.64, rel=0.2)  # the device is half busy
