"""Tests the rule `unused_matrix_units` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
from selftime.testing import Judge, sketch

DRAWING = """
    column = 1 ms
    facts = {facts}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | {one}{one}{one}
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_types = ["float","float"]; input_shapes = {shapes}; line = n.py:4 f
    b = aten::relu; input_types = ["float"]; input_shapes = [[64,64]]
"""
AMX = '{"settings": {"cpu_bfloat16": "AMX"}}'


def drawing(one: str, facts: str = AMX, size: int = 1024) -> str:
    return DRAWING.format(one=one, facts=facts, shapes=[[size, size]] * 2)


def test_it_is_a_hint_that_changes_numbers(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("aaaabbbbb "))
    assert finding.where.line == 4
    assert finding.semantics == "numerics"


def test_half_of_the_products_time_is_saved_and_a_tenth_of_the_step_lost_at_worst(
    judge: Judge[Finding],
) -> None:
    known = '{"settings": {"cpu_bfloat16": "AMX"}, "overhead": {"ratio": 1.0}}'
    [finding] = judge(drawing("aaaabbbbb ", known))
    saving = finding.saving
    assert saving.estimate_ms == 2.0
    assert saving.low_ms is not None
    assert saving.high_ms is not None
    assert saving.low_ms == pytest.approx(-1.0)
    assert finding.confidence == "medium"
    assert 2.0 < saving.high_ms <= 4.0
    assert saving.upper_ms == 4.0


def test_a_single_step_does_not_tell_whether_sizes_return(
    judge: Judge[Finding],
) -> None:
    known = '{"settings": {"cpu_bfloat16": "AMX"}, "overhead": {"ratio": 1.0}}'
    text = drawing("aaaabbbbb ", known).replace("ssssssssssttttttttttuuuuuuuuuu", "s" * 30)
    [finding] = judge(text)
    assert finding.confidence == "low"
    assert (finding.saving.estimate_ms, finding.saving.low_ms) == (6.0, -12.0)


def test_products_of_few_operations_an_element_are_left_alone(rule: Rule) -> None:
    [outcome] = rule(sketch(drawing("aaaaaaaab ", size=128)))
    assert isinstance(outcome, Checked)
    assert "too little with each element" in outcome.reason


def changing(*shapes: str) -> str:
    """One product in each of three steps, of the given sizes."""
    text = drawing("aaaabbbbb ").replace("aaaabbbbb aaaabbbbb aaaa", "mmmmbbbbb nnnnbbbbb oooo")
    for letter, sizes in zip("mno", shapes, strict=True):
        text += (
            f'    {letter} = aten::mm; input_types = ["float","float"]; input_shapes = {sizes}\n'
        )
    return text


def test_products_of_new_sizes_in_each_step_are_prepared_anew(rule: Rule) -> None:
    text = changing("[[999,901],[901,1024]]", "[[995,903],[903,1024]]", "[[993,905],[905,1024]]")
    [outcome] = rule(sketch(text))
    assert isinstance(outcome, Checked)
    assert "differ from step to step" in outcome.reason
    alone = text.replace("ssssssssssttttttttttuuuuuuuuuu", "s" * 30)
    assert isinstance(rule(sketch(alone))[0], Finding)


def test_one_size_that_changes_returns(judge: Judge[Finding]) -> None:
    """As the length of a text does, which is among the sizes of both factors in attention."""
    assert judge(
        changing("[[999,900],[900,1024]]", "[[995,900],[900,1024]]", "[[993,900],[900,1024]]")
    )
    assert judge(
        changing("[[999,900],[900,999]]", "[[995,900],[900,995]]", "[[993,900],[900,993]]")
    )


def test_a_few_products_are_left_alone(judge: Judge[Finding]) -> None:
    assert not judge(drawing("aabbbbbbb "))


def test_another_processor_is_only_checked(rule: Rule) -> None:
    for units in ("AVX512_BF16", ""):
        facts = f'{{"settings": {{"cpu_bfloat16": "{units}"}}}}'
        [outcome] = rule(sketch(drawing("aaaabbbbb ", facts)))
        assert isinstance(outcome, Checked)


def test_an_unknown_processor_is_unknown(rule: Rule) -> None:
    [outcome] = rule(sketch(drawing("aaaabbbbb ", "{}")))
    assert isinstance(outcome, Unknown)
