"""Rules of other packages join through entry points, and their faults are one sentence."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from selftime.advice import RULES, registry
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

Install = Callable[[str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """A package `other-rules` with one module of this source, and this entry point."""

    def installed(source: str, target: str) -> None:
        info = tmp_path / "other_rules-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-rules\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            f"[{registry.GROUP}]\nwaiting_elsewhere = {target}\n"
        )
        (tmp_path / "waiting_elsewhere.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)

    registry.rules.cache_clear()
    yield installed
    registry.rules.cache_clear()
    sys.modules.pop("waiting_elsewhere", None)


def test_without_plugins_there_are_our_own() -> None:
    assert dict(registry.rules()) == RULES


def test_a_rule_is_found_by_name() -> None:
    for name, rule in RULES.items():
        assert registry.find(name) is rule
    with pytest.raises(UsageError, match="there is no rule `nonesuch`"):
        registry.find("nonesuch")


def test_a_rule_of_another_package_joins(install: Install) -> None:
    install(RULE, "waiting_elsewhere:check")
    assert list(registry.rules()) == [*RULES, "waiting_elsewhere"]
    assert registry.find("waiting_elsewhere").title == "Work waits."


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
        registry.rules()
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)
