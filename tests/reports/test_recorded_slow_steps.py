"""What the answer says of slow steps that were recorded."""

from dataclasses import replace
from types import MappingProxyType

import polars as pl
import pytest
from tests.ledgers import Step, run_of

from selftime.advice import advise
from selftime.analysis.run.slow_step_difference import slow_step_difference
from selftime.reports.advice.text import as_text
from selftime.reports.ledger import as_json
from selftime.reports.recorded_slow_steps import recorded_slow_step_sentences
from selftime.run import Run
from selftime.testing import sketch
from selftime.trace import Trace

USUAL = """
    column = 1 ms
    mark 1 | aaaaaaaa bbbbbbbb cccccccc dddddddd
    cpu 1  | mmmmrr   mmmmrr   mmmmrr   mmmmrr
    a = ProfilerStep#1
    b = ProfilerStep#2
    c = ProfilerStep#3
    d = ProfilerStep#4
    m = aten::mm; line = /job/train.py:12 step
    r = aten::relu; line = /job/train.py:13 step
"""
SLOW = """
    column = 1 ms
    mark 1 | sssssssssssssssssssss
    cpu 1  | mmmmrrwwwwwwwwwwrrrrr
    s = ProfilerStep#1
    m = aten::mm; line = /job/train.py:12 step
    r = aten::relu; line = /job/train.py:13 step
    w = aten::copy_; line = /job/train.py:40 save
"""


def run_with_recording() -> Run:
    steps = [Step(8), Step(8), Step(121, recorded=True), Step(8)]
    run = run_of(steps * 4)
    slow = run.segments.filter("recorded")["id"][1]
    return replace(
        run,
        recorded_slow_steps=MappingProxyType({slow: "a.slow-step.pt.trace.json.gz"}),
        source="/job/runs/a.run.jsonl",
    )


def beyond_by_line(slow: str) -> dict[int | None, int]:
    """Host time in ms beyond the usual steps, by line; that of no line is of the step's mark."""
    rows = difference_of(slow).select("line", pl.col("self_cpu_time") // 1_000_000)
    return dict(rows.rows())


def difference_of(slow: str) -> pl.DataFrame:
    found = slow_step_difference(sketch(slow), sketch(USUAL))
    assert found is not None
    return found


def test_what_a_slow_step_has_beyond_usual_ones_by_line() -> None:
    rows = difference_of(SLOW).select("file", "line", "function", "self_cpu_time", "device_time")
    assert rows.head(2).rows() == [
        ("/job/train.py", 40, "save", 10_000_000, 0),
        ("/job/train.py", 13, "step", 5_000_000, 0),
    ]
    assert beyond_by_line(SLOW) == {40: 10, 13: 5, 12: 0, None: -2}
    assert beyond_by_line(USUAL) == {12: 0, 13: 0, None: 0}


def test_of_several_recorded_steps_the_last_is_the_slow_one() -> None:
    both = """
        column = 1 ms
        mark 1 | aaaaaaaa sssssssssssssssssssss
        cpu 1  | mmmmrr   mmmmrrwwwwwwwwwwrrrrr
        a = ProfilerStep#1
        s = ProfilerStep#2
        m = aten::mm; line = /job/train.py:12 step
        r = aten::relu; line = /job/train.py:13 step
        w = aten::copy_; line = /job/train.py:40 save
    """
    assert beyond_by_line(both) == {40: 10, 13: 5, 12: 0, None: -2}


@pytest.mark.parametrize(
    ("slow", "usual"), [(Trace(), sketch(USUAL)), (sketch(SLOW), Trace())], ids=["slow", "usual"]
)
def test_without_steps_nothing_is_compared(slow: Trace, usual: Trace) -> None:
    assert slow_step_difference(slow, usual) is None


def test_a_part_of_a_slow_step_is_not_compared() -> None:
    cut = sketch(SLOW + '    facts = {"partial": "the recording ended within a step"}\n')
    assert slow_step_difference(cut, sketch(USUAL)) is None


def test_a_sentence_names_the_file_and_the_lines() -> None:
    run = run_with_recording()
    [segment] = run.recorded_slow_steps
    assert recorded_slow_step_sentences(run, "/job") == [
        "Slow step 6 (121 ms) was recorded: `selftime advise runs/a.slow-step.pt.trace.json.gz`."
    ]
    [sentence] = recorded_slow_step_sentences(run, "/job", {segment: difference_of(SLOW)})
    assert sentence.endswith(
        " Beyond a usual recorded step it took 10 ms at `train.py:40` in save."
    )
    assert recorded_slow_step_sentences(run_of([Step(8)] * 4)) == []


def test_a_line_that_is_only_known_by_its_definition_is_told_as_such() -> None:
    run = run_with_recording()
    [segment] = run.recorded_slow_steps
    place = {"file": ["/job/train.py"], "line": [40], "function": ["save"], "how": ["definition"]}
    times = {"self_cpu_time": [1_000_000], "device_time": [9_000_000]}
    [sentence] = recorded_slow_step_sentences(
        run, "/job", {segment: pl.DataFrame({**place, **times})}
    )
    assert "9.00 ms of device work in save (`train.py:40`)" in sentence


def test_the_answer_tells_of_them() -> None:
    run = run_with_recording()
    text = as_text(advise(replace(sketch(USUAL), run=run)), root="/job", width=200)
    assert "Slow step 6 (121 ms) was recorded" in text
    names = [row["recording"] for row in as_json(run)["steps"]["slow"]]
    assert sorted(names, key=str) == [None, None, None, "a.slow-step.pt.trace.json.gz"]
