"""What bounds a step, and the two numbers that tell it."""

from typing import TYPE_CHECKING

import pytest

from selftime.analysis.steps.bound_by import StepBounds, step_bound_by, step_bounds
from selftime.testing import sketch
from selftime.trace import Trace

if TYPE_CHECKING:
    from tests.conftest import ReadReal


@pytest.mark.parametrize(
    ("drawing", "told"),
    [
        ("cpu 1 | aa bb", "host-only"),
        ("call 1 | km\ngpu 7 | kkkkkkkkkkkkkkkkkkkkkkkkmmmmmmmmmmmmmmmmmmmmmmmm", "device-bound"),
        ("call 1 | k   m   n   o\ngpu 7 |  k   m   n   o", "launch-bound"),
        ("call 1 | klmno         p\ngpu 7 |  kkllmmnnoo     pp", "gap-bound"),
        ("gpu 7 | k  m  n", None),
    ],
)
def test_what_bounds_a_step(drawing: str, told: str | None) -> None:
    assert step_bound_by(sketch(drawing)) == told


def test_nothing_recorded_bounds_nothing() -> None:
    assert step_bounds(Trace()) == StepBounds(None, None, None)


def test_a_stream_that_was_launched_onto_once_tells_nothing() -> None:
    assert step_bound_by(sketch("call 1 | k      m\ngpu 7 |  k\ngpu 8 |         m")) is None


def test_the_numbers_are_shares_of_time_and_of_launches() -> None:
    found = step_bounds(sketch("call 1 | k m  n\ngpu 7 |  k m nn"))

    # `m` was launched onto an idle stream, `n` as well; of `k` nobody knows.
    assert found == StepBounds("launch-bound", busy_share=4 / 7, idle_launch_share=1.0)


def test_a_device_that_is_busy_but_in_half_of_the_step_only_is_no_limit() -> None:
    trace = sketch("""
        s = ProfilerStep#1
        mark 1 | ssssssssssssssssssss
        call 1 |         klmno
        gpu 7  |          kkkllmmmnnoo
    """)

    found = step_bounds(trace)
    assert (found.bound_by, found.idle_launch_share) == ("gap-bound", 0.0)
    assert found.busy_share == 12 / 21, "its work lasts beyond its end on the host"


@pytest.mark.traces
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("h100-2025-bert-small", "launch-bound"),
        ("h100-2025-vit", "launch-bound"),
        ("b200-2025-vllm-eager", "launch-bound"),
        ("a100-2024-nccl-2ranks", "launch-bound"),
        ("v100-2021-resnet50-workers0.pt.trace", "gap-bound"),
        ("v100-2024-resnet-nanoseconds", "device-bound"),
        ("gpu-2022-no-rank", None),  # NCCL's collectives were issued, but no device was recorded
    ],
)
def test_what_bounds_steps_of_real_traces(real: "ReadReal", name: str, told: str | None) -> None:
    assert step_bound_by(real(name)) == told


@pytest.mark.traces
def test_the_numbers_are_shares_in_every_trace(real: "ReadReal", real_names: list[str]) -> None:
    for name in real_names:
        found = step_bounds(real(name))
        for share in (found.busy_share, found.idle_launch_share):
            assert share is None or 0 <= share <= 1, name
