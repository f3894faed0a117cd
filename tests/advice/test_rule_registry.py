"""Rules of other packages join through entry points, and their faults are one sentence."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from selftime import advice
from selftime.advice import RULES, rule_registry
from selftime.errors import SelftimeError, UsageError

RULE = '''
"""Work waits.

## What it means
Something waits.
"""
from selftime.advice import Checked, rule

@rule(covers=("Z1",))
def check(trace):
    yield Checked("nothing waits")
'''

PUBLIC = {
    "RULES",
    "Advice",
    "Checked",
    "Evidence",
    "Finding",
    "Fix",
    "Health",
    "Joint",
    "JointSaving",
    "Note",
    "Outcome",
    "Rule",
    "Saving",
    "Step",
    "TypicalStep",
    "Unknown",
    "Where",
    "advise",
    "find",
    "rule",
}
"""The names that programs and rules of other packages import from `selftime.advice`."""

Install = Callable[[str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """A package `other-rules` with one module of this source, and this entry point."""

    def installed(source: str, target: str) -> None:
        info = tmp_path / "other_rules-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-rules\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            f"[{rule_registry.RULE_ENTRY_POINT_GROUP}]\nwaiting_elsewhere = {target}\n"
        )
        (tmp_path / "waiting_elsewhere.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)

    rule_registry.rules_by_name.cache_clear()
    yield installed
    rule_registry.rules_by_name.cache_clear()
    sys.modules.pop("waiting_elsewhere", None)


def test_public_names_stay() -> None:
    assert set(advice.__all__) == PUBLIC
    assert all(hasattr(advice, name) for name in PUBLIC)


def test_the_public_find_takes_names_and_former_names() -> None:
    assert advice.find("scalar_read") is RULES["scalar_read"]
    assert advice.find("partial_wave") is RULES["wave_quantization"]


def test_without_plugins_there_are_our_own() -> None:
    assert dict(rule_registry.rules_by_name()) == RULES


def test_a_rule_is_found_by_name() -> None:
    for name, rule in RULES.items():
        assert rule_registry.find(name) is rule
    with pytest.raises(UsageError, match="there is no rule `nonesuch`"):
        rule_registry.find("nonesuch")


def test_a_rule_of_another_package_joins(install: Install) -> None:
    install(RULE, "waiting_elsewhere:check")
    assert list(rule_registry.rules_by_name()) == [*RULES, "waiting_elsewhere"]
    assert rule_registry.find("waiting_elsewhere").title == "Work waits."


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("import nonesuch", "waiting_elsewhere:check", "ModuleNotFoundError"),
        ("1 / 0", "waiting_elsewhere:check", "ZeroDivisionError"),
        ("", "waiting_elsewhere:check", "AttributeError"),
        ("check = 3", "waiting_elsewhere:check", "of the type int"),
    ],
)
def test_a_fault_of_another_package_is_one_sentence(
    install: Install, source: str, target: str, reason: str
) -> None:
    install(source, target)
    with pytest.raises(SelftimeError, match="other-rules") as raised:
        rule_registry.rules_by_name()
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)
