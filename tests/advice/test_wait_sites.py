"""Sites of waits: what each wait is for, and what it costs beside the others."""

from pathlib import Path

import pytest

from selftime.advice import RULES, Checked, Finding, Unknown
from selftime.advice.advise import advise
from selftime.advice.detectors.wait_savings import AllWaitCosts, wait_costs
from selftime.advice.detectors.wait_sites import wait_sites
from selftime.advice.replay import RemoveWaits, replay_of
from selftime.advice.step_statistics import step_statistics
from selftime.testing import sketch
from selftime.trace import Trace

WAITS = (
    "scalar_read",
    "branch_on_tensor",
    "copy_to_host",
    "data_dependent_shape",
    "explicit_synchronize",
    "finite_check",
    "hidden_sync",
    "pageable_copy",
    "small_upload",
)

TWO_READS = """
    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | aiiiiiiiiijj        aiiiiiiiiijj        aiiiiiiiiijj
    call 1 | kmmmmmmmmmnn        kmmmmmmmmmnn        kmmmmmmmmmnn
    gpu 7  |  kkkkkkkk            kkkkkkkk            kkkkkkkk
    copy 7 |          mn                  mn                  mn
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    i = aten::item; line = a.py:4 f
    j = aten::to; line = a.py:5 f
    m = Memcpy DtoH (Device -> Pageable)
    n = Memcpy DtoH (Device -> Pageable)
"""

LOOP = """
import torch

def train(steps, profiler):
    weight = torch.ones(64, 64, requires_grad=True)
    optimizer = torch.optim.Adam([weight])
    total = 0.0
    for _ in range(steps):
        loss = (weight @ weight).square().mean()
        loss.backward()
        optimizer.step()
        total += loss.item()  # the read
        profiler.step()
    return total
"""


def test_two_waits_for_the_same_queue_share_what_both_save() -> None:
    trace = sketch(TWO_READS)
    limits = step_statistics(trace)
    assert limits is not None
    found = wait_costs(trace).cost_by_line
    calls = [RemoveWaits(site.call_ids) for site in wait_sites(trace)]
    joint = limits.scaled_to_typical_step(replay_of(trace).saving(*calls) / 1e6)
    assert len(found) == 2
    for cost in found.values():
        assert cost.saving_alone_ms < 0.5 * joint, "the other waits for the same work"
        assert cost.saving_as_last_ms > 0.5 * joint
    assert sum(
        (c.saving_alone_ms + c.saving_as_last_ms) / 2 for c in found.values()
    ) == pytest.approx(joint, rel=0.01)


def test_the_joint_saving_is_what_the_findings_share() -> None:
    advice = advise(sketch(TWO_READS), rules={name: RULES[name] for name in WAITS})
    assert sorted(finding.where.line or 0 for finding in advice.findings) == [4, 5]
    estimates = [finding.saving.estimate_ms or 0.0 for finding in advice.findings]
    assert advice.joint.estimate_ms == pytest.approx(sum(estimates), rel=0.01)


def test_no_wait_belongs_to_two_rules() -> None:
    for name in WAITS:
        for drawing in RULES[name].drawings("Fires on"):
            trace = sketch(drawing)
            fired = [n for n in WAITS if any(isinstance(o, Finding) for o in RULES[n](trace))]
            assert fired == [name]


def test_a_wait_within_a_print_is_left_to_the_rule_on_logging() -> None:
    trace = sketch(
        """
        mark 1   | ssssssssss
        python 1 | pppppp
        cpu 1    | aiiiii
        call 1   | kmmmmm
        gpu 7    |  kkk
        copy 7   |     m
        s = ProfilerStep#1
        a = aten::mm
        p = <built-in function print>
        i = aten::item
        m = Memcpy DtoH (Device -> Pageable)
        """
    )
    assert wait_sites(trace) == ()


def test_a_wait_that_the_device_works_through_is_free() -> None:
    [drawing, *_] = RULES["scalar_read"].drawings("Silent on")
    [outcome] = RULES["scalar_read"](sketch(drawing))
    assert isinstance(outcome, Checked)
    assert "1 a step" in outcome.reason
    assert "cost nothing now" in outcome.reason
    assert "On a 4 times faster device all waits of a step" in outcome.reason
    assert "would take 11.0 % of today's step time" in outcome.reason
    assert outcome.upper_ms == pytest.approx(0, abs=0.02)


def test_an_empty_trace_has_no_sites() -> None:
    assert wait_sites(Trace()) == ()
    assert wait_costs(Trace()) == AllWaitCosts()


@pytest.mark.torch
def test_on_a_cpu_the_line_is_named_that_would_wait(tmp_path: Path) -> None:
    """The reads of the optimizer, whose counters are on the host anywhere, are not."""
    selftime = pytest.importorskip("selftime")
    pytest.importorskip("torch")
    program = tmp_path / "looping.py"
    program.write_text(LOOP, encoding="utf-8")
    scope: dict[str, object] = {}
    exec(compile(LOOP, str(program), "exec"), scope)  # noqa: S102 - the program above
    train = scope["train"]
    assert callable(train)
    with selftime.profile(with_stack=True) as profiler:
        train(5, profiler)
    path = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(path))
    [outcome] = RULES["scalar_read"](selftime.load(path))
    assert isinstance(outcome, Unknown)
    assert "looping.py" in outcome.needs
    assert "more" not in outcome.needs
