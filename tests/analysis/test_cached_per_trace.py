"""What is derived from a trace is let go with it."""

import gc
from pathlib import Path
from weakref import ref

import pytest

from selftime.advice import advise
from selftime.analysis.per_trace_cache import cached_per_trace_and_options
from selftime.analysis.ranks.rank_summary import rank_summary
from selftime.ingest.load import load
from selftime.testing.simulated_jobs import simulate_job
from selftime.trace import Trace
from selftime.views import VIEWS


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_bytes(simulate_job(ranks=2, steps=4).traces[0])
    return path


def read(file: Path) -> Trace:
    trace = load(file, cache=False)
    assert isinstance(trace, Trace)
    return trace


def test_results_are_kept_for_the_latest_options_of_each_trace() -> None:
    asked: list[tuple[int, str]] = []

    @cached_per_trace_and_options
    def told(trace: Trace, number: int, text: str) -> str:
        asked.append((number, text))
        return f"{text}{number}{trace.slices.height}"

    first, second = Trace(), Trace()
    for trace in (first, first, second):
        assert told(trace, 1, "a") == "a10"
    assert asked == [(1, "a")] * 2
    for number in range(9):
        told(first, number, "b")
    assert told(first, 8, "b") == "b80"
    assert len(asked) == 11
    told(first, 1, "a")
    assert len(asked) == 12


def test_a_part_keeps_no_trace(file: Path) -> None:
    trace = read(file)
    alive = ref(trace)
    part = rank_summary(trace)
    del trace
    gc.collect()
    assert alive() is None
    assert part.collectives.height


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.sweep(3)
def test_a_view_keeps_no_trace(name: str, file: Path) -> None:
    trace = read(file)
    alive = ref(trace)
    asked = {"at": 0} if "at" in VIEWS[name].options else {}
    table = VIEWS[name](trace, **asked)
    del trace
    gc.collect()
    assert alive() is None
    assert table.width


def test_advice_that_is_let_go_keeps_no_trace(file: Path) -> None:
    trace = read(file)
    alive = ref(trace)
    said = advise(trace)
    assert said.checked
    del trace, said
    gc.collect()
    assert alive() is None
