"""An audit that could not ask is no pass, and a fault passes for a reason and a time."""

import json
from collections.abc import Mapping
from datetime import date

import audit
import pytest

TODAY = date(2026, 11, 1)


def pip(*packages: Mapping[str, object]) -> audit.Answer:
    return audit.of_pip(json.dumps({"dependencies": packages, "fixes": []}))


SOUND = {"name": "good", "version": "1", "vulns": []}
FAULTY = {"name": "bad", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}
SKIPPED = {"name": "elsewhere", "skip_reason": "Dependency not found and could not be audited"}


def known(until: str, reason: str = "it is not called") -> frozenset[str]:
    faults = [{"id": "PYSEC-1", "package": "bad", "reason": reason, "until": until}]
    return audit.listed(json.dumps({"faults": faults}), TODAY)


def test_sound_packages_pass() -> None:
    status, lines = audit.verdict([pip(SOUND)], frozenset())
    assert status == audit.SOUND
    assert lines == ["audit: 1 packages of Python: 0 faults, 0 of them listed"]


def test_a_fault_fails() -> None:
    status, lines = audit.verdict([pip(SOUND, FAULTY)], frozenset())
    assert status == audit.FAULTY
    assert "audit: FAULT in bad: PYSEC-1" in lines


def test_a_listed_fault_passes_until_its_day() -> None:
    assert audit.verdict([pip(FAULTY)], known("2026-11-02"))[0] == audit.SOUND
    assert audit.verdict([pip(FAULTY)], known("2026-11-01"))[0] == audit.FAULTY


def test_a_fault_is_listed_with_a_reason() -> None:
    with pytest.raises(ValueError, match="without a reason"):
        known("2026-11-02", reason=" ")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"dependencies": null}'])
def test_silence_is_no_pass(text: str) -> None:
    for answer in (audit.of_pip(text), audit.of_npm(text)):
        status, lines = audit.verdict([pip(SOUND), answer], frozenset())
        assert status == audit.UNKNOWN
        assert any("NOT DONE" in line for line in lines)


def test_what_is_passed_over_is_no_pass() -> None:
    assert audit.verdict([pip(SKIPPED)], frozenset())[0] == audit.UNKNOWN
    status, lines = audit.verdict([pip(SOUND, SKIPPED)], frozenset())
    assert status == audit.UNKNOWN
    assert "audit: NOT DONE for 1 packages, such as elsewhere" in lines
    assert audit.verdict([pip(FAULTY, SKIPPED)], frozenset())[0] == audit.FAULTY


def test_npm_tells_by_whom_a_package_is_faulty() -> None:
    via = {"source": 1, "url": "https://example.org/advisories/GHSA-1", "title": "t"}
    told = {
        "vulnerabilities": {"a": {"via": [via]}, "b": {"via": ["a"]}},
        "metadata": {"dependencies": {"total": 7}},
    }
    answer = audit.of_npm(json.dumps(told))
    assert (answer.known, answer.faults) == (7, (("a", "GHSA-1"),))


def test_the_list_is_sound() -> None:
    audit.listed(audit.KNOWN.read_text("utf-8"), TODAY)
