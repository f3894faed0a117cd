"""Tests the rule `slow_input` on edge cases that its documentation page omits."""

import json
from importlib import import_module

import pytest

from selftime.advice.detectors.exposed_loading import DataLoadingTimes
from selftime.advice.detectors.loader_workers import predict_step_with_workers
from selftime.advice.rule_definition import Checked, Finding, Rule
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


def drawing(loading_ms: int) -> str:
    """Draws two steps of 40 ms that begin with `loading_ms` ms of data loading."""
    one = "d" * loading_ms + " " * (40 - loading_ms)
    work = " " * loading_ms + "a" * (40 - loading_ms)
    return STEPS.format(t="t" * 40, d=one * 2, a=work * 2)


def test_one_millisecond_of_forty_is_not_worth_workers(judge: Judge[Finding]) -> None:
    assert not judge(drawing(1))
    [finding] = judge(drawing(8))
    assert finding.where.file == "train.py"
    assert finding.where.line == 9


def test_the_saving_is_at_most_the_exposed_loading_time(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing(30))
    assert finding.saving.upper_ms == pytest.approx(30)
    assert finding.saving.estimate_ms is not None
    assert finding.saving.estimate_ms <= 30


def test_hidden_loading_is_reported_as_hidden(rule: Rule) -> None:
    drawing = rule.drawings("Silent on")[1]
    [outcome] = rule(sketch(drawing))
    assert isinstance(outcome, Checked)
    assert "no need to optimise" in outcome.reason


def loading_in_step_of_100_ms(
    *, exposed: float, total: float, has_device: bool, waiting: float = 0.0
) -> DataLoadingTimes:
    return DataLoadingTimes(
        step_ms=100.0,
        exposed_ms=exposed,
        mean_exposed_ms=exposed,
        at_epoch_ends_ms=0.0,
        total_ms=total,
        waiting_ms=waiting,
        noise_ms=0.0,
        waiting_share_by_step=(exposed / 100.0,),
        step_without_loading_ms=100.0 - exposed,
        device_lag_ms=0.0,
        has_workers=False,
        has_device=has_device,
    )


@pytest.mark.parametrize(("cores", "likely"), [(1, 101.0), (2, 81.0), (4, 71.0), (16, 63.5)])
def test_on_a_cpu_workers_share_the_cores_with_the_step(cores: int, likely: float) -> None:
    """A step computes for 60 ms on all cores and loads a batch for 40 ms on one core.

    To hand a batch over takes 1 ms.
    """
    facts = {"cores": {"effective": cores}, "threads": cores}
    found = predict_step_with_workers(
        loading_in_step_of_100_ms(exposed=40, total=40, has_device=False), facts
    )
    assert found.likely_ms == pytest.approx(likely)
    assert found.shortest_ms <= found.likely_ms


def test_beside_a_device_the_host_needs_one_core_for_the_step() -> None:
    facts = {"cores": {"effective": 8}, "threads": 8}
    found = predict_step_with_workers(
        loading_in_step_of_100_ms(exposed=40, total=40, has_device=True), facts
    )
    assert found.likely_ms == pytest.approx(61.0)


def test_an_unknown_number_of_cores_lowers_the_confidence() -> None:
    found = predict_step_with_workers(
        loading_in_step_of_100_ms(exposed=40, total=40, has_device=True), {}
    )
    assert not found.is_core_count_known
    assert found.likely_ms == pytest.approx(61)


def test_loading_that_waits_for_storage_needs_no_core() -> None:
    facts = {"cores": {"effective": 1}, "threads": 1}
    waits = loading_in_step_of_100_ms(exposed=40, total=40, waiting=40, has_device=False)
    assert predict_step_with_workers(waits, facts).likely_ms == pytest.approx(61)
    assert predict_step_with_workers(waits, facts).worker_count == 4
    computes = loading_in_step_of_100_ms(exposed=40, total=40, waiting=0, has_device=False)
    assert predict_step_with_workers(computes, facts).likely_ms == pytest.approx(101)


@pytest.mark.parametrize(
    ("tensors", "likely"), [(None, 63.5), (0, 63.5), ("2", 63.5), (2, 63.43), (40, 66.85)]
)
def test_the_hand_over_of_a_batch_costs_by_its_tensors(tensors: object, likely: float) -> None:
    """Recordings from before that was counted have the usual time."""
    facts = {"cores": {"effective": 16}, "threads": 16, "batch_tensors": tensors}
    loading = loading_in_step_of_100_ms(exposed=40, total=40, has_device=False)
    assert predict_step_with_workers(loading, facts).likely_ms == pytest.approx(likely)


def test_batches_whose_hand_over_takes_as_long_are_loaded_where_they_are() -> None:
    drawing = """
        column = 1 ms
        s = ProfilerStep#1
        t = ProfilerStep#2
        d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:9 main
        mark 1   | sssssssssssssssssssstttttttttttttttttttt
        mark 1   | dddddddddd          dddddddddd
        cpu 1    |           aaaaaaaaaa          aaaaaaaaaa
    """
    rule = import_module("selftime.advice.rules").RULES["slow_input"]
    facts = {"cores": {"effective": 8}, "threads": 1}
    [few] = rule(sketch(drawing, metadata={"selftime": facts | {"batch_tensors": 2}}))
    [many] = rule(sketch(drawing, metadata={"selftime": facts | {"batch_tensors": 120}}))
    assert isinstance(few, Finding)
    assert isinstance(many, Checked)
    assert "hand over a batch of 120 tensors" in many.reason


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


