"""How many steps are left out at the beginning, and what the others take."""

from array import array
from pathlib import Path

import numpy as np
import pytest

from selftime.bench.steady_step_time import count_warm_up_steps, steady_steps
from selftime.capture.timing.step_times import (
    StepTimes,
    read_step_times,
    requested_step_times_folder,
    timing_environment,
)


def times(milliseconds: list[float], unlike: set[int] = frozenset(), **facts: object) -> StepTimes:  # type: ignore[assignment]  # read only
    given: dict[str, object] = {
        "process": 1,
        "rank": None,
        "source": "optimizer steps",
        "is_device_clock": False,
        "profiler": None,
        "is_truncated": False,
    }
    return StepTimes(
        **{**given, **facts},  # type: ignore[arg-type]  # as the class declares them
        durations=array("q", [round(t * 1e6) for t in milliseconds]),
        unusual=bytes(i in unlike for i in range(len(milliseconds))),
    )


def test_without_steps_there_is_no_pace() -> None:
    assert steady_steps(times([])) is None
    assert steady_steps(times([5, 5, 5])) is None


def test_slow_first_steps_are_left_out() -> None:
    found = steady_steps(times([900, 400, 30, *[10, 11, 9, 10] * 10]))
    assert found is not None
    assert found.warm_up == 3
    assert found.step_ms == pytest.approx(10)
    assert found.is_steady_by_half


def test_steady_steps_are_all_counted_nearly() -> None:
    rng = np.random.default_rng(4)
    cuts = [count_warm_up_steps(rng.normal(10, 1, 60)) for _ in range(200)]
    assert np.median(cuts) <= 6
    assert max(cuts) <= 30


def test_a_warm_up_that_decays_is_cut_where_it_no_longer_biases() -> None:
    rng = np.random.default_rng(5)
    steps = 10 * (1 + 3 * np.exp(-np.arange(200) / 10)) + rng.normal(0, 0.2, 200)
    assert 20 <= count_warm_up_steps(steps) <= 60


def test_at_most_half_is_left_out_and_that_is_told() -> None:
    found = steady_steps(times([float(t) for t in range(100, 60, -1)]))
    assert found is not None
    assert found.warm_up == 20
    assert not found.is_steady_by_half


def test_bursts_count_as_they_come() -> None:
    """Four workers hand over four batches at once: the median is that of one that waits."""
    found = steady_steps(times([1, 1, 1, 37] * 20))
    assert found is not None
    assert found.step_ms == pytest.approx(10, rel=0.1)


def test_unlike_steps_are_left_out_and_told_beside() -> None:
    steps = [10.0] * 40
    steps[20] = steps[30] = 500
    found = steady_steps(times(steps, unlike={20, 30}))
    assert found is not None
    assert found.step_ms == pytest.approx(10)
    assert (found.unusual_steps, found.steps) == (2, 38)
    assert found.all_ms == pytest.approx((38 * 10 + 1000) / 40)


def test_large_times_lose_nothing() -> None:
    """Steps that differ by microseconds, each an hour long."""
    found = steady_steps(times([3.6e6, *[3.6e6 + i % 2 * 1e-3 for i in range(39)]]))
    assert found is not None
    assert found.is_steady_by_half


def test_times_come_back_as_they_were_written(tmp_path: Path) -> None:
    one = times([1, 2, 3], unlike={1}, process=7)
    ranked = times(
        [1], process=9, rank=0, is_device_clock=True, profiler="the program's own profiler"
    )
    for written in (one, ranked):
        written.write_file(tmp_path)
    assert read_step_times(tmp_path) == (ranked, one)


def test_only_an_order_of_this_version_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in timing_environment({"PYTHONPATH": "mine"}, tmp_path).items():
        monkeypatch.setenv(name, value)
    assert requested_step_times_folder() == tmp_path
    for other in ("", "[]", "{}", '{"version": "0", "only": "times", "folder": "x"}'):
        monkeypatch.setenv("SELFTIME_RUN", other)
        assert requested_step_times_folder() is None
