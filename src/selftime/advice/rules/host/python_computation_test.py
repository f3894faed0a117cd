"""Tests the rule `python_computation` on edge cases that its documentation page omits."""

import textwrap
from pathlib import Path

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
from selftime.testing import Judge, sketch

DRAWING = """
    column = 100 us
    mark 1   | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    python 1 | ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff
    python 1 | {frames}
    python 1 | {inner}
    cpu 1    | {operators}
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    f = train.py(3): main
    a = {function}
    r = {called}
    m = aten::mm
"""


def drawing(
    frames: str,
    inner: str = "",
    operators: str = "            mmmmmmmm",
    function: str = "train.py(20): augment",
    called: str = "<built-in method random of Random object at 0x7f00>",
) -> str:
    parts = {"frames": frames, "inner": inner, "operators": operators}
    rows = {key: 3 * text.ljust(20) for key, text in parts.items()}
    return DRAWING.format(**rows, function=function, called=called)


def test_function_of_user_without_operators_is_reported(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("aaaaaaaaaaa"))
    assert finding.where.function == "augment"
    assert finding.count_per_step == 1
    assert finding.evidence[0].value == pytest.approx(1.1)
    assert finding.saving.low_ms == 0
    assert finding.saving.upper_ms == pytest.approx(1.1)
    assert finding.confidence != "high"


def test_calls_in_rounds_leave_less_of_the_time(judge: Judge[Finding]) -> None:
    [loop] = judge(drawing("aaaaaaaaaaaaaaaaaa", " r r r r r r r r r", " " * 18 + "mm"))
    [other] = judge(drawing("aaaaaaaaaaaaaaaaaa", " r r r", " " * 18 + "mm"))
    assert loop.saving.estimate_ms == pytest.approx(0.8 * 1.8)
    assert other.saving.estimate_ms == pytest.approx(0.5 * 1.8)
    assert (loop.confidence, other.confidence) == ("medium", "low")


@pytest.mark.parametrize(
    "function",
    [
        "torch/nn/utils/clip_grad.py(30): clip_grad_norm_",
        "torch/utils/data/dataloader.py(700): __next__",
        "nn.Module: Net_0",
    ],
)
def test_functions_of_torch_are_not_reported(judge: Judge[Finding], function: str) -> None:
    assert not judge(drawing("aaaaaaaaaaa", function=function))


@pytest.mark.parametrize(
    "called",
    [
        "<built-in function sleep>",
        "<built-in method wait of pybind11_builtins.pybind11_detail_function_record_v1 object>",
        "<built-in method item of Tensor object>",
        "logging/__init__.py(1477): info",
        "<built-in function print>",
    ],
)
def test_waits_calls_of_torch_and_logging_are_not_reported(
    judge: Judge[Finding], called: str
) -> None:
    assert not judge(drawing("aaaaaaaaaaa", " rrrrrrrrrr", called=called))


def test_time_of_a_library_counts_for_the_function_that_calls_it(judge: Judge[Finding]) -> None:
    called = "numpy/lib/function_base.py(5): histogram"
    [finding] = judge(drawing("aaaaaaaaaaa", " rrrrrrrrr ", called=called))
    assert finding.where.function == "augment"
    assert finding.evidence[0].value == pytest.approx(1.1)


CODE_WITH_METRIC = """\
def augment(y, p):
    y = y[:]
    score = roc_auc_score(y, p)
    return score
"""


