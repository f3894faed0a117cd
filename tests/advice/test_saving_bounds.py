"""No saving is more than what a step has beyond its floor, whatever the recorder added to it."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime import Job, Trace, load
from selftime.advice import RULES, Advice, Checked, Finding, Fix, Rule, Where, advise
from selftime.advice.replay import CutHostTime, RemoveWaits
from selftime.advice.savings.calibration import ALL_RULES_KEY, measured_calibration_factors
from selftime.advice.savings.claims import (
    ModelledClaim,
    RemovalClaim,
    SavingClaim,
    SavingRange,
)
from selftime.advice.savings.estimates import (
    estimated_saving_of_recorded_step,
    without_recording_cost,
)
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.intervals import union
from selftime.testing import sketch, sketch_job

FOLDER: Final = Path(
    os.environ.get("SELFTIME_TRACES", Path(__file__).parents[3] / "shared" / "traces")
)
NEARLY: Final = 1 + 1e-6
"""Sums of the same times in another order differ by their rounding."""


def recorded(trace: Trace, ratio: float | None) -> Trace:
    """The trace as a recording that made its steps so many times as long; None leaves it."""
    if ratio is None:
        return trace
    facts = {**trace.facts, "overhead": {"ratio": ratio}}
    return replace(trace, metadata=MappingProxyType({**trace.metadata, "selftime": facts}))


def slowed(subject: Trace | Job, ratio: float | None) -> Trace | Job:
    if isinstance(subject, Trace):
        return recorded(subject, ratio)
    traces = {path: recorded(trace, ratio) for path, trace in subject.traces.items()}
    return replace(subject, traces=MappingProxyType(traces))


def numbers(advice: Advice) -> Iterator[tuple[str, float]]:
    """Every time that the answer says a fix, or all of them, may save."""
    for finding in advice.findings:
        saving = finding.saving
        for name in ("estimate_ms", "low_ms", "high_ms", "upper_ms"):
            yield f"{finding.rule} {name}", getattr(saving, name) or 0.0
    for checked in advice.checked:
        yield f"{checked.rule}: {checked.reason}", checked.upper_ms or 0.0
    yield "joint", advice.joint.estimate_ms or 0.0


def assert_bounded(advice: Advice) -> None:
    assert advice.trace is not None
    limits = step_statistics(advice.trace)
    if limits is None:
        return
    step = limits.unrecorded_time_ms(limits.step_ms)
    beyond = {name: ms for name, ms in numbers(advice) if ms > NEARLY * step}
    assert beyond == {}, f"more than the whole step of {step} ms"
    for finding in advice.findings:
        assert_fast_enough(finding.saving.estimate_ms, finding.saving.speedup, step)
        assert_leaves_the_devices_work(advice.trace, limits, finding)
    assert_fast_enough(advice.joint.estimate_ms, advice.joint.speedup, step)
    least = max((finding.saving.low_ms or 0.0 for finding in advice.findings), default=0.0)
    assert least <= NEARLY * (
        least if advice.joint.estimate_ms is None else advice.joint.estimate_ms
    )


def assert_fast_enough(estimate: float | None, speedup: float | None, step: float) -> None:
    """A speed-up is that of the step without what is saved, or less: of a longer step."""
    if estimate is not None and speedup is not None:
        assert speedup >= 1
        left = step - estimate
        assert speedup * left <= NEARLY * step + 1e-9


def assert_leaves_the_devices_work(trace: Trace, limits: StepStatistics, finding: Finding) -> None:
    """What the host does less does not make the devices faster: they work as long as before."""
    on_host = all(isinstance(change, CutHostTime | RemoveWaits) for change in finding.changes)
    if not (finding.changes and on_host) or is_of_a_longer_step(trace, limits, finding):
        return
    busy = trace.view("steps").filter("counted")["busy"].fill_null(0)
    works = limits.scaled_to_typical_step(sum(busy.to_list()) / 1e6 / busy.len())
    most = max(limits.unrecorded_time_ms(limits.step_ms) - works, 0.0)
    assert (finding.saving.upper_ms or 0.0) <= NEARLY * most + 1e-6, finding.rule


def is_of_a_longer_step(trace: Trace, limits: StepStatistics, finding: Finding) -> bool:
    """Whether it is told of the average step, which a few long ones make longer."""
    claim = finding.claim
    assert isinstance(claim, RemovalClaim | ModelledClaim)
    own = without_recording_cost(
        limits, claim, estimated_saving_of_recorded_step(trace, claim)
    ).step_ms
    return own > NEARLY * limits.unrecorded_step_ms


DRAWINGS: Final = [
    pytest.param(drawing, id=f"{name}-{section.split()[0]}-{place}")
    for name, rule in RULES.items()
    for section in ("Fires on", "Silent on")
    for place, drawing in enumerate(rule.drawings(section))
]


@pytest.mark.parametrize("ratio", [None, 3.0])
@pytest.mark.parametrize("drawing", DRAWINGS)
@pytest.mark.sweep(10)
def test_of_every_page_of_the_rules(drawing: str, ratio: float | None) -> None:
    assert_bounded(advise(slowed(sketch_job(drawing), ratio)))


@pytest.mark.traces
@pytest.mark.parametrize("ratio", [None, 1.2, 3.0])
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json.gz")), ids=lambda path: path.name)
@pytest.mark.sweep(3)
def test_of_real_traces(path: Path, ratio: float | None) -> None:
    assert_bounded(advise(slowed(load(path), ratio)))


ATTENTION: Final = """
    column = 1 ms
    mark 1 | ssssttttuuuu
    cpu 1  | qxvaqxvaqxva
    call 1 | qxvaqxvaqxva
    gpu 7  |  qxxxxvaaaqxxxxvaaaqxxxxvaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    q = aten::bmm; input_shapes = [[8,512,64],[8,64,512]]
    x = aten::_softmax; input_shapes = [[2,4,512,512],[],[]]
    v = aten::bmm; input_shapes = [[8,512,512],[8,512,64]]
    a = aten::addmm; input_shapes = [[64],[1024,64],[64,64]]
