"""Tests the rule `single_tensor_optimizer` on edge cases that its documentation page omits."""

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import selftime
from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.testing import Judge, sketch
from selftime.trace import Trace

DRAWING = """
    column = 20 us
    mark 1 | {s}{t}
    mark 1 | {o}{p}
    cpu 1  | {m}{m}
    s = ProfilerStep#1
    t = ProfilerStep#2
    o = Optimizer.step#{optimizer}.step; line = train.py:48 train
    p = Optimizer.step#{optimizer}.step; line = train.py:48 train
    m = aten::mul_
    a = {operator}
    c = aten::_coalesce
    {more}
"""


def drawing(
    parameters: int,
    *,
    optimizer: str = "SGD",
    operator: str = "aten::add_",
    before: str = "",
    more: str = "",
) -> str:
    """Draws two steps, each with an optimizer that runs two operators per parameter."""
    width = len(before) + 2 * parameters + 4
    return DRAWING.format(
        s="s" * width,
        t="t" * width,
        o="o" * width,
        p="p" * width,
        m=(before + "ma" * parameters).ljust(width),
        optimizer=optimizer,
        operator=operator,
        more=more,
    )


def test_a_few_parameters_are_left_alone(judge: Judge[Finding]) -> None:
    assert not judge(drawing(7))
    assert judge(drawing(8))


def test_clipping_within_the_step_is_no_update_of_all_parameters(judge: Judge[Finding]) -> None:
    """Frameworks clip gradients in the closure that the optimizer calls."""
    clips = "n = aten::_foreach_norm\n    x = aten::_foreach_mul_"
    assert judge(drawing(8, before="nx", more=clips))
    assert not judge(drawing(8, before="nx", more=clips.replace("_foreach_norm", "_foreach_add_")))


def test_optimizers_that_one_line_steps_count_together(judge: Judge[Finding]) -> None:
    """Of those with few parameters, what each call costs beside its loop stays."""
    marks = ("o" * 43 + " ", "oooooooooo " * 4)
    alone, each = (
        f"""
    column = 20 us
    mark 1 | {"s" * 44}{"t" * 44}
    mark 1 | {mark}{mark}
    cpu 1  | {"mamamamama " * 8}
    s = ProfilerStep#1
    t = ProfilerStep#2
    o = Optimizer.step#SGD.step; line = train.py:48 train
    m = aten::mul_
    a = aten::add_
    """
        for mark in marks
    )
    [one], [four] = judge(alone), judge(each)
    for found in (one, four):
        assert {told.metric: told.value for told in found.evidence}["loop iterations"] == 20
    assert (four.saving.estimate_ms or 0) < (one.saving.estimate_ms or 0)
    assert not judge(each.replace("mamamamama", "ma        "))


def test_an_operator_of_many_counts_the_parameters(judge: Judge[Finding]) -> None:
    """Of Adam's 26 operators for each parameter most run twice or more, and few once."""
    names = "aten::to", "aten::copy_", "aten::empty_strided", "aten::lerp_", "aten::addcmul_"
    body = "a" + "bdefg" * 5
    legend = "\n".join(
        f"    {letter} = {name}" for letter, name in zip("bdefg", names, strict=True)
    )
    width = 8 * len(body) + 4
    marks = {mark: mark * width for mark in "stop"}
    text = DRAWING.format(
        **marks, m=(body * 8).ljust(width), optimizer="Adam", operator="aten::addcdiv_", more=legend
    )
    [finding] = judge(text)
    assert {told.metric: told.value for told in finding.evidence}["loop iterations"] == 8


def test_the_fix_is_one_that_the_optimizer_has(judge: Judge[Finding]) -> None:
    [fused] = judge(drawing(20, optimizer="AdamW"))
    [looped] = judge(drawing(20, optimizer="RMSprop"))
    assert fused.fix.code == "torch.optim.AdamW(..., fused=True)"
    assert looped.fix.code == "torch.optim.RMSprop(..., foreach=True)"
    assert fused.where.line == 48