def test_a_function_of_a_library_is_named_with_the_line_that_calls_it(
    judge: Judge[Finding], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text(CODE_WITH_METRIC)
    monkeypatch.chdir(tmp_path)
    called = "sklearn/metrics/_ranking.py(499): roc_auc_score"
    drawn = drawing("aaaaaaaaaaa", " rrrrrrrrr ", function="train.py(1): augment", called=called)
    [finding] = judge(drawn)
    assert (finding.where.line, finding.where.how) == (3, "static")
    assert finding.title.endswith(", most of it in `sklearn.metrics.roc_auc_score`")
    within = "in `sklearn.metrics.roc_auc_score`, called at `train.py:3 in augment`"
    [evidence] = [told for told in finding.evidence if told.metric == within]
    assert evidence.value == pytest.approx(0.9)
    assert finding.fix.text.startswith("Call it once for many steps")
    assert (finding.saving.low_ms, finding.confidence) == (0, "low")


def test_decorators_of_a_library_are_looked_through(judge: Judge[Finding]) -> None:
    drawn = drawing("aaaaaaaaaaa", " rrrrrrrrr ", called="sklearn/utils/_param.py(9): wrapper")
    lane = "python 1 | " + 3 * " kkkiiiiii ".ljust(20)
    legend = """k = sklearn/utils/_param.py(50): check
    i = sklearn/metrics/_ranking.py(499): roc_auc_score
    m = aten"""
    drawn = drawn.replace("cpu 1 ", f"{lane}\n    cpu 1 ").replace("m = aten", legend)
    [finding] = judge(drawn)
    assert finding.title.endswith(", most of it in `sklearn.metrics.roc_auc_score`")


def test_a_library_with_little_of_the_time_is_not_named(judge: Judge[Finding]) -> None:
    called = "sklearn/metrics/_ranking.py(499): roc_auc_score"
    [finding] = judge(drawing("aaaaaaaaaaa", " rrrrr     ", called=called))
    assert finding.title.endswith("outside of operators")


def test_a_loop_that_calls_a_library_is_to_be_replaced(judge: Judge[Finding]) -> None:
    called = "scipy/stats/_stats_py.py(5): zscore"
    rounds, frames = " r" * 9, "a" * 19
    [finding] = judge(drawing(frames, rounds, " " * 19 + "m", called=called))
    assert finding.fix.text.startswith("Replace the loop")


def test_drawing_is_to_be_done_seldom(judge: Judge[Finding]) -> None:
    called = "matplotlib/pyplot.py(5): draw"
    [finding] = judge(drawing("aaaaaaaaaaa", " rrrrrrrrr ", called=called))
    assert "many steps" in finding.fix.text


def test_short_stretches_between_operators_of_a_function_do_not_count(
    judge: Judge[Finding],
) -> None:
    assert not judge(drawing("aaaaaaaaaaaaaaaaaaa", operators="m m m m m m m m m m "))
    [finding] = judge(drawing("aaaaaaaaaaaaaaaaaaa", operators="m      mmmmmmmmmmmmm"))
    assert finding.evidence[0].value == pytest.approx(0.6)


def test_a_pause_in_one_step_is_no_finding(rule: Rule) -> None:
    always = drawing("", operators="mmmmmmmmmmmmmmmmmmmm")
    once = always.replace("m" * 60, " " * 12 + "m" * 48)
    assert not any(isinstance(outcome, Finding) for outcome in rule(sketch(once)))


def test_without_frames_long_times_between_operators_are_unknown(rule: Rule) -> None:
    def told(operators: str) -> object:
        lines = drawing("", operators=operators).splitlines()
        return rule(sketch("\n".join(line for line in lines if "python" not in line)))[0]

    assert isinstance(told(" " * 12 + "mmmmmmmm"), Unknown)
    assert isinstance(told("m" * 20), Checked)


SOURCE = """
import random


def augment(row):
    total = random.random()
    for value in row:
        scaled = value * total
        total += random.gauss(
            scaled, 1.0
        )
    return total
"""


def test_the_line_with_most_of_the_time_is_found_in_the_source(
    judge: Judge[Finding], tmp_path: Path
) -> None:
    (tmp_path / "prepare.py").write_text(textwrap.dedent(SOURCE))
    facts = f'    facts = {{"cwd": "{tmp_path}"}}\n'
    text = drawing(
        "aaaaaaaaaaaaaaaaaa",
        " r r r r r r r r r",
        " " * 18 + "mm",
        function="prepare.py(5): augment",
        called="random.py(5): gauss",
    )
    [finding] = judge(text.replace("    mark 1", facts + "    mark 1", 1))
    assert (finding.where.line, finding.where.how) == (9, "static")


def test_samples_of_the_stack_tell_the_loop_of_a_function(
    judge: Judge[Finding], tmp_path: Path
) -> None:
    (tmp_path / "prepare.py").write_text(textwrap.dedent(SOURCE))
    facts = f'    facts = {{"cwd": "{tmp_path}"}}\n'
    samples = """
    run | 20 training 10 ms
    run | {} samples at prepare.py:8 augment
"""
    text = drawing("aaaaaaaaaaa", " r", function="prepare.py(5): augment").replace(
        "    mark 1", facts + "    mark 1", 1
    )
    lines = [judge(text + samples.format(count))[0].where.line for count in (5, 20)]
    assert lines == [6, 7]


def without_frames(samples: int, others: int) -> str:
    """Draws steps of 2 ms with 0.8 ms in operators and no frames, in a run with samples."""
    lines = drawing("").splitlines()
    kept = [line for line in lines if "python" not in line]
    run = f"""
    run | 20 training 10 ms
    run | {samples} samples at train.py:12 augment
    run | {others} samples at train.py:30 main
"""
    return "\n".join(kept) + run


def test_samples_tell_the_line_where_there_are_no_frames(judge: Judge[Finding], rule: Rule) -> None:
    [finding] = judge(without_frames(380, 20))
    assert (finding.where.file, finding.where.line) == ("train.py", 12)
    told = {each.metric: each.value for each in finding.evidence}
    assert told["samples of steps without recording"] == 380
    # At least 92 % of the step are at the line by Wilson's interval, operators take 40 % at most.
    assert finding.saving.upper_ms == pytest.approx((0.924 - 0.4) * 2.0, rel=0.01)
    [outcome] = rule(sketch(without_frames(160, 160)))
    assert isinstance(outcome, Unknown)
