"""`selftime advise` on small traces, in this process."""

import json
from pathlib import Path

from tests.cli.small_traces import say


def test_advice_has_its_formats(trace: str, tmp_path: Path) -> None:
    assert (
        json.loads(say("advise", trace, "--format", "json").stdout)["format"] == "selftime.advice/1"
    )
    assert json.loads(say("advise", trace, "--format", "sarif").stdout)["version"] == "2.1.0"
    assert "\n**Health**" in say("advise", trace, "--format", "markdown").stdout
    assert say("advise", trace).stdout.startswith("Health")
    say("advise", trace, "--format", "json", "-o", str(tmp_path / "advice.json"))
    assert say("advise", trace, "--format", "json").stdout == (tmp_path / "advice.json").read_text()


def test_advice_on_a_folder(job: str) -> None:
    assert "rank1.json\n\nHealth" in say("advise", job).stdout
    assert "# `rank1.json`" in say("advise", job, "--format", "markdown").stdout
    assert "holds 2 traces and one is needed" in say("advise", job, "--format", "json").stderr
    assert say("advise", job, "--format", "json", "--trace", "rank0").exit_code == 0


def test_colour_and_environment(trace: str) -> None:
    for env in ({}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in say("advise", trace, env=env).stdout
