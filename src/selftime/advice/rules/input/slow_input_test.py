"""Edges of `slow_input` that its page does not draw."""

import json
from importlib import import_module

import pytest

from selftime.advice.base import Checked, Finding, Rule
from selftime.advice.detectors.loader_workers import without_waiting
from selftime.advice.detectors.loading import Loading
from selftime.testing import Judge, sketch

STEPS = """
    column = 1 ms
    mark 1 | ssssssssssssssssssssssssssssssssssssssss{t}
    mark 1 | {d}
    cpu 1  | {a}
    s = ProfilerStep#1
    t = ProfilerStep#2
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:9 main
"""


def steps(loading_ms: int) -> str:
    """Two steps of 40 ms that begin with loading."""
    one = "d" * loading_ms + " " * (40 - loading_ms)
    work = " " * loading_ms + "a" * (40 - loading_ms)
    return STEPS.format(t="t" * 40, d=one * 2, a=work * 2)


def test_one_millisecond_of_forty_is_not_worth_workers(judge: Judge[Finding]) -> None:
    assert not judge(steps(1))
    [finding] = judge(steps(8))
    assert finding.where.file == "train.py"
    assert finding.where.line == 9


def test_the_saving_is_never_more_than_what_is_exposed(judge: Judge[Finding]) -> None:
    [finding] = judge(steps(30))
    assert finding.saving.upper_ms == pytest.approx(30)
    assert finding.saving.estimate_ms is not None
    assert finding.saving.estimate_ms <= 30


def test_hidden_loading_is_said_to_be_hidden(rule: Rule) -> None:
    drawing = rule.drawings("Silent on")[1]
    [outcome] = rule(sketch(drawing))
    assert isinstance(outcome, Checked)
    assert "no need to optimise" in outcome.reason


def loading(*, exposed: float, total: float, has_device: bool, waiting: float = 0.0) -> Loading:
    return Loading(
        step=100.0,
        exposed=exposed,
        average=exposed,
        around=0.0,
        total=total,
        waiting=waiting,
        noise=0.0,
        shares=(exposed / 100.0,),
        rest=100.0 - exposed,
        lag=0.0,
        has_workers=False,
        has_device=has_device,
    )


@pytest.mark.parametrize(("cores", "likely"), [(1, 101.0), (2, 81.0), (4, 71.0), (16, 63.5)])
def test_on_a_cpu_workers_share_the_cores_with_the_step(cores: int, likely: float) -> None:
    """60 ms of work on all cores and 40 of loading on one, and 1 ms to hand over."""
    facts = {"cores": {"effective": cores}, "threads": cores}
    found = without_waiting(loading(exposed=40, total=40, has_device=False), facts)
    assert found.likely == pytest.approx(likely)
    assert found.best <= found.likely


def test_beside_a_device_the_host_needs_one_core_for_the_step() -> None:
    facts = {"cores": {"effective": 8}, "threads": 8}
    found = without_waiting(loading(exposed=40, total=40, has_device=True), facts)
    assert found.likely == pytest.approx(61.0)


def test_cores_that_are_not_known_lower_the_confidence() -> None:
    found = without_waiting(loading(exposed=40, total=40, has_device=True), {})
    assert not found.cores_known
    assert found.likely == pytest.approx(61)


def test_loading_that_waits_needs_no_core() -> None:
    facts = {"cores": {"effective": 1}, "threads": 1}
    waits = loading(exposed=40, total=40, waiting=40, has_device=False)
    assert without_waiting(waits, facts).likely == pytest.approx(61)
    assert without_waiting(waits, facts).workers == 4
    computes = loading(exposed=40, total=40, waiting=0, has_device=False)
    assert without_waiting(computes, facts).likely == pytest.approx(101)


def test_a_loader_that_sleeps_is_worth_workers_on_any_machine() -> None:
    drawing = """
        column = 1 ms
        s = ProfilerStep#1
        t = ProfilerStep#2
        d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:9 main
        w = <built-in function sleep>
        mark 1   | sssssssssssssssssssstttttttttttttttttttt
        mark 1   | dddddddddd          dddddddddd
        python 1 |  wwwwwwwww           wwwwwwwww
        cpu 1    |           aaaaaaaaaa          aaaaaaaaaa
    """
    rule = import_module("selftime.advice.rules").RULES["slow_input"]
    facts = {"selftime": {"cores": {"effective": 1}, "threads": 1}}
    [finding] = rule(sketch(drawing, metadata=facts))
    assert isinstance(finding, Finding)
    assert finding.saving.estimate_ms is not None
    assert finding.saving.estimate_ms > 5


SECONDS_2_AND_3 = """
    column = 125 us
    facts = {"usage": {"wall_s": 1, "workers": {"count": 2, "cpu_s": 1.0}}}
    mark 1 | ssssssssssssssssssssssssttttttttttttttttttttttttuuuuuuuuuuuuuuuuuuuuuuuu
    mark 1 | d                       d                       d
    cpu 1  |  aaaaaaaaaaaaaaaaaaaaaaa aaaaaaaaaaaaaaaaaaaaaaa aaaaaaaaaaaaaaaaaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
"""
"""Loading takes 2 ms and a step 3, in the place of seconds: workers load beside the step."""