def test_on_a_cpu_the_foreach_form_saves_only_what_is_between_operators(
    judge: Judge[Finding],
) -> None:
    """It runs the same operators: of each step of 0.88 ms here, 0.08 ms are without one."""
    [looped] = judge(drawing(20, optimizer="RMSprop"))
    assert 0 < (looped.saving.estimate_ms or 0) <= 0.08
    assert (looped.saving.high_ms or 0) <= 0.08


def test_no_more_is_saved_than_the_optimizer_takes_in_the_steps_of_the_run(
    judge: Judge[Finding],
) -> None:
    [alone] = judge(drawing(20))
    run = "run | before 1 s\n    run | 20 training 1 ms: optimizer {} us"
    [slow] = judge(drawing(20, more=run.format(700)))
    assert slow.saving == alone.saving
    [usual] = judge(drawing(20, more=run.format(100)))
    assert usual.saving.upper_ms == pytest.approx(0.1)
    assert usual.saving.speedup is not None
    assert usual.saving.speedup < (alone.saving.speedup or 0)


def test_foreach_operators_are_no_loop(judge: Judge[Finding]) -> None:
    assert not judge(drawing(20, operator="aten::_foreach_add_"))


def test_parameters_with_sparse_gradients_stay_out_of_it(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing(20, optimizer="Adagrad", before="ccccc"))
    assert finding.fix.code is not None
    assert '{"params": dense, "fused": True}' in finding.fix.code
    assert '{"params": sparse}' in finding.fix.code
    assert "Adagrad(..., fused" not in finding.fix.code
    assert finding.confidence == "medium"
    [dense] = judge(drawing(20, optimizer="Adagrad"))
    assert dense.fix.code == "torch.optim.Adagrad(..., fused=True)"
    assert finding.saving.upper_ms == pytest.approx(dense.saving.upper_ms)


def test_operators_on_sparse_gradients_are_no_rounds_of_the_loop(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing(20, before="c c c "))
    told = {evidence.metric: evidence.value for evidence in finding.evidence}
    assert told["loop iterations"] == 20
    assert told["operators on sparse gradients"] == 3


def test_of_two_optimizers_of_one_class_each_has_its_own_gradients(judge: Judge[Finding]) -> None:
    both = (
        drawing(20)
        .replace("{", "")
        .replace(
            "p = Optimizer.step#SGD.step; line = train.py:48 train",
            "p = Optimizer.step#SGD.step; line = train.py:49 train",
        )
    )
    width = 44
    both = both.replace(("ma" * 20).ljust(width) * 2, ("ma" * 20).ljust(width) + "c" + "ma" * 20)
    assert {f.where.line: '"params"' in (f.fix.code or "") for f in judge(both)} == {
        48: False,
        49: True,
    }


def test_complex_parameters_have_no_fused_form(judge: Judge[Finding]) -> None:
    complex_ = 'a = aten::add_; input_types = ["c10::complex<float>", "c10::complex<float>"]'
    [finding] = judge(drawing(20, optimizer="Adam", more=complex_))
    assert finding.fix.code == "torch.optim.Adam(..., foreach=True)"


@pytest.mark.parametrize(
    ("version", "form"), [("2.13.0+cpu", "fused"), ("2.3.1", "foreach"), ("nightly", "fused")]
)
def test_the_form_is_one_that_this_pytorch_has(
    judge: Judge[Finding], version: str, form: str
) -> None:
    [finding] = judge(drawing(20, more=f'facts = {{"torch": "{version}"}}'))
    assert finding.fix.code == f"torch.optim.SGD(..., {form}=True)"
    assert ("from version 2.4 on" in finding.fix.text) == (version == "nightly")


@pytest.mark.parametrize("optimizer", ["LBFGS", "Muon", "SparseAdam"])
def test_optimizers_without_another_form_are_left_alone(rule: Rule, optimizer: str) -> None:
    [outcome] = rule(sketch(drawing(20, optimizer=optimizer)))
    assert isinstance(outcome, Checked)
    assert outcome.reason.endswith(f"PyTorch's {optimizer} can do no other")


def test_of_another_librarys_optimizer_the_condition_is_told(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing(20, optimizer="Lion"))
    assert finding.fix.code == "Lion(..., foreach=True)"
    assert "if its constructor takes" in finding.fix.text
    assert finding.confidence == "low"


