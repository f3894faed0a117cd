"""What several fixes are worth together: each claims the time that the others leave."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from selftime.advice import Finding, Fix, Outcome, Rule, Where, advise
from selftime.advice.replay import CutHostTime, replay_of
from selftime.advice.rule_definition import Saving
from selftime.advice.savings.claims import RemovalClaim, UpperBoundClaim
from selftime.intervals import union
from selftime.testing import sketch
from selftime.trace import Trace

LOOP = """
    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaaaabbb aaaaaabbb aaaaaabbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
"""
"""Steps of 10 ms: 6 in `a`, 3 in `b`, 1 in neither."""


def time_in(trace: Trace, *letters: str) -> CutHostTime:
    """What removes the time of some letters."""
    found = trace.slices.filter(trace.slices["name"].is_in(list(letters)))
    begin = found["start"].to_numpy()
    return CutHostTime(union(begin, begin + found["duration"].to_numpy()))


def claiming(title: str, trace: Trace, *letters: str, keep: float = 0.0) -> Finding:
    return Finding(
        title=title,
        where=Where(),
        claim=RemovalClaim((replace(time_in(trace, *letters), kept_share=keep),)),
        confidence="high",
        fix=Fix("Do it once."),
    )


def rule(name: str, *outcomes: Outcome, broad: bool = False) -> Rule:
    def check(_trace: Trace) -> Iterator[Outcome]:
        yield from outcomes

    return Rule(name, "Work is done twice.", ("D1",), (), check, broad)


def told(trace: Trace, *rules: Rule) -> dict[str, float | None]:
    advice = advise(trace, rules={r.name: r for r in rules})
    return {f.rule: f.saving.estimate_ms for f in advice.findings}


def test_a_broad_finding_has_what_the_others_leave() -> None:
    trace = sketch(LOOP)
    cause = rule("a_twice", claiming("a", trace, "a"))
    broad = rule("all_slow", claiming("all", trace, "a", "b"), broad=True)
    assert told(trace, broad) == {"all_slow": pytest.approx(9.0)}
    assert told(trace, cause, broad) == {
        "a_twice": pytest.approx(6.0),
        "all_slow": pytest.approx(3.0),
    }


def test_a_broad_finding_with_nothing_left_is_explained() -> None:
    trace = sketch(LOOP)
    cause = rule("both_twice", claiming("both", trace, "a", "b"))
    broad = rule("all_slow", claiming("all", trace, "a", "b", keep=0.1), broad=True)
    advice = advise(trace, rules={r.name: r for r in (broad, cause)})
    assert [f.rule for f in advice.findings] == ["both_twice"]
    [checked] = advice.checked
    assert checked.rule == "all_slow"
    assert "`both_twice`" in checked.reason


def bounded(trace: Trace, *letters: str, most_ms: float) -> Finding:
    return Finding(
        title="all",
        where=Where(),
        claim=UpperBoundClaim(most_ms, removing_changes=(time_in(trace, *letters),)),
        confidence="medium",
        fix=Fix("Do less."),
    )


def test_a_limit_is_of_what_the_other_fixes_leave() -> None:
    trace = sketch(LOOP)
    broad = rule("all_slow", bounded(trace, "a", "b", most_ms=9.0), broad=True)
    cause = rule("b_twice", claiming("b", trace, "b"))
    advice = advise(trace, rules={r.name: r for r in (broad, cause)})
    assert {f.rule: f.saving.upper_ms for f in advice.findings}["all_slow"] == pytest.approx(6.0)


def test_a_limit_of_which_other_fixes_leave_little_is_explained() -> None:
    trace = sketch(LOOP)
    broad = rule("all_slow", bounded(trace, "a", "b", most_ms=9.0), broad=True)
    cause = rule("a_twice", claiming("a", trace, "a", "b", keep=0.2))
    advice = advise(trace, rules={r.name: r for r in (broad, cause)})
    assert [f.rule for f in advice.findings] == ["a_twice"]
    [checked] = advice.checked
    assert "`a_twice`" in checked.reason
    assert checked.upper_ms == pytest.approx(9.0)


@pytest.mark.parametrize(
    ("place", "named"),
    [
        (Where("train.py", 9, "step", "stamp"), "`work_twice` at `train.py:9 in step`"),
        (Where(), "another `work_twice`"),
    ],
)
def test_of_two_findings_of_one_rule_the_explained_names_the_place_of_the_other(
    place: Where, named: str
) -> None:
    trace = sketch(LOOP)
    larger = replace(claiming("larger", trace, "a", "b"), where=place)
    smaller = replace(claiming("smaller", trace, "a"), where=Where("train.py", 5, "step", "stamp"))
    both = rule("work_twice", larger, smaller)
    advice = advise(trace, rules={both.name: both})
    assert [found.title for found in advice.findings] == ["larger"]
    [checked] = advice.checked
    assert checked.reason == f"smaller: most of the saving comes with the fix of {named}"


def test_of_two_causes_of_the_same_time_the_larger_is_told() -> None:
    trace = sketch(LOOP)
    small = rule("a_slow", claiming("a", trace, "a"))
    large = rule("both_slow", claiming("both", trace, "a", "b"))
    assert told(trace, small, large) == {"both_slow": pytest.approx(9.0)}


def test_causes_that_are_fixed_apart_are_both_told() -> None:
    """Half of the time in float64 goes with float32; that it is computed twice is still so."""
    trace = sketch(LOOP)
    half = rule("in_double", claiming("double", trace, "a", keep=0.45))
    twice = rule("done_twice", claiming("twice", trace, "a", keep=0.5))
    assert set(told(trace, half, twice)) == {"in_double", "done_twice"}


def test_a_saving_that_says_not_what_it_changes_explains_nothing() -> None:
    trace = sketch(LOOP)
    told_saving = Saving.of_step(10.0, 6.0, method="model")
    silent = replace(claiming("a", trace, "a"), claim=None, saving=told_saving)
    broad = rule("all_slow", claiming("all", trace, "a", "b"), broad=True)
    assert set(told(trace, rule("a_slow", silent), broad)) == {"a_slow", "all_slow"}


def test_the_joint_saving_is_one_replay_and_within_the_step() -> None:
    trace = sketch(LOOP)
    rules = [rule("a_slow", claiming("a", trace, "a")), rule("b_slow", claiming("b", trace, "b"))]
    joint = advise(trace, rules={r.name: r for r in rules}).joint
    assert joint.estimate_ms == pytest.approx(9.0)
    assert joint.speedup == pytest.approx(10.0)


def test_cuts_of_parts_of_one_stretch_add_up() -> None:
    trace = sketch(LOOP)
    replay = replay_of(trace)
    each = [replay.saving(time_in(trace, letter)) for letter in "ab"]
    assert replay.saving(*(time_in(trace, letter) for letter in "ab")) == pytest.approx(sum(each))
    assert replay.saving(time_in(trace, "a"), time_in(trace, "a", "b")) == pytest.approx(sum(each))


def test_nothing_to_measure_by_leaves_findings_as_they_are() -> None:
    plain = Finding(
        title="It waits",
        where=Where(),
        saving=Saving.of_step(10.0, 2.0, method="model"),
        confidence="low",
        fix=Fix("Do not."),
        changes=(CutHostTime(union(np.array([0]), np.array([1]))),),
    )
    trace = sketch("cpu 1 | aaa")
    outcomes = advise(trace, rules={"waiting": rule("waiting", plain)})
    assert [f.title for f in outcomes.findings] == ["It waits"]
    assert not outcomes.checked
