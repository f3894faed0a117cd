"""Reasons for no finding state only what the recording shows."""

from typing import TYPE_CHECKING, Final

import pytest

from selftime.advice import Checked, Unknown
from selftime.advice.advise import advise
from selftime.advice.rule_registry import rules_by_name

if TYPE_CHECKING:
    from tests.conftest import ReadReal

pytestmark = pytest.mark.traces

REASONS: Final = {
    "steps without times": (
        "a100-2024-triton",
        ("denormal_numbers", "slow_product", "bias_before_norm"),
        ("the arithmetic runs on a device", "the peak rates of the device", "steps whose duration"),
    ),
    "collectives without sizes": (
        "a100-2022-sampled-rank0",
        ("small_buckets", "slow_product"),
        ("the sizes of collectives", "the peak rates of the device"),
    ),
    "no operators": (
        "mi210-gpu-only",
        ("data_parallel", "anomaly_mode", "slow_collate", "loop_indexing", "restarted_workers"),
        ("operators: record with",) * 5,
    ),
}


@pytest.mark.parametrize(("name", "rules", "begins"), REASONS.values(), ids=REASONS)
def test_a_reason_is_what_the_recording_shows(
    real: "ReadReal", name: str, rules: tuple[str, ...], begins: tuple[str, ...]
) -> None:
    answer = advise(real(name), rules={rule: rules_by_name()[rule] for rule in rules})
    said: dict[str, str] = {}
    for outcome in (*answer.checked, *answer.unknown):
        assert isinstance(outcome, Checked | Unknown)
        said[outcome.rule] = outcome.reason if isinstance(outcome, Checked) else outcome.needs
    for rule, begin in zip(rules, begins, strict=True):
        assert said[rule].startswith(begin), said[rule]
