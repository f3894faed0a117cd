"""What a trace holds, which the page is told before any panel asks."""

from typing import Any

import pytest

from selftime.ingest.trace_listing import ListedTrace
from selftime.reports.page_data.trace_contents import contents_data, contents_of_trace
from selftime.testing import sketch
from selftime.views import VIEWS

LISTED = ListedTrace("id", "trace.json")


def told(drawing: str, listed: ListedTrace = LISTED, *, ranks: bool = False) -> dict[str, Any]:
    return contents_data(contents_of_trace(sketch(drawing), listed), has_other_ranks=ranks)


@pytest.mark.parametrize(
    ("drawing", "panel"),
    [
        ("cpu 1 | aa b", "answer"),
        ("memory 1 | A a", "memory"),
        ("memory 1 | A a\ncpu 1 | aa", "answer"),
    ],
)
def test_what_a_trace_holds_says_what_opens_first(drawing: str, panel: str) -> None:
    assert told(drawing)["landing"] == panel


def test_a_ledger_alone_opens_the_run() -> None:
    ledger = ListedTrace("id", "host_1.run.jsonl", is_ledger=True)
    assert told("run | 20 training 100 ms", ledger)["landing"] == "run"


def test_a_rank_opens_the_job_if_others_are_there() -> None:
    rank = ListedTrace("id", "rank0.json")
    assert told("cpu 1 | aa", rank, ranks=True)["landing"] == "distributed"
    assert told("cpu 1 | aa", rank)["landing"] == "answer"
    assert told("cpu 1 | aa", ranks=True)["landing"] == "answer"


def test_a_view_lacks_what_it_says_itself() -> None:
    trace = sketch("cpu 1 | aa b")
    lacks = told("cpu 1 | aa b")["lacks"]
    assert {"kernels", "memory_curve", "run", "ranks"} <= lacks.keys()
    for name in lacks.keys() - {name for name, view in VIEWS.items() if view.compares_ranks}:
        assert lacks[name] == VIEWS[name].missing_data(trace)
    assert "operators" not in lacks
    [sentence] = lacks["ranks"]
    assert sentence.startswith("other ranks: ")


def test_the_list_of_traces_has_steps_and_device() -> None:
    drawing = 'mark 1 | s\ngpu 7 | k\ns = ProfilerStep#1\ndevice = {"name": "NVIDIA A100"}'
    found = contents_of_trace(sketch(drawing), LISTED)
    assert (found.device, found.step_count) == ("NVIDIA A100", 1)
    bare = contents_of_trace(sketch("cpu 1 | aa b"), LISTED)
    assert (bare.device, bare.step_count) == (None, None)
