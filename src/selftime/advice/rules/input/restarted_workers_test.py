"""Tests the rule `restarted_workers` on edge cases and on a recorded program."""

import runpy
from importlib import import_module
from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
from selftime.testing import Judge, sketch
from selftime.trace import Trace

EPOCHS = """
    column = 1 ms
    mark 1   | ssssssssssssssssttttttttttttttttuuuuuuuuuuuuuuuu
    mark 1   |     ddddd           ddddd           ddddd
    python 1 | iiiiwwwww       iiiiwwwww       iiiiwwwww
    python 1 | ppp             ppp             ppp
    cpu 1    |          aaaaaa          aaaaaa          aaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__; line = train.py:9 main
    i = torch/utils/data/dataloader.py(433): _get_iterator
    p = multiprocessing/process.py(110): start
    w = <built-in method poll of select.poll object>
"""

PROGRAM = """
import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(32, 8), torch.randn(32, 1))
model = torch.nn.Linear(8, 1)
loader = DataLoader(data, 8, num_workers=1, multiprocessing_context="fork")


def step():
    for x, y in loader:
        torch.nn.functional.mse_loss(model(x), y).backward()
"""


def test_the_start_of_workers_is_saved_and_half_of_the_first_wait(judge: Judge[Finding]) -> None:
    [finding] = judge(EPOCHS)
    assert finding.where.line == 9
    assert finding.count_per_step == pytest.approx(1)
    assert finding.saving.estimate_ms == pytest.approx(4 + 5 / 2, rel=0.01)
    assert finding.saving.upper_ms == pytest.approx(9, rel=0.01)


def test_the_second_batch_bounds_the_time_of_the_first(judge: Judge[Finding]) -> None:
    """The worker makes the second batch in 1 ms, so it takes at most 1 of 5 ms for the first."""
    one, two = "    ddddd       ", "    dddddb      "
    drawing = EPOCHS.replace(one, two).replace("    ddddd\n", "    dddddb\n")
    told = "b = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    [finding] = judge(f"{drawing}\n    {told}")
    assert finding.saving.estimate_ms == pytest.approx(4 + 4, rel=0.01)


def test_other_input_rules_do_not_report_restarted_workers() -> None:
    rules = import_module("selftime.advice.rules").RULES
    for name in ("slow_input", "late_first_batch", "bursty_input"):
        assert not any(isinstance(said, Finding) for said in rules[name](sketch(EPOCHS))), name


def test_without_python_frames_the_outcome_is_unknown(rule: Rule) -> None:
    drawing = "\n".join(line for line in EPOCHS.splitlines() if "python" not in line)
    [outcome] = rule(sketch(drawing.replace("; line = train.py:9 main", "")))
    assert isinstance(outcome, Unknown)
    assert "stacks" in outcome.needs


def test_a_single_start_of_workers_is_not_reported(rule: Rule) -> None:
    [outcome] = rule(sketch(rule.drawings("Silent on")[1]))
    assert isinstance(outcome, Checked)
    assert "two epochs" in outcome.reason


@pytest.mark.torch
@pytest.mark.timed
def test_a_recorded_program_of_short_epochs(rule: Rule, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "epochs.py"
    file.write_text(PROGRAM, encoding="utf-8")
    step = runpy.run_path(str(file))["step"]
    schedule = selftime.schedule(wait=0, warmup=1, active=4, repeat=1)
    with selftime.profile(schedule=schedule, with_stack=True) as prof:
        for _ in range(5):
            step()
            prof.step()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = selftime.load(tmp_path / "trace.json")
    assert isinstance(trace, Trace)
    [finding] = [outcome for outcome in rule(trace) if isinstance(outcome, Finding)]
    assert finding.where.function == "step"
    assert finding.where.line == 11
    assert finding.saving.speedup is not None
    assert finding.saving.speedup > 1.5
