"""Tests the rule `host_between_tokens` on edge cases that its documentation page omits."""

import runpy
from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.testing import Judge, sketch
from selftime.trace import Trace

DRAWING = """
    column = {column} us
    mark 1   | ssssssssssttttttttttuuuuuuuuuu
    python 1 | gggggggggggggggggggggggggggggg
    python 1 |      ddddd     ddddd     ddddd
    python 1 |       eee       eee       eee
    cpu 1    | afafh     afafh     afafh
    g = serve.py(3): generate
    d = {function}
    e = {inner}
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::linear; input_shapes = [[1,1,64],[64,64],[64]]
    h = aten::linear; input_shapes = [[1,1,64],[1000,64]]
    f = aten::scaled_dot_product_attention
"""
TEXT = "serve.py(30): detokenize"


def drawing(
    function: str = TEXT, inner_function: str = "re.py(9): sub", column_us: int = 200
) -> str:
    return DRAWING.format(function=function, inner=inner_function, column=column_us)


def test_the_outermost_function_is_named_once(judge: Judge[Finding]) -> None:
    """The function takes 1 ms for each token, of which the estimate saves 0.8 ms."""
    [finding] = judge(drawing(inner_function="serve.py(40): merge"))
    assert finding.count_per_step == 1
    assert "detokenize" in finding.title
    assert finding.saving.estimate_ms == pytest.approx(0.8)
    assert finding.saving.upper_ms == pytest.approx(1.0)


def test_short_functions_are_not_reported(rule: Rule) -> None:
    [outcome] = rule(sketch(drawing(column_us=10)))
    assert isinstance(outcome, Checked)


@pytest.mark.parametrize(
    "function",
    ["torch/nn/functional.py(9): pad", "<built-in function print>", "threading.py(9): wait"],
)
def test_functions_of_pytorch_and_logging_are_not_reported(
    function: str, judge: Judge[Finding]
) -> None:
    assert not judge(drawing(function, function))


PROGRAM = """
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
embed, head = nn.Embedding(1000, 64), nn.Linear(64, 1000)
layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))
token, words = torch.zeros(1, 1, dtype=torch.long), []

def to_text(ids):
    return " ".join("w" + str(i * j % 97) for i in ids for j in range(2000))

@torch.inference_mode()
def step():
    global token
    x = embed(token)
    for layer in layers:
        x = x + F.softmax(layer(x), dim=-1)
    token = head(x).argmax(-1)
    words.append(int(token))
    to_text(words[-4:])
"""


@pytest.mark.torch
@pytest.mark.timed
def test_a_recorded_program_that_decodes_text_for_each_token(rule: Rule, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "serving.py"
    file.write_text(PROGRAM, encoding="utf-8")
    step = runpy.run_path(str(file))["step"]
    schedule = selftime.schedule(wait=4, warmup=1, active=6, repeat=1)
    with selftime.profile(schedule=schedule, record_shapes=True, with_stack=True) as prof:
        for _ in range(11):
            step()
            prof.step()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = selftime.load(tmp_path / "trace.json")
    assert isinstance(trace, Trace)
    [finding] = [o for o in rule(trace) if isinstance(o, Finding)]
    assert finding.where.file == str(file)
    assert "to_text" in finding.title