def test_a_step_that_is_differentiated_through_stays_a_loop(rule: Rule) -> None:
    [outcome] = rule(sketch(drawing(20, more="m = aten::mul_; sequence = 7")))
    assert isinstance(outcome, Checked)
    assert "differentiable=True" in outcome.reason


PROGRAM = """
import torch

def parameters(is_complex=False, is_sparse=False):
    torch.manual_seed(0)
    dtype = torch.complex64 if is_complex else torch.float32
    dense = [torch.nn.Parameter(torch.randn(8, dtype=dtype)) for _ in range(60)]
    sparse = [torch.nn.Parameter(torch.randn(50, 4))] if is_sparse else []
    return dense, sparse

def step(optimizer, dense, sparse):
    for parameter in dense:
        parameter.grad = parameter.detach()
    for table in sparse:
        table.grad = None
        rows = torch.nn.functional.embedding(torch.tensor([1, 2, 2]), table, sparse=True)
        rows.pow(2).sum().backward()
    optimizer.step()
"""


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Runs a test with one PyTorch thread, as threads on a busy machine wait for each other."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.sweep(2)
@pytest.mark.torch
@pytest.mark.usefixtures("one_thread")
@pytest.mark.filterwarnings(
    "ignore:Sparse invariant checks:UserWarning"
)  # of PyTorch's own Adagrad
@pytest.mark.parametrize(
    ("optimizer", "options", "kinds"),
    [
        ("SGD", {"momentum": 0.9}, {}),
        ("SGD", {}, {"is_sparse": True}),
        ("SGD", {"momentum": 0.9}, {"is_sparse": True}),
        ("Adagrad", {}, {"is_sparse": True}),
        ("AdamW", {}, {"is_complex": True}),
        ("RMSprop", {}, {}),
    ],
)
def test_the_fix_runs_in_the_program_that_was_recorded(
    rule: Rule, tmp_path: Path, optimizer: str, options: dict[str, Any], kinds: dict[str, bool]
) -> None:
    """The recorded program and the program with the advised fix compute the same parameters."""
    torch = pytest.importorskip("torch")
    file = tmp_path / "train.py"
    file.write_text(PROGRAM, encoding="utf-8")
    program = runpy.run_path(str(file))
    step, made = program["step"], program["parameters"]
    dense, sparse = made(**kinds)
    looped = getattr(torch.optim, optimizer)([*dense, *sparse], lr=0.01, **options)
    with selftime.profile(
        schedule=selftime.schedule(wait=0, warmup=2, active=4, repeat=1), record_shapes=True
    ) as prof:
        for _ in range(6):
            step(looped, dense, sparse)
            prof.step()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = selftime.load(tmp_path / "trace.json")
    assert isinstance(trace, Trace)
    [finding] = [o for o in rule(trace) if isinstance(o, Finding)]
    assert finding.fix.code is not None
    again = {"torch": torch, **dict(zip(("dense", "sparse"), made(**kinds), strict=True))}
    given = "" if sparse else "dense, "
    more = ", ".join(f"{name}={value}" for name, value in {"lr": 0.01, **options}.items())
    fixed = eval(finding.fix.code.replace("...", given + more), again)  # noqa: S307 - our own fix
    for _ in range(6):
        step(fixed, again["dense"], again["sparse"])
    for old, new in zip([*dense, *sparse], [*again["dense"], *again["sparse"]], strict=True):
        torch.testing.assert_close(old, new)


def test_what_a_framework_records_behind_the_closure_is_no_update(judge: Judge[Finding]) -> None:
    more = (
        "f = aten::linear; sequence = 7\n"
        "    g = autograd::engine::evaluate_function: AddmmBackward0\n"
        "    d = aten::detach; sequence = 8"
    )
    [finding] = judge(drawing(20, optimizer="Adam", before="ffggd", more=more))
    assert finding.fix.code == "torch.optim.Adam(..., fused=True)"
    told = {evidence.metric: evidence.value for evidence in finding.evidence}
    assert told["operators a step"] == 41
    assert told["exposed optimizer step time"] == pytest.approx(20e-3 * 45)