IN_TURN = """
    column = 1 ms
    facts = {"cores": {"effective": 8}, "threads": 8}
    mark 1 | ssssstttttuuuuuvvvvv
    mark 1 | dd   dd   dd   dd
    call 1 |   kw   kw   kw   kw
    call 1 |    ww   ww   ww   ww
    gpu 7  |   kkk  kkk  kkk  kkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:9 main
    w = cudaStreamSynchronize
"""
"""The same without workers, and a synchronisation in each step: 2 + 3 are 5 and not 3."""


def test_loading_beside_the_step_is_hidden_with_a_margin(rule: Rule) -> None:
    [outcome] = rule(sketch(SECONDS_2_AND_3))
    assert isinstance(outcome, Checked)
    assert "no need to optimise" in outcome.reason
    assert "50% of the time" in outcome.reason
    assert "2.0 times as long" in outcome.reason
    assert "sync" not in outcome.reason


def test_loading_behind_the_device_has_its_margin_from_the_lag(rule: Rule) -> None:
    [outcome] = rule(sketch(rule.drawings("Silent on")[1]))
    assert isinstance(outcome, Checked)
    assert "times as long before it costs anything" in outcome.reason


def test_loading_in_turn_with_the_step_is_not_hidden(judge: Judge[Finding]) -> None:
    [finding] = judge(IN_TURN)
    assert finding.covers == ("A1",)
    assert finding.where.line == 9
    assert finding.saving.estimate_ms == pytest.approx(1, abs=0.2)
    assert finding.saving.upper_ms == pytest.approx(2, abs=0.2)


def test_many_quick_batches_in_a_step_are_no_wait(rule: Rule) -> None:
    """To hand a batch over takes a millisecond, each time."""
    batch = "d a"
    drawing = """
        column = 1 ms
        mark 1 | {s}{t}{u}
        mark 1 | {d}
        cpu 1  | {a}
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
    """
    told = {"d": "d  " * 15, "a": "  a" * 15}
    steps = {name: name * 5 * len(batch) for name in "stu"}
    [outcome] = rule(sketch(drawing.format(**told, **steps)))
    assert isinstance(outcome, Checked)


def starved(**usage: object) -> str:
    """Every step waits 20 of 25 ms for its only worker."""
    facts = json.dumps({"cores": {"effective": 8}, "threads": 8, "usage": usage})
    return f"""
        column = 1 ms
        facts = {facts}
        mark 1 | {"s" * 25}{"t" * 25}{"u" * 25}
        mark 1 | {("d" * 21 + " " * 4) * 3}
        cpu 1  | {(" " * 21 + "a" * 4) * 3}
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
    """


def test_as_many_workers_as_it_takes(judge: Judge[Finding]) -> None:
    """A batch takes 25 ms, and the rest of a step 4: seven workers, and a millisecond each."""
    workers = {"count": 1, "cpu_s": 0.0, "queued_s": 0.0}
    [finding] = judge(starved(wall_s=1.0, process_s=0.1, workers=workers, busy=0.1))
    assert "num_workers=7" in (finding.fix.code or "")
    assert finding.saving.estimate_ms == pytest.approx(20)
    assert finding.confidence == "medium"


def test_twice_the_workers_where_nobody_knows_how_many(judge: Judge[Finding]) -> None:
    [finding] = judge(starved())
    assert "2 * workers" in (finding.fix.code or "")
    assert finding.saving.estimate_ms == pytest.approx(12.5)


def test_cores_that_others_use_make_it_uncertain(judge: Judge[Finding]) -> None:
    workers = {"count": 1, "cpu_s": 0.0, "queued_s": 0.0}
    [finding] = judge(starved(wall_s=1.0, process_s=0.1, workers=workers, busy=0.9))
    assert finding.confidence == "low"
    assert finding.saving.low_ms == 0


def test_uneven_loading_gains_nothing_where_no_core_is_free(rule: Rule) -> None:
    """The medians of step, loading and rest do not add up; the difference is no gain."""
    lengths = (2, 12, 2, 11, 3, 2, 30)
    work = 20
    lanes = {"t": "", "d": "", "a": ""}
    for at, loads in enumerate(lengths):
        lanes["t"] += "ABCDEFG"[at] * (loads + work)
        lanes["d"] += "d" * loads + " " * work
        lanes["a"] += " " * loads + "a" * work
    text = f"""
    column = 1 ms
    mark 1 | {lanes["t"]}
    mark 1 | {lanes["d"]}
    cpu 1  | {lanes["a"]}
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    facts = {json.dumps({"threads": 1, "cores": {"effective": 1}})}
    """
    text += "".join(f"{name} = ProfilerStep#{n}\n    " for n, name in enumerate("ABCDEFG", 1))
    [outcome] = rule(sketch(text))
    assert isinstance(outcome, Checked), outcome
    assert outcome.reason.endswith("no core is free for workers")
