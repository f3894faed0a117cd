import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from selftime import load, schema
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.health import health

if TYPE_CHECKING:
    from tests.views.conftest import ReadReal

Lose = Callable[[int], Trace]

WHOLE = """
    a = ProfilerStep#1
    b = ProfilerStep#2
    c = ProfilerStep#3
    d = ProfilerStep#4
    o = aten::mm
    k = cudaLaunchKernel
    mark 1 | aaaabbbbccccdddd
    cpu 1  | ooo ooo ooo ooo
    call 1 | k   k   k   k
    gpu 7  |  k   k   k   k
"""


def verdicts(trace: Trace) -> dict[str, str]:
    return dict(health(trace).select("check", "verdict").rows())


def text(trace: Trace, check: str) -> str:
    found: str = health(trace).filter(pl.col("check") == check)["text"].item()
    return found


def test_nothing_recorded_is_no_trace() -> None:
    assert verdicts(Trace())["content"] == "unusable"
    assert "not a trace of PyTorch's profiler" in text(Trace(), "content")


def test_a_whole_trace_is_good() -> None:
    assert verdicts(sketch(WHOLE)) == {
        "content": "good",
        "file": "good",
        "launches": "good",
        "links": "good",
        "steps": "good",
    }


def test_a_recording_without_steps_is_one_step_without_a_spread() -> None:
    assert verdicts(sketch("cpu 1 | aa"))["steps"] == "degraded"
    assert "call `prof.step()`" in text(sketch("cpu 1 | aa"), "steps")


def test_launches_whose_work_was_not_recorded_are_missed() -> None:
    lost = sketch(WHOLE.replace("gpu 7  |  k   k   k   k", "gpu 7  |  k   k   k"))

    assert verdicts(lost)["launches"] == "unusable"
    assert text(lost, "launches").startswith("1 of 4 launches have no device work")


def test_launches_without_any_device_work_tell_nothing_of_the_device() -> None:
    lost = sketch(WHOLE.replace("gpu 7  |  k   k   k   k", ""))

    assert verdicts(lost)["launches"] == "unusable"
    assert "nothing is known of the device" in text(lost, "launches")


def test_what_is_captured_into_a_graph_puts_no_work_on_the_device() -> None:
    captured = sketch("""
        k = cudaLaunchKernel
        b = cudaStreamBeginCapture
        e = cudaStreamEndCapture
        g = cudaGraphLaunch
        c = cudaLaunchKernel
        call 1 | b c c c e g k
        gpu 7  |            g  k
    """)

    assert text(captured, "launches") == "0 of 2 launches have no device work"


def test_device_work_from_before_the_recording_explains_little() -> None:
    early = sketch("call 1 | k\ngpu 7 | mm mmk")

    assert verdicts(early)["links"] == "degraded"
    assert text(early, "links").startswith("66.7 % of device slices were launched before")


def test_a_damaged_file_is_told() -> None:
    repair = {"fault": ["the file ends early"], "count": [1], "events_lost": [7]}
    repairs = pl.concat([schema.REPAIRS.empty(), pl.DataFrame(repair)], how="diagonal_relaxed")
    damaged = replace(sketch(WHOLE), repairs=repairs.cast(schema.REPAIRS.empty().schema))

    assert verdicts(damaged)["file"] == "degraded"
    assert text(damaged, "file") == "the file ends early (1); 7 events lost"


def test_device_work_before_its_launch_shows_that_clocks_disagree() -> None:
    whole = sketch(WHOLE)
    linked = pl.col("launch").is_not_null()
    count = whole.slices.filter(linked).height
    early = whole.slices.with_columns(start=pl.when(linked).then(-1).otherwise("start"))
    found = text(replace(whole, slices=early), "clocks")

    assert found.startswith(f"{count} device slices start before their launch: the clocks disagree")


@pytest.mark.parametrize(
    ("facts", "check", "verdict"),
    [
        ({"partial": "ended by KeyboardInterrupt"}, "recording", "degraded"),
        ({"overhead": {"ratio": 1.2}}, "overhead", "good"),
        ({"overhead": {"ratio": 1.6}}, "overhead", "degraded"),
    ],
)
def test_the_recorders_own_facts_are_judged(
    facts: dict[str, Any], check: str, verdict: str
) -> None:
    assert verdicts(sketch(WHOLE, metadata={"selftime": facts}))[check] == verdict


@pytest.fixture
def lose(tmp_path: Path, real_files: Callable[[str], Path]) -> Lose:
    """A real trace without every so many percent of its device work, deleted from the file."""
    events = json.loads(gzip.decompress(real_files("h100-2025-vit").read_bytes()))

    def without(percent: int) -> Trace:
        kept, seen = [], 0
        for event in events["traceEvents"]:
            is_work = event.get("cat") in {"kernel", "gpu_memcpy", "gpu_memset"}
            seen += is_work
            if not (is_work and (seen * percent) // 100 > ((seen - 1) * percent) // 100):
                kept.append(event)
        path = tmp_path / f"{percent}.json"
        path.write_text(json.dumps({**events, "traceEvents": kept}))
        trace = load(path, cache=False)
        assert isinstance(trace, Trace)
        return trace

    return without


@pytest.mark.traces
@pytest.mark.parametrize(
    ("percent", "verdict"),
    [
        (0, "good"),
        (1, "good"),
        (2, "degraded"),
        (10, "degraded"),
        (50, "unusable"),
        (100, "unusable"),
    ],
)
def test_lost_device_work_is_worse_the_more_is_lost(lose: Lose, percent: int, verdict: str) -> None:
    found = health(lose(percent)).filter(pl.col("check") == "launches")

    assert found["verdict"].item() == verdict
    assert found["value"].item() == pytest.approx(percent / 100, abs=0.01)