@pytest.mark.parametrize(
    ("cores", "reads", "confidence"),
    [(2, False, "low"), (4, False, "high"), (2, True, "high")],
)
def test_loading_that_computes_beside_a_second_thread_of_a_core_is_unsure(
    cores: int, *, reads: bool, confidence: str
) -> None:
    calls = "<built-in function sleep>" if reads else "<built-in function sorted>"
    drawing = f"""
        column = 1 ms
        s = ProfilerStep#1
        t = ProfilerStep#2
        d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:9 main
        w = {calls}
        mark 1   | sssssssssssssssssssstttttttttttttttttttt
        mark 1   | dddddddddd          dddddddddd
        python 1 |  wwwwwwwww           wwwwwwwww
        cpu 1    |           aaaaaaaaaa          aaaaaaaaaa
    """
    rule = import_module("selftime.advice.rules").RULES["slow_input"]
    facts = {"selftime": {"cores": {"effective": cores}, "threads": 1}}
    [finding] = rule(sketch(drawing, metadata=facts))
    assert isinstance(finding, Finding)
    assert finding.confidence == confidence


LOADING_BESIDE_THE_STEP = """
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
"""Drawing in which workers load for 2 ms while the step of 3 ms runs."""

LOADING_BEFORE_THE_STEP = """
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
"""Drawing in which the main thread loads for 2 ms before 3 ms of work: a step takes 5 ms."""


def test_loading_beside_the_step_is_hidden_with_a_margin(rule: Rule) -> None:
    [outcome] = rule(sketch(LOADING_BESIDE_THE_STEP))
    assert isinstance(outcome, Checked)
    assert "no need to optimise" in outcome.reason
    assert "50 % of the time" in outcome.reason
    assert "2 times as long" in outcome.reason
    assert "sync" not in outcome.reason


def test_the_margin_of_loading_behind_a_device_is_the_devices_lag(rule: Rule) -> None:
    [outcome] = rule(sketch(rule.drawings("Silent on")[1]))
    assert isinstance(outcome, Checked)
    assert "times as long before it costs anything" in outcome.reason


def test_loading_before_each_step_is_not_hidden(judge: Judge[Finding]) -> None:
    [finding] = judge(LOADING_BEFORE_THE_STEP)
    assert finding.covers == ("A1",)
    assert finding.where.line == 9
    assert finding.saving.estimate_ms == pytest.approx(1, abs=0.2)
    assert finding.saving.upper_ms == pytest.approx(2, abs=0.2)


def test_many_quick_batches_in_a_step_are_not_reported(rule: Rule) -> None:
    """Each step fetches five batches, and each fetch takes 1 ms."""
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


def drawing_of_slow_worker(**usage: object) -> str:
    """Draws steps of 25 ms that wait for their only worker for 20 ms."""
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


def test_the_fix_advises_as_many_workers_as_needed(judge: Judge[Finding]) -> None:
    """A batch takes 25 ms and the rest of a step 4 ms, so seven workers are enough."""
    workers = {"count": 1, "cpu_s": 0.0, "queued_s": 0.0}
    [finding] = judge(drawing_of_slow_worker(wall_s=1.0, process_s=0.1, workers=workers, busy=0.1))
    assert "num_workers=7" in (finding.fix.code or "")
    assert finding.saving.estimate_ms == pytest.approx(20)
    assert finding.confidence == "medium"


def test_without_worker_usage_the_fix_advises_twice_the_workers(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing_of_slow_worker())
    assert "2 * workers" in (finding.fix.code or "")
    assert finding.saving.estimate_ms == pytest.approx(12.5)


def test_other_programs_on_the_cores_lower_the_confidence(judge: Judge[Finding]) -> None:
    workers = {"count": 1, "cpu_s": 0.0, "queued_s": 0.0}
    [finding] = judge(drawing_of_slow_worker(wall_s=1.0, process_s=0.1, workers=workers, busy=0.9))
    assert finding.confidence == "low"
    assert finding.saving.low_ms == 0


def test_uneven_loading_gains_nothing_where_no_core_is_free(rule: Rule) -> None:
    """Loading times differ widely between steps, so that a difference of medians is no saving."""
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


@pytest.mark.parametrize(("line", "places"), [(12, [12, 14]), (14, [14])])
def test_two_loaders_are_two_findings(judge: Judge[Finding], line: int, places: list[int]) -> None:
    found = judge(f"""
        column = 1 ms
        mark 1 | sssssssssssssssstttttttttttttttt
        mark 1 | ddddeeee        ddddeeee
        cpu 1  |         aaaaaaaa        aaaaaaaa
        s = ProfilerStep#1
        t = ProfilerStep#2
        a = aten::mm
        d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:{line} f
        e = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:14 f
    """)
    assert sorted(finding.where.line or 0 for finding in found) == places
    share = "50 %" if len(places) == 1 else "25 %"
    assert all(share in finding.title for finding in found)
    assert sum(finding.saving.upper_ms or 0 for finding in found) == pytest.approx(8.0, abs=0.5)
