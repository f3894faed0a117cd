"""Edges of `restarted_workers`, and a program that it is about."""

import runpy
from importlib import import_module
from pathlib import Path

import pytest

import selftime
from selftime.advice.base import Checked, Finding, Rule, Unknown
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


def test_a_start_is_saved_whole_and_the_first_batch_in_part(judge: Judge[Finding]) -> None:
    [finding] = judge(EPOCHS)
    assert finding.where.line == 9
    assert finding.count_per_step == pytest.approx(1)
    assert finding.saving.estimate_ms == pytest.approx(4 + 5 / 2, rel=0.01)
    assert finding.saving.upper_ms == pytest.approx(9, rel=0.01)


def test_the_second_batch_tells_how_long_the_first_takes(judge: Judge[Finding]) -> None:
    """One worker has it after 1 ms more: no more than that of the first 5 ms is the batch."""
    one, two = "    ddddd       ", "    dddddb      "
    drawing = EPOCHS.replace(one, two).replace("    ddddd\n", "    dddddb\n")
    told = "b = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    [finding] = judge(f"{drawing}\n    {told}")
    assert finding.saving.estimate_ms == pytest.approx(4 + 4, rel=0.01)


def test_the_wait_for_new_workers_is_not_that_of_slow_ones() -> None:
    rules = import_module("selftime.advice.rules").RULES
    for name in ("slow_input", "late_first_batch", "bursty_input"):
        assert not any(isinstance(said, Finding) for said in rules[name](sketch(EPOCHS))), name


def test_without_frames_nobody_knows(rule: Rule) -> None:
    drawing = "\n".join(line for line in EPOCHS.splitlines() if "python" not in line)
    [outcome] = rule(sketch(drawing.replace("; line = train.py:9 main", "")))
    assert isinstance(outcome, Unknown)
    assert "stacks" in outcome.needs


def test_a_single_start_tells_no_rate(rule: Rule) -> None:
    [outcome] = rule(sketch(rule.drawings("Silent on")[1]))
    assert isinstance(outcome, Checked)
    assert "two epochs" in outcome.reason


@pytest.mark.torch
@pytest.mark.timed
def test_a_program_of_short_epochs(rule: Rule, tmp_path: Path) -> None:
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
