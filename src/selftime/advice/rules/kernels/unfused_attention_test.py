"""Tests the rule `unfused_attention` on edge cases that its documentation page omits."""

from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge, sketch
from selftime.trace import Trace

DRAWING = """
    column = 1 ms
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | {one}{one}{one}
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    q = aten::bmm; input_shapes = [[8,256,64],[8,64,{keys}]]; line = a.py:3 f
    x = aten::_softmax; input_shapes = [[8,256,{keys}],[],[]]; line = a.py:4 f
    o = aten::mul; input_shapes = [[64,64],[64,64]]; line = a.py:5 f
    v = aten::bmm; input_shapes = [[8,256,{keys}],[8,{keys},64]]; line = a.py:6 f
    a = aten::addmm; input_shapes = [[64],[1024,64],[64,64]]
"""


def drawing(one: str, keys: int = 256) -> str:
    return DRAWING.format(one=one.ljust(20), keys=keys)


def test_products_stay_and_what_is_between_goes(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("qqxxxxxxvvaaaaaaaaaa"))
    assert finding.saving.estimate_ms == pytest.approx(6.0)
    assert finding.saving.upper_ms == pytest.approx(10.0)
    assert finding.where.line == 4
    assert finding.count_per_step == 1.0


def test_what_works_on_other_tensors_in_between_is_not_of_it(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("qqxxxxoovvaaaaaaaaaa"))
    assert finding.saving.estimate_ms == pytest.approx(4.0)
    assert finding.saving.upper_ms == pytest.approx(8.0)


def test_queries_narrower_than_values_have_no_fused_form_on_a_cpu(judge: Judge[Finding]) -> None:
    narrow = drawing("qqxxxxxxvvaaaaaaaaaa").replace("[[8,256,64],[8,64,", "[[8,256,8],[8,8,")
    assert not judge(narrow)
    gradient = "g = aten::bmm; input_shapes = [[8,256,256],[8,256,8]]"
    transposed = narrow.replace("[[8,256,256],[8,256,64]]", "[[8,64,256],[8,256,256]]")
    assert not judge(f"{transposed.replace('vvaaaa', 'vvggaa')}    {gradient}\n")


def test_queries_of_one_token_gain_nothing(judge: Judge[Finding]) -> None:
    one = drawing("qqxxxxxxvvaaaaaaaaaa").replace("256", "1", 1)
    assert not judge(one.replace("[8,256,", "[8,1,"))


def test_keys_need_not_be_as_many_as_queries(judge: Judge[Finding]) -> None:
    assert judge(drawing("qqxxxxxxvvaaaaaaaaaa", keys=512))


def test_linear_attention_has_no_scores(judge: Judge[Finding]) -> None:
    """In linear attention the softmax is over the features of one token, not over tokens."""
    assert not judge("""
        column = 1 ms
        mark 1 | sssssssssstttttttttt
        cpu 1  | pxxxxxvvaapxxxxxvvaa
        s = ProfilerStep#1
        t = ProfilerStep#2
        p = aten::mm; input_shapes = [[4096,512],[512,128]]
        x = aten::_softmax; input_shapes = [[4096,128],[],[]]
        v = aten::mm; input_shapes = [[4096,128],[128,128]]
        a = aten::addmm; input_shapes = [[64],[1024,64],[64,64]]
    """)


def test_shapes_that_are_no_shapes_are_no_attention(rule: Rule) -> None:
    text = drawing("qqxxxxxxvvaaaaaaaaaa").replace("[[8,256,256],[],[]]", "oops")
    assert rule(sketch(text))


@pytest.mark.torch
def test_on_a_program(rule: Rule, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    q, k, v = (torch.randn(4, 4, 256, 32, requires_grad=True) for _ in range(3))

    def naive() -> None:
        weights = torch.softmax((q @ k.transpose(-2, -1)) / 32**0.5, dim=-1)
        (weights @ v).sum().backward()

    def fused() -> None:
        torch.nn.functional.scaled_dot_product_attention(q, k, v).sum().backward()

    def dropping() -> None:
        torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.1).sum().backward()

    chains = {}
    for step in (naive, fused, dropping):
        path = tmp_path / f"{step.__name__}.json"
        with selftime.profile(
            schedule=selftime.schedule(wait=0, warmup=1, active=4, repeat=1), record_shapes=True
        ) as prof:
            for _ in range(5):
                step()
                prof.step()
        prof.export_chrome_trace(str(path))
        trace = selftime.load(path)
        assert isinstance(trace, Trace)
        [outcome] = rule(trace)  # on a busy machine it may vary by more than it saves
        told = outcome.title if isinstance(outcome, Finding) else str(outcome)
        chains[step.__name__] = (
            "runs as a chain over 256 x 256 scores" in told,
            "with dropout" in told,
        )
    assert chains == {"naive": (True, False), "fused": (False, False), "dropping": (True, True)}


@pytest.mark.parametrize("has_device", [True, False])
def test_dropout_of_weights_is_the_reason_on_a_cpu_only(
    judge: Judge[Finding], *, has_device: bool
) -> None:
    host, call = ("qxdva" * 3, "qxdva" * 3) if has_device else ("qxxxdvaaaa" * 3, "")
    steps = "".join(step * (len(host) // 3) for step in "stu")
    [finding] = judge(f"""
        column = 1 ms
        mark 1 | {steps}
        cpu 1  | {host}
        call 1 | {call}
        gpu 7  | {" qxxxddvva" * 3 if has_device else ""}
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        q = aten::bmm; input_shapes = [[8,512,64],[8,64,512]]
        x = aten::_softmax; input_shapes = [[2,4,512,512],[],[]]
        d = aten::dropout; input_shapes = [[2,4,512,512],[],[]]
        v = aten::bmm; input_shapes = [[8,512,512],[8,512,64]]
        a = aten::addmm; input_shapes = [[64],[1024,64],[64,64]]
    """)
    assert finding.semantics == ("numerics" if has_device else "training")
    assert ("dropout" in finding.title) != has_device
