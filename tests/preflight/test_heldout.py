"""Preflight on programs that were held out while it was written."""

import pytest

pytest.importorskip("torch", minversion="2.13", reason="the labels are of torch 2.13's sources")

from tests.preflight.heldout_scoring import MODULES, score

pytestmark = pytest.mark.torch

FALSE = 0
"""Sites that were named and do not block, when it was last measured."""
MISSED = 0
"""Sites that block and were not named, when it was last measured."""


@pytest.mark.sweep
def test_no_more_is_false_or_missed_than_was_measured() -> None:
    result = score(*MODULES)

    assert not result.failed, f"\n{result}"
    assert result.programs == 417
    assert result.clean * 3 > result.programs, "too few programs in which nothing blocks"
    assert len(result.false) <= FALSE, f"\n{result}"
    assert len(result.missed) <= MISSED, f"\n{result}"
