"""Tests the rule `frequent_logging` on edge cases that its documentation page omits."""

import runpy
from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge
from selftime.trace import Trace

DRAWING = """
    column = 100 us
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1   | {loading}
    python 1 | ffffffffffffffffffffffffffffffffffff
    python 1 |         ppp         ppp         ppp
    python 1 |          q           q           q
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    f = train.py(3): main
    p = {frame}
    q = {frame}
"""


def test_a_frame_within_another_is_not_counted_twice(judge: Judge[Finding]) -> None:
    [finding] = judge(DRAWING.format(frame="logging/__init__.py(1500): info", loading=""))
    assert finding.count_per_step == pytest.approx(1)
    assert finding.saving.upper_ms == pytest.approx(0.3)
    assert (finding.where.file, finding.where.function) == ("train.py", "main")
    assert finding.covers == ("D5",)


def test_one_call_that_writes_tensors_logs_once(judge: Judge[Finding]) -> None:
    """Counts a `print` of two tensors as one call, though each tensor is formatted on its own."""
    drawing = """
        column = 100 us
        mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuu
        python 1 | ffffffffffffffffffffffffffffffffffff
        python 1 |       pppppp      pppppp      pppppp
        python 1 |       rr rr       rr rr       rr rr
        python 1 |       q  q        q  q        q  q
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        f = train.py(3): main
        p = <built-in function print>
        r = torch/_tensor.py(500): __repr__
        q = torch/_tensor_str.py(700): _str
    """
    [finding] = judge(drawing)
    assert finding.count_per_step == pytest.approx(1)
    assert finding.covers == ("B3",)


def test_formatting_tensors_is_reported_as_catalogue_entry_b3(judge: Judge[Finding]) -> None:
    [finding] = judge(DRAWING.format(frame="torch/_tensor_str.py(700): _str", loading=""))
    assert finding.covers == ("B3",)


def test_a_logging_frame_that_calls_the_network_is_not_reported(judge: Judge[Finding]) -> None:
    drawing = DRAWING.format(frame="wandb/sdk/wrap.py(20): call", loading="")
    assert judge(drawing)
    work = "    cpu 1    |          m           m           m\n    m = aten::mm\n"
    assert not judge(drawing + work)


def test_a_progress_bar_around_the_loader_is_not_reported(judge: Judge[Finding]) -> None:
    loading = "         d           d           d"
    assert not judge(DRAWING.format(frame="tqdm/std.py(1160): __iter__", loading=loading))


def test_threads_of_libraries_and_their_locks_do_not_log(judge: Judge[Finding]) -> None:
    logging = DRAWING.format(frame="wandb/sdk/wrap.py(20): call", loading="")
    assert judge(logging)
    assert not judge(logging.replace("python 1", "python 0"))
    assert not judge(DRAWING.format(frame="tqdm/_monitor.py(69): run", loading=""))
    assert not judge(DRAWING.format(frame="tqdm/std.py(108): __enter__", loading=""))


PROGRAM = """
import io
import torch

rows = torch.randn(64, 64)
out = io.StringIO()

def step():
    print(rows, file=out)
"""


@pytest.mark.torch
@pytest.mark.timed
def test_a_program_that_prints_a_tensor(rule: Rule, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "printing.py"
    file.write_text(PROGRAM, encoding="utf-8")
    step = runpy.run_path(str(file))["step"]
    schedule = selftime.schedule(wait=0, warmup=1, active=3, repeat=1)
    with selftime.profile(schedule=schedule, with_stack=True) as prof:
        for _ in range(4):
            step()
            prof.step()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = selftime.load(tmp_path / "trace.json")
    assert isinstance(trace, Trace)
    [finding] = [o for o in rule(trace) if isinstance(o, Finding)]
    assert finding.where.function == "step"
    assert finding.saving.speedup is not None
    assert finding.saving.speedup > 3
