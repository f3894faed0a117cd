"""Tests the rule `slow_collate` on edge cases and on recorded programs."""

import runpy
from importlib import import_module
from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
from selftime.testing import Judge, sketch
from selftime.trace import Trace

PROGRAM = """
import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(4000, 200), torch.randn(4000))
model = torch.nn.Linear(200, 1)


def collate(samples):
    rows = []
    for x, _ in samples:
        rows.append([float(value) for value in x])
    return torch.tensor(rows), torch.tensor([float(y) for _, y in samples])


batches = iter(DataLoader(data, 32{how}))


def step():
    x, y = next(batches)
    torch.nn.functional.mse_loss(model(x).squeeze(1), y).backward()
"""


def test_the_finding_names_the_function_and_leaves_a_tenth_of_its_time(
    rule: Rule, judge: Judge[Finding]
) -> None:
    [finding] = judge(rule.drawings("Fires on")[0])
    assert finding.where.file == "train.py"
    assert finding.where.line == 20
    assert finding.where.function == "collate"
    assert finding.saving.estimate_ms == pytest.approx(0.9 * 6)
    assert finding.saving.upper_ms == pytest.approx(6)


def test_slow_input_does_not_advise_workers_for_slow_collation(rule: Rule) -> None:
    """Draws loading that is mostly collation, for which more workers are not advised."""
    slow_input = import_module("selftime.advice.rules").RULES["slow_input"]
    drawing = rule.drawings("Fires on")[0].replace("lcccccc ", "lccccccc")
    assert any(isinstance(said, Checked) for said in slow_input(sketch(drawing)))


def test_a_short_wait_of_a_short_step_counts(rule: Rule, judge: Judge[Finding]) -> None:
    """It is too short for workers, which take a millisecond to hand over a batch."""
    drawing = rule.drawings("Fires on")[0]
    short = drawing.replace("column = 1 ms", "column = 100 us")
    assert short != drawing
    [finding] = judge(short)
    assert finding.saving.estimate_ms == pytest.approx(0.54)
    [outcome] = import_module("selftime.advice.rules").RULES["slow_input"](sketch(short))
    assert isinstance(outcome, Checked)
    assert "less than a worker takes to hand over a batch" in outcome.reason


def test_collation_in_workers_is_not_reported_without_their_record(rule: Rule) -> None:
    drawing = rule.drawings("Fires on")[0].replace("_SingleProcess", "_MultiProcessing")
    [outcome] = rule(sketch(drawing))
    assert isinstance(outcome, Checked)


def test_without_python_frames_the_outcome_is_unknown(rule: Rule) -> None:
    lines = rule.drawings("Fires on")[0].splitlines()
    [outcome] = rule(sketch("\n".join(line for line in lines if "python" not in line)))
    assert isinstance(outcome, Unknown)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("collate_argument", "is_slow"), [(", collate_fn=collate", True), ("", False)]
)
@pytest.mark.timed
def test_recorded_programs_with_and_without_slow_collation(
    rule: Rule, tmp_path: Path, collate_argument: str, is_slow: bool
) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "joining.py"
    file.write_text(PROGRAM.format(how=collate_argument), encoding="utf-8")
    step = runpy.run_path(str(file))["step"]
    schedule = selftime.schedule(wait=0, warmup=1, active=4, repeat=1)
    with selftime.profile(schedule=schedule, with_stack=True) as prof:
        for _ in range(5):
            step()
            prof.step()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = selftime.load(tmp_path / "trace.json")
    assert isinstance(trace, Trace)
    said = rule(trace)
    findings = [outcome for outcome in said if isinstance(outcome, Finding)]
    assert bool(findings) is is_slow, said
    assert [finding.where.function for finding in findings] in ([], ["collate"])


def test_waiting_frames_of_other_threads_are_ignored(rule: Rule, judge: Judge[Finding]) -> None:
    drawing = rule.drawings("Fires on")[0]
    watched = f"""
        {drawing}
        python 2 | {"w" * 36}
        w = <built-in method acquire of _thread.lock object>
    """
    [finding] = judge(watched)
    assert finding.saving.estimate_ms == pytest.approx(0.9 * 6)


@pytest.mark.parametrize(("line", "places"), [(12, [12, 14]), (14, [14])])
def test_a_library_joins_samples_of_two_loaders(
    judge: Judge[Finding], line: int, places: list[int]
) -> None:
    found = judge(f"""
        column = 1 ms
        mark 1   | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
        mark 1   | ddddddddeeeeeeee    ddddddddeeeeeeee    ddddddddeeeeeeee
        python 1 | ffffffffgggggggg    ffffffffgggggggg    ffffffffgggggggg
        python 1 | lcccccc lcccccc     lcccccc lcccccc     lcccccc lcccccc
        cpu 1    |                 aaaa                aaaa                aaaa
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:{line} f
        e = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:14 f
        f = torch/utils/data/_utils/fetch.py(47): fetch
        g = torch/utils/data/_utils/fetch.py(47): fetch
        l = torch/utils/data/_utils/fetch.py(54): <listcomp>
        c = torch/utils/data/_utils/collate.py(336): default_collate
    """)
    assert sorted(finding.where.line or 0 for finding in found) == places
    assert all("for 75 %" in finding.title for finding in found)
    assert sum(finding.saving.estimate_ms or 0 for finding in found) == pytest.approx(0.9 * 12)
