"""Tests the rule `recomputed_prefix` on edge cases that its documentation page omits."""

import runpy
from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge
from selftime.trace import Trace

DRAWING = """
    column = 1 ms
    mark 1 | 0000000000ssssssssssttttttttttuuuuuuuuuuvvvvvvvvvv
    cpu 1  | eeeeeeeeffaaaaaaaaffbbbbbbbbffccccccccffddddddddff
    0 = ProfilerStep#0
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    f = {other_operator}
"""
BACKWARD = "autograd::engine::evaluate_function: AddmmBackward0"
PRODUCT = "    {letter} = aten::addmm; input_shapes = [[256],[{rows},64],[64,256],[],[]]\n"


def drawing(*rows: int, other_operator: str = "aten::argmax") -> str:
    products = zip("abcd", rows, strict=True)
    return DRAWING.format(other_operator=other_operator) + "".join(
        PRODUCT.format(letter=letter, rows=number) for letter, number in products
    )


def test_the_estimate_keeps_the_rows_of_the_new_token(judge: Judge[Finding]) -> None:
    """The estimate keeps 4 % of 8 ms of matrix products and 1 % of 2 ms of other operators."""
    [finding] = judge(drawing(100, 101, 102, 103))
    assert finding.saving.estimate_ms == pytest.approx(8 * 0.96 + 2 * 0.98, rel=0.1)
    assert "100 to 103" in finding.title


def test_all_sequences_of_a_batch_must_grow_together(judge: Judge[Finding]) -> None:
    assert judge(drawing(400, 404, 408, 412))
    assert not judge(drawing(401, 405, 409, 413)), "not the rows of four sequences"


def test_one_length_may_be_missing_for_an_uncounted_step(judge: Judge[Finding]) -> None:
    assert judge(drawing(100, 101, 103, 104))
    assert not judge(drawing(100, 103, 104, 105))


def test_steps_that_do_not_count_have_their_lengths(judge: Judge[Finding]) -> None:
    """Step 1 is an outlier: three lengths are left, of five that were recorded."""
    text = (
        drawing(100, 101, 102, 103).replace("ssssssssss", "s" * 60).replace("aaf", "aa" * 26 + "f")
    )
    [finding] = judge(text + PRODUCT.format(letter="e", rows=99))
    assert "101 to 103" in finding.title


def test_training_on_longer_and_longer_texts_is_not_reported(judge: Judge[Finding]) -> None:
    assert not judge(drawing(100, 101, 102, 103, other_operator=BACKWARD))


PROGRAM = """
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
embed, head = nn.Embedding(1000, 256), nn.Linear(256, 1000)
mix = nn.ModuleList(nn.Linear(256, 768) for _ in range(2))
feed = nn.ModuleList(nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256))
                     for _ in range(2))
tokens = torch.randint(1000, (1, 96))

@torch.inference_mode()
def step():
    global tokens
    x = embed(tokens)
    for mixing, feeding in zip(mix, feed):
        q, k, v = (t.unflatten(-1, (4, 64)).transpose(1, 2) for t in mixing(x).chunk(3, dim=-1))
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + feeding(x)
    token = head(x[:, -1]).argmax(-1, keepdim=True)
    tokens = torch.cat([tokens, token], dim=1)
"""


@pytest.mark.torch
@pytest.mark.timed
def test_a_recorded_program_that_decodes_without_a_cache(rule: Rule, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "generating.py"
    file.write_text(PROGRAM, encoding="utf-8")
    step = runpy.run_path(str(file))["step"]
    schedule = selftime.schedule(wait=0, warmup=1, active=6, repeat=1)
    with selftime.profile(schedule=schedule, record_shapes=True, with_stack=True) as prof:
        for _ in range(7):
            step()
            prof.step()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = selftime.load(tmp_path / "trace.json")
    assert isinstance(trace, Trace)
    [finding] = [o for o in rule(trace) if isinstance(o, Finding)]
    assert finding.where.file == str(file)
    assert finding.saving.speedup is not None
    assert finding.saving.speedup > 2
