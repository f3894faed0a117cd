"""`selftime ledger` tells the whole run from its ledger, for people and for programs."""

import json
from pathlib import Path

import pytest
from tests.cli.small_traces import refused, say
from tests.ledgers import Step, write_ledger


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    return str(write_ledger(tmp_path / "train.run.jsonl", [Step(10.0)] * 20))


def test_people_read_the_parts_and_the_kinds_of_steps(ledger: str) -> None:
    done = say("ledger", ledger)
    assert done.exit_code == 0
    assert "training" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_programs_read_what_the_file_says_too(ledger: str, tmp_path: Path) -> None:
    printed = say("ledger", ledger, "--format", "json").stdout
    assert json.loads(printed)["format"] == "selftime.run/1"
    assert say("ledger", ledger, "-o", str(tmp_path / "run.json")).exit_code == 0
    assert (tmp_path / "run.json").read_text() == printed


def test_a_trace_without_a_ledger_is_told(trace: str) -> None:
    assert "has no ledger (`.run.jsonl`) of its run" in refused(say("ledger", trace))
