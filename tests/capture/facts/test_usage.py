"""What a recording used of the machine's cores."""

import multiprocessing
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from selftime.capture.facts.cpu_usage import (
    CpuCounters,
    CpuUsage,
    cpu_usage_between,
    read_cpu_counters,
)

START = CpuCounters(
    10.0, 2.0, {7: 1.0, 8: 1.0}, {7: 0.5, 8: None}, {0: (10, 0, 5, 100, 0, 0, 0, 0)}
)


def test_shares_are_of_the_time_between() -> None:
    after = CpuCounters(
        11.0, 2.5, {7: 1.25, 8: 1.5}, {7: 0.75, 8: 0.5}, {0: (70, 0, 15, 120, 0, 0, 0, 10)}
    )
    found = cpu_usage_between(START, after)
    assert found["wall_s"] == pytest.approx(1.0)
    assert found["process_s"] == pytest.approx(0.5)
    assert found["workers"] == {"count": 2, "cpu_s": pytest.approx(0.75), "queued_s": None}
    assert found["busy"] == pytest.approx(0.8)
    assert found["steal"] == pytest.approx(0.1)


def test_what_the_main_thread_waited_for_a_core_is_told() -> None:
    before, after = replace(START, queued=1.5), replace(START, wall=12.0, queued=2.25)
    assert cpu_usage_between(before, after)["queued_s"] == pytest.approx(0.75)
    assert cpu_usage_between(START, after)["queued_s"] is None


def test_workers_that_came_or_went_are_not_counted() -> None:
    after = replace(START, workers={7: 1.5, 9: 0.5}, seconds_waiting_for_core={7: 0.75, 9: 0.5})
    told = {"count": 1, "cpu_s": pytest.approx(0.5), "queued_s": pytest.approx(0.25)}
    assert cpu_usage_between(START, after)["workers"] == told


def test_what_the_system_does_not_tell_is_null() -> None:
    silent = CpuCounters(11.0, 2.5, {7: None}, {7: None}, {})
    found = cpu_usage_between(silent, silent)
    assert found["workers"] == {"count": 1, "cpu_s": None, "queued_s": None}
    assert found["busy"] is None
    assert found["steal"] is None


def test_a_few_ticks_tell_no_share() -> None:
    after = replace(START, cores={0: (15, 0, 5, 105, 0, 0, 0, 0)})
    assert cpu_usage_between(START, after)["busy"] is None


def test_a_system_without_counters_is_read_as_such(tmp_path: Path) -> None:
    assert read_cpu_counters(tmp_path).cores == {}
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/stat").write_text("cpu  1 2 3\ncpu0 1 2\nintr 5\n")
    assert read_cpu_counters(tmp_path).cores == {}


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system tells no cores")
def test_only_cores_that_the_process_may_use_count(tmp_path: Path) -> None:
    own = min(os.sched_getaffinity(0))
    other = max(os.sched_getaffinity(0)) + 1
    (tmp_path / "proc").mkdir()
    lines = [f"cpu{core} 1 2 3 4 5 6 7 8 9 10" for core in (own, other)]
    (tmp_path / "proc/stat").write_text("\n".join(["cpu  1 2 3 4 5 6 7 8 9 10", *lines]))
    assert read_cpu_counters(tmp_path).cores == {own: (1, 2, 3, 4, 5, 6, 7, 8)}


@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="the system tells no processes")
def test_a_worker_that_computes_is_seen() -> None:
    worker = multiprocessing.get_context("fork").Process(target=_compute)
    worker.start()
    usage = CpuUsage()
    assert usage.usage_facts() is None
    usage.read_at_start()
    time.sleep(0.3)
    usage.read_at_end()
    worker.kill()
    worker.join()
    found = usage.usage_facts()
    assert found is not None
    assert found["workers"]["count"] >= 1
    assert 0 < found["workers"]["cpu_s"] <= found["wall_s"] * found["workers"]["count"] + 0.02
    assert found["process_s"] < found["wall_s"]


def _compute() -> None:
    while True:
        pass
