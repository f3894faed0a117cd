"""Tests the rule `intercepted_calls` on edge cases that its documentation page omits."""

import runpy
from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge
from selftime.trace import Trace

DRAWING = """
    column = 10 us
    mark 1   | sssssssssssssssssssstttttttttttttttttttt
    python 1 | cccccccccccccccccccccccccccccccccccccccc
    python 1 | {frames}
    cpu 1    | {operators}
    s = ProfilerStep#1
    t = ProfilerStep#2
    c = torch/nn/modules/module.py(1780): _call_impl
    h = {hook}
    m = aten::mm
    r = aten::relu
    a = aten::abs
"""


def drawing(frames: str, operators: str, hook: str = "debug.py(20): record") -> str:
    return DRAWING.format(frames=2 * frames.ljust(20), operators=2 * operators.ljust(20), hook=hook)


def test_a_hook_with_four_calls_a_step_is_reported(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("hh hh hh hh", "aa aa aa aa"))
    assert finding.count_per_step == 4
    assert finding.saving.upper_ms == pytest.approx(0.08)
    assert (finding.where.file, finding.where.line) == ("debug.py", 20)
    assert not judge(drawing("hh hh hh", ""))


def test_a_function_that_runs_layers_is_no_hook(judge: Judge[Finding]) -> None:
    assert not judge(drawing("hh hh hh hh", "mm mm mm mm"))


def test_functions_of_libraries_are_not_reported_as_hooks(judge: Judge[Finding]) -> None:
    fsdp = "torch/distributed/fsdp/_fully_shard/_fsdp_state.py(200): _pre_forward"
    assert not judge(drawing("hh hh hh hh", "", fsdp))


def test_time_in_operators_does_not_count_as_time_of_a_mode(judge: Judge[Finding]) -> None:
    mode = "debug.py(20): __torch_function__"
    [finding] = judge(drawing("hhh hhh hhh hhh", " a   a   a   a", mode))
    assert finding.evidence[0].value == pytest.approx(0.08)


CLASS = """\
class Tagged(torch.Tensor):
    tag = None

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs)
"""


@pytest.mark.parametrize(
    ("source", "title", "cure"),
    [
        (
            CLASS,
            "The tensor subclass `Tagged` runs Python around 4 operators a step",
            "Run operators that need nothing of `Tagged` on a plain tensor.",
        ),
        (
            CLASS.replace("torch.Tensor", "TorchFunctionMode"),
            "`__torch_function__`, a handler of every operator, runs 4 times a step",
            "Remove it, or register it only for the steps that need it.",
        ),
    ],
)
def test_a_subclass_of_tensors_is_named(
    judge: Judge[Finding],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    title: str,
    cure: str,
) -> None:
    (tmp_path / "debug.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    handler = "debug.py(4): __torch_function__"
    [finding] = judge(drawing("hhh hhh hhh hhh", " a   a   a   a", handler))
    assert (finding.title, finding.fix.text) == (title, cure)


def test_hooks_during_graph_capture_are_not_reported(judge: Judge[Finding]) -> None:
    drawn = drawing("hh hh hh hh", "")
    assert judge(drawn)
    capture = "    call 1   | c                   c\n    c = cudaStreamBeginCapture\n"
    assert not judge(
        drawn.replace("    c = torch", "    z = torch").replace("ccc", "zzz") + capture
    )


PROGRAM = """
import torch
from torch.overrides import TorchFunctionMode

class Watch(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))

layers = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(10)))
hooked = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(10)))
seen = {}

def record(module, inputs, output):
    seen[module] = [float(x) for x in output.detach().abs().mean(0).tolist()]

for layer in hooked:
    layer.register_forward_hook(record)
rows = torch.randn(16, 8)

def watched():
    with Watch():
        layers(rows).sum().backward()

def collected():
    hooked(rows).sum().backward()

def plain():
    layers(rows).sum().backward()
"""


@pytest.mark.torch
@pytest.mark.timed
def test_recorded_programs_with_and_without_hooks(rule: Rule, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "watching.py"
    file.write_text(PROGRAM, encoding="utf-8")
    program = runpy.run_path(str(file))
    found = {}
    for name in ("watched", "collected", "plain"):
        schedule = selftime.schedule(wait=0, warmup=1, active=4, repeat=1)
        with selftime.profile(schedule=schedule, with_stack=True) as prof:
            for _ in range(5):
                program[name]()
                prof.step()
        prof.export_chrome_trace(str(tmp_path / f"{name}.json"))
        trace = selftime.load(tmp_path / f"{name}.json")
        assert isinstance(trace, Trace)
        found[name] = [o for o in rule(trace) if isinstance(o, Finding)]
    [mode] = found["watched"]
    [hook] = found["collected"]
    assert (mode.where.function, mode.where.line) == ("__torch_function__", 6)
    assert (hook.where.function, hook.where.line) == ("record", 13)
    assert hook.count_per_step == pytest.approx(10)
    assert not found["plain"]