"""


def test_the_bound_is_of_all_work_that_a_fix_may_change() -> None:
    """The softmax goes for sure, and at best a product with it."""
    advice = advise(sketch(ATTENTION), rules={"unfused_attention": RULES["unfused_attention"]})
    [found] = advice.findings
    assert found.saving.estimate_ms == pytest.approx(4.0)
    assert found.saving.upper_ms == pytest.approx(5.0)


LETTERS: Final = """
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:3 main
    o = Optimizer.step#SGD.step; line = train.py:9 main
    a = aten::add; line = net.py:4 forward; input_types = ["double", "double"]
    m = aten::mm; line = net.py:5 forward; input_types = ["float", "float"]
    i = aten::item; line = train.py:8 main
    c = _compile.compile_inner (dynamo_timed); line = train.py:7 main
    r = entire_frame_compile_data: fn_name=f, compile_id=0/2
    g = Python GC
    w = cudaStreamSynchronize
    k = cudaLaunchKernel
"""
"""What programs do that somebody could do less of."""


@st.composite
def steps(draw: st.DrawFn) -> str:
    """Some steps with pieces of work at any place in each of them, on the host and on a device."""
    count, width = draw(st.integers(3, 6)), draw(st.integers(12, 30))
    lanes = {"mark 1": "do", "cpu 1": "amic", "python 1": "g", "call 1": "kw"}
    if draw(st.booleans()):
        lanes["gpu 7"] = "k"
    marks = "".join(letter * width for letter in "STUVWX"[:count])
    lines = [f"column = {draw(st.sampled_from(['10 us', '1 ms']))}", LETTERS, f"mark 1 | {marks}"]
    lines += [f"{letter} = ProfilerStep#{n}" for n, letter in enumerate("STUVWX"[:count], 1)]
    for lane, letters in lanes.items():
        text = "".join(draw(lane_of_a_step(letters, width)) for _ in range(count))
        if lane == "gpu 7":  # as many works as calls, or launches have none
            text = " " + lines_with(lines, "call 1").replace("w", " ")
        lines.append(f"{lane} | {text}")
    if draw(st.booleans()):
        lines.append(f"mark 1 | {'r'.ljust(width) * count}")
    return "\n".join(lines)


def lines_with(lines: list[str], lane: str) -> str:
    return next(line.partition("| ")[2] for line in reversed(lines) if line.startswith(lane))


@st.composite
def lane_of_a_step(draw: st.DrawFn, letters: str, width: int) -> str:
    pieces = draw(st.lists(st.tuples(st.sampled_from(letters), st.integers(1, 9)), max_size=4))
    text = "".join(f"{letter * size} " for letter, size in pieces)
    return text[: width - 1].ljust(width)


@given(steps(), st.sampled_from([None, 1.1, 1.5, 3.0, 10.0]))
def test_of_any_program(drawing: str, ratio: float | None) -> None:
    assert_bounded(advise(recorded(sketch(drawing), ratio)))


STEPS: Final = """
    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaaaabbb aaaaaabbb aaaaaabbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
