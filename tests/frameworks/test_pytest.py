"""The pytest plugin, by real test files that a pytest of their own runs."""

import subprocess
import sys
from importlib.metadata import entry_points
from typing import Final

import pytest

pytest_plugins = ("pytester",)
pytest.importorskip("torch")
pytestmark = pytest.mark.torch

INSTALLED: Final = any(e.name == "selftime" for e in entry_points(group="pytest11"))
PLUGINS: Final = [] if INSTALLED else ["-p", "selftime.frameworks.pytest"]
"""An install from before the plugin knows nothing of it."""

SYNCS: Final = """
import torch
from torch import nn

def masked(pred, mask):
    return pred[mask].mean()

def test_waits(assert_no_sync):
    net = nn.Linear(16, 16).cuda()
    data = torch.randn(4, 16, device="cuda")
    mask = torch.rand(4, device="cuda") > 0.5
    with assert_no_sync():
        loss = masked(net(data), mask)
        if loss > 3:
            loss = loss * 2

def test_no_waits(assert_no_sync):
    net = nn.Linear(4, 4).cuda()
    data = torch.ones(2, 4, device="cuda")
    assert net(data).sum().item() is not None  # before the block
    with assert_no_sync():
        net(data).sum().backward()
    assert net.weight.grad.sum().item() is not None  # after it
    with assert_no_sync():
        net(data).sum()

def test_nothing_to_judge(assert_no_sync):
    with assert_no_sync():
        torch.ones(3).sum().item()

def test_its_own_error(assert_no_sync):
    with assert_no_sync():
        raise KeyError("mine")

def test_without_the_fixture_there_is_no_device():
    assert not torch.cuda.is_available()
"""

BUDGETS: Final = """
import time
import torch

def step():
    a = torch.randn(64, 64)
    for _ in range(10):
        a = a @ a + 1
    return a.sum()

# 107 operators: randn makes empty and normal_, @ is matmul and mm, + is add, sum is sum and more.
def test_too_many_operators(assert_step_budget):
    assert_step_budget(step, operators=20)

def test_enough(assert_step_budget):
    assert_step_budget(step, operators=200, allocations=200, peak_bytes=1 << 20, host_ms=10_000)

def test_too_much_memory(assert_step_budget):
    assert_step_budget(step, peak_bytes=32 * 1024)

def slow():
    time.sleep(0.01)
    torch.ones(1)

def test_too_slow(assert_step_budget):
    assert_step_budget(slow, host_ms=5)

def test_a_loop(assert_step_budget):
    with assert_step_budget(allocations=5) as budget:
        for _ in range(10):
            step()
            budget.step()

def test_too_short_a_loop(assert_step_budget):
    with assert_step_budget(operators=5) as budget:
        for _ in range(3):
            step()
            budget.step()

def test_its_own_error(assert_step_budget):
    with assert_step_budget(operators=5) as budget:
        for number in range(10):
            step()
            budget.step()
            1 / (5 - number)

def test_nothing_is_known_of_devices_here(assert_step_budget):
    assert_step_budget(step, syncs=0, launches=10)

def test_no_limit(assert_step_budget):
    assert_step_budget(step)
"""


def run(pytester: pytest.Pytester, text: str, *words: str) -> pytest.RunResult:
    pytester.makepyfile(text)
    plainly = ("-p", "no:randomly", "-p", "no:xdist", "-W", "error")
    return pytester.runpytest_subprocess(*PLUGINS, *plainly, *words)


def test_waits_are_told_with_their_lines(pytester: pytest.Pytester) -> None:
    result = run(pytester, SYNCS)

    result.assert_outcomes(passed=2, failed=3)
    result.stdout.fnmatch_lines(
        [
            "E*on a GPU the host would wait for the device at 2 places:",
            "E*test_waits_are_told_with_their_lines.py:5 in masked: `aten::index`",
            "E*    return pred[[]mask[]].mean()",
            "E*test_waits_are_told_with_their_lines.py:13 in test_waits: `aten::item`",
            "E*    if loss > 3:",
            "*nothing in the block used a CUDA device*",
            "E*KeyError: 'mine'",
        ]
    )
    result.stdout.no_fnmatch_line("*no_sync.py:*")


@pytest.mark.sweep
def test_budgets_are_judged_with_lines(pytester: pytest.Pytester) -> None:
    result = run(pytester, BUDGETS, "-rs")

    result.assert_outcomes(passed=1, failed=7, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "E*a step exceeds its budget:",
            "E*operators: 107 in a step, and 20 are allowed",
            "E*test_budgets_are_judged_with_lines.py:7 in step: 100 a step",
            "E*    a = a @ a + 1",
            "E*peak_bytes: * in a step, and 32.0 KiB are allowed",
            "E*host_ms: three of four steps took * ms or more, and 5 ms are allowed",
            "E*allocations: * in a step, and 5 are allowed",
            "E*too few steps: 3 were run, and 8 are needed",
            "E*ZeroDivisionError*",
            "E*the budget has no limit; give one of host_ms, *",
            "SKIPPED*this machine has no device, so launches and syncs cannot be counted",
        ]
    )


def test_it_costs_nothing_where_it_is_not_used() -> None:
    script = (
        "import sys, pytest; before = set(sys.modules); import selftime.frameworks.pytest; "
        "print(sorted(m for m in set(sys.modules) - before if not m.startswith('selftime')))"
    )
    done = subprocess.run(  # noqa: S603 - our own line
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
