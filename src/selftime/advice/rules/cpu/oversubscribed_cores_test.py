"""Tests the rule `oversubscribed_cores` on edge cases that its documentation page omits."""

from pathlib import Path

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
from selftime.testing import Judge, sketch

DRAWING = """
    column = 1 ms
    facts = {facts}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaabbbbb aaaabbbbb aaaabbbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm{line}
    b = aten::relu
"""


def drawing(facts: str, line: str = "") -> str:
    return DRAWING.format(facts=facts, line=line)


def of_cores(threads: int, effective: float) -> str:
    return f'{{"threads": {threads}, "cores": {{"effective": {effective}}}}}'


def test_the_number_of_cores_is_what_can_be_had(judge: Judge[Finding]) -> None:
    quota = '{"threads": 8, "cores": {"logical": 64, "affinity": 64, "quota": 2, "effective": 2}}'
    [finding] = judge(drawing(quota))
    assert finding.confidence == "high"
    assert finding.saving.estimate_ms is None
    assert "set_num_threads(2)" in (finding.fix.code or "")


def test_a_fraction_of_a_core_is_no_thread(judge: Judge[Finding]) -> None:
    assert not judge(drawing(of_cores(2, 1.5)))
    assert judge(drawing(of_cores(3, 2)))


def test_one_thread_never_waits_for_another(judge: Judge[Finding]) -> None:
    assert not judge(drawing(of_cores(1, 0.5)))


def test_ranks_that_are_pinned_have_their_cores_for_themselves(judge: Judge[Finding]) -> None:
    facts = (
        '{{"threads": 4, "cores": {{"effective": 4, "affinity": 4, "logical": {logical}}}, '
        '"settings": {{"environment": {{"LOCAL_WORLD_SIZE": "4"}}}}}}'
    )
    assert judge(drawing(facts.format(logical=4)))
    assert not judge(drawing(facts.format(logical=16)))


def test_without_facts_nobody_can_tell(rule: Rule) -> None:
    for facts in ("{}", '{"threads": 8}', '{"threads": "8", "cores": [2]}'):
        [outcome] = rule(sketch(drawing(facts)))
        assert isinstance(outcome, Unknown)


def test_threads_that_take_turns_are_one_caller(rule: Rule) -> None:
    """A backward pass on a thread of its own does not compete with the forward pass."""
    [outcome] = rule(
        sketch("""
        column = 1 ms
        facts = {"threads": 4, "cores": {"effective": 4}}
        mark 1 | ssssssssssttttttttttuuuuuuuuuu
        cpu 1  | aaaa      aaaa      aaaa
        cpu 2  |     bbbbb     bbbbb     bbbbb
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        a = aten::mm
        b = aten::relu
    """)
    )
    assert isinstance(outcome, Checked)


def test_the_line_is_where_the_number_is_set(judge: Judge[Finding], tmp_path: Path) -> None:
    program = tmp_path / "serve.py"
    program.write_text("import torch\n\n\ndef main():\n    torch.set_num_threads(8)\n")
    [finding] = judge(drawing(of_cores(8, 2), f"; line = {program}:7 main"))
    assert (finding.where.file, finding.where.line) == (str(program), 5)
    assert (finding.where.function, finding.where.how) == ("main", "static")


@pytest.mark.parametrize("source", ["", "torch.set_num_threads(8\n", "f(8)\n" * 2, None])
def test_without_one_call_there_is_no_line(
    judge: Judge[Finding], tmp_path: Path, source: str | None
) -> None:
    program = tmp_path / "serve.py"
    if source is not None:
        program.write_text(source)
    [finding] = judge(drawing(of_cores(8, 2), f"; line = {program}:7 main"))
    assert finding.where.line is None


USAGE = (
    '{{"threads": 2, "cores": {{"effective": 2, "affinity": 2, "logical": 2}}, "usage": '
    '{{"wall_s": 2, "process_s": {own}, "workers": {{"count": 1, "cpu_s": {workers}}}, '
    '"busy": 1.0, "steal": 0.0}}}}'
)
UNEVEN = """
    column = 1 ms
    facts = {facts}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaabbbbb abaaaaaaaa abaaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    b = aten::relu
"""


def test_cores_that_others_take_are_missing(judge: Judge[Finding]) -> None:
    [finding] = judge(UNEVEN.format(facts=USAGE.format(own=1.5, workers=0)))
    assert finding.title == "2 threads lack cores: other programs use 1.2 of the 2 cores"
    assert "set_num_threads(1)" in (finding.fix.code or "")
    assert finding.confidence == "low"


def test_a_core_that_others_take_is_missing_whatever_the_clocks_say(judge: Judge[Finding]) -> None:
    for own in (1.98, 2.0, 2.02, 2.3):
        assert judge(UNEVEN.format(facts=USAGE.format(own=own, workers=0)))
    for own in (3.1, 3.9, 4.0):
        assert not judge(UNEVEN.format(facts=USAGE.format(own=own, workers=0)))


LONG = """
    column = 1 ms
    facts = {facts}
    mark 1 | {marks}
    cpu 1  | {ops}
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::sort
    b = aten::relu
"""


def long(first: int, second: int) -> str:
    """Draws three steps, each with a sort of 30 ms and two equal operators of the given ms."""
    step = f"{'a' * 30}{'b' * first} {'b' * second}"
    marks = "".join(letter * len(step) for letter in "stu")
    return LONG.format(facts=USAGE.format(own=2.0, workers=0), marks=marks, ops=3 * step)


def test_what_waits_in_every_run_hides_no_operator_that_does_not(judge: Judge[Finding]) -> None:
    assert judge(long(1, 12))
    assert not judge(long(10, 12))


def test_a_few_uneven_operators_beside_long_even_ones_are_no_sign(judge: Judge[Finding]) -> None:
    assert not judge(long(1, 4))


def test_the_programs_own_workers_take_cores_and_are_no_others(judge: Judge[Finding]) -> None:
    [finding] = judge(UNEVEN.format(facts=USAGE.format(own=2.0, workers=2.0)))
    assert finding.title == "2 threads lack cores: DataLoader workers use 1 of the 2 cores"
    assert finding.confidence == "medium"
    assert "set_num_threads(1)" in (finding.fix.code or "")
    [both] = judge(UNEVEN.format(facts=USAGE.format(own=1.5, workers=0.7)))
    assert "other programs use 0.9 and DataLoader workers use 0.3 of the 2 cores" in both.title
    assert both.confidence == "low"


def test_workers_that_hardly_use_a_core_are_no_matter(judge: Judge[Finding]) -> None:
    assert not judge(UNEVEN.format(facts=USAGE.format(own=3.9, workers=0.1)))


def test_others_that_do_not_hold_up_operators_are_no_matter(judge: Judge[Finding]) -> None:
    assert not judge(drawing(USAGE.format(own=1.5, workers=0)))


def test_usage_that_is_not_told_is_no_others(judge: Judge[Finding]) -> None:
    assert not judge(UNEVEN.format(facts=USAGE.format(own="null", workers=0)))
