"""A change that a user names saves what the finding saves that makes the same change."""

from pathlib import Path

import polars as pl
import pytest

pytest.importorskip("torch")

from entries import entry
from measuring import recorded, runner

import selftime
from selftime.advice import Finding, Fix, Where
from selftime.advice.detectors.counted_operators import (
    operators_in_counted_steps,
)
from selftime.advice.detectors.operator_changes import (
    change_shortening_operators,
)
from selftime.advice.replay import CutHostTime
from selftime.advice.savings.calibration import (
    measured_calibration_factors,
)
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.savings.saving_from_claim import outcome_with_saving
from selftime.trace import Trace

pytestmark = [pytest.mark.torch, pytest.mark.sweep]

SAME = 0.05
"""Relative difference: the rule counts all steps, and what-if those of the typical step."""


def recording(name: str, folder: Path) -> Trace:
    """The trace of a program of the corpus."""
    with runner() as run:
        trace = selftime.load(str(recorded(run, entry(name), "bad", 0, folder)))
    assert isinstance(trace, Trace)
    return trace


def test_collections_save_what_their_finding_says(tmp_path: Path) -> None:
    trace = recording("gc_pause", tmp_path)
    [finding] = [f for f in selftime.advise(trace).findings if f.rule == "garbage_collection"]
    [change] = finding.changes
    assert isinstance(change, CutHostTime)
    found = selftime.what_if(trace, scale={"garbage_collection": change.kept_share})
    assert found.saving.estimate_ms == pytest.approx(finding.saving.estimate_ms, rel=SAME)


@pytest.mark.parametrize("share", [0.5, 0.0])
def test_faster_operators_save_what_a_finding_with_that_change_says(
    share: float, tmp_path: Path
) -> None:
    trace = recording("transposed_operand", tmp_path)
    operators = operators_in_counted_steps(trace)
    operators = operators.filter(pl.col("name").cast(pl.String) == "aten::mul")
    claim = RemovalClaim((change_shortening_operators(trace, operators, share),))
    finding = Finding(
        title="It is slow.", where=Where(), confidence="high", fix=Fix("Do not."), claim=claim
    )
    priced = outcome_with_saving(trace, finding, measured_calibration_factors())
    assert isinstance(priced, Finding)
    assert (priced.saving.estimate_ms or 0.0) > 0
    found = selftime.what_if(trace, scale={"aten::mul": share})
    assert found.saving == priced.saving