"""
"""Steps of 10 ms."""
KNOWN: Final = 'facts = {"overhead": {"ratio": 1.0}}'


def saying(*outcomes: Finding | Checked) -> dict[str, Rule]:
    def check(_trace: Trace) -> Iterator[Finding | Checked]:
        yield from outcomes

    return {"waiting": Rule("waiting", "Work waits.", ("D1",), (), check)}


def finding(claim: SavingClaim) -> Finding:
    return Finding(
        title="It waits",
        where=Where("train.py", 3),
        claim=claim,
        confidence="high",
        fix=Fix("Do not."),
    )


def test_what_a_rule_says_beyond_the_step_is_not_told() -> None:
    trace = recorded(sketch(STEPS), 2.0)
    claim = ModelledClaim(9.5, 9.9)
    advice = advise(trace, rules=saying(finding(claim), Checked("It is small", 12.0)))
    [found], [checked] = advice.findings, advice.checked
    assert found.saving.estimate_ms == pytest.approx(4.75)
    assert found.saving.upper_ms == pytest.approx(5.0)
    assert checked.upper_ms == pytest.approx(5.0)


def test_what_strikes_few_steps_is_told_as_its_share_of_the_step() -> None:
    """30 ms of a mean step of 40 ms are 3/4 of it: the typical one, of 10 ms, has no 30 ms."""
    claim = ModelledClaim(
        30.0, 36.0, step_ms=40.0, method="model", interval=SavingRange(2 / 3, 32 / 30)
    )
    [found] = advise(sketch(STEPS + KNOWN), rules=saying(finding(claim))).findings
    saving = found.saving
    assert saving.estimate_ms == pytest.approx(7.5)
    least = measured_calibration_factors()[ALL_RULES_KEY].low
    assert saving.low_ms == pytest.approx(min(5.0, least * 7.5))
    assert saving.upper_ms == pytest.approx(10.0)
    assert saving.speedup == pytest.approx(4.0)


def test_a_single_recorded_step_leaves_no_high_confidence() -> None:
    single = "column = 1 ms\nmark 1 | ssssssssss\ns = ProfilerStep#1\n"
    claim = ModelledClaim(5.0, 9.0)
    [one], [three] = (
        advise(sketch(drawing + KNOWN), rules=saying(finding(claim))).findings
        for drawing in (single, STEPS)
    )
    assert (one.confidence, three.confidence) == ("medium", "high")


UNEVEN: Final = """
    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuuvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
"""
"""Three steps of 10 ms, of which the first is not counted, and one of 40 ms."""


def test_what_strikes_few_steps_saves_time_of_the_mean_step() -> None:
    """15 ms of a mean step of 20 ms are more than the median step has."""
    claim = ModelledClaim(15.0, 16.0, step_ms=20.0, method="model")
    advice = advise(sketch(UNEVEN + KNOWN), rules=saying(finding(claim)))
    [found] = advice.findings
    assert advice.account is not None
    assert advice.account.step_ms == pytest.approx(20.0)
    assert found.saving.estimate_ms == pytest.approx(15.0)
    assert found.saving.upper_ms is not None
    assert 15.0 < found.saving.upper_ms <= 20.0
    assert found.saving.speedup == pytest.approx(4.0)
    assert advice.joint.speedup == pytest.approx(4.0)


WORKED: Final = """
    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuuvvvvvvvvvv
    cpu 1  | aaaa      aaaa      aaaa      aaaa
    call 1 |     k         k         k         k
    gpu 7  |     kkkkkk    kkkkkk    kkkkkk    kkkkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    k = cudaLaunchKernel
"""
"""Steps of 10 ms, of which the device works 6."""


@pytest.mark.parametrize(("ratio", "left"), [(None, [4.0]), (1.25, [2.0]), (5 / 3, [])])
def test_the_host_saves_no_time_in_which_the_device_works(
    ratio: float | None, left: list[float]
) -> None:
    begins = [10_000_000 * step for step in range(4)]
    loading = CutHostTime(union(begins, [begin + 4_000_000 for begin in begins]))
    claimed = finding(ModelledClaim(4.0, 4.0, changes=(loading,)))
    advice = advise(recorded(sketch(WORKED), ratio), rules=saying(claimed))
    assert [f.saving.estimate_ms for f in advice.findings] == [pytest.approx(ms) for ms in left]
    assert bool(left) or "the device's work" in advice.checked[0].reason
