"""A change that a user names saves what the finding saves that makes the same change."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from entries import entry
from measuring import recorded, runner

import selftime
from selftime.advice.replay import CutHostTime, ScaleDeviceWork
from selftime.advice.rule_definition import Finding
from selftime.trace import Trace

pytestmark = [pytest.mark.torch, pytest.mark.sweep]

SAME = 0.05
"""Relative difference: a rule leaves out what lies beside its cause, such as a collection that runs
within another call, or operators of the same name that read in order."""


def kept_share(finding: Finding) -> float:
    """The share of the time that the finding's fix leaves."""
    [change] = finding.changes
    assert isinstance(change, CutHostTime | ScaleDeviceWork)
    return float(change.kept_share)


@pytest.mark.parametrize(
    ("name", "rule", "pattern"),
    [
        ("gc_pause", "garbage_collection", "garbage_collection"),
        ("transposed_operand", "strided_operand", "aten::mul"),
    ],
)
def test_the_same_change_saves_the_same(name: str, rule: str, pattern: str, tmp_path: Path) -> None:
    with runner() as run:
        trace = selftime.load(str(recorded(run, entry(name), "bad", 0, tmp_path)))
    assert isinstance(trace, Trace)
    [finding] = [one for one in selftime.advise(trace).findings if one.rule == rule]
    found = selftime.what_if(trace, scale={pattern: kept_share(finding)})
    assert found.saving.estimate_ms == pytest.approx(finding.saving.estimate_ms, rel=SAME)
    assert found.saving.speedup == pytest.approx(finding.saving.speedup, rel=2 * SAME)
