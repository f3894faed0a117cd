"""`selftime verify --results`: its exit status is the verdict on what both programs computed."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.mcp.recorded import written
from typer.testing import CliRunner

from selftime.cli import app
from selftime.reports.schemas import schema


def recorded(folder: Path, losses: list[float] | None, seed: int = 0) -> str:
    """A recording whose ledger keeps these losses; None for one without `--results`."""
    path = written(folder / "one.pt.trace.json")
    trace = json.loads(path.read_text())
    trace["selftime"] = {"format": "selftime.facts/1", "ledger": "one.run.jsonl"}
    path.write_text(json.dumps(trace))
    tensors = [
        {"number": n, "draws": "a", "tensors": [{"dtype": "float32", "shape": [], "values": [x]}]}
        for n, x in enumerate(losses or [])
    ]
    lines: list[dict[str, Any]] = [{"format": "selftime.ledger/1", "process": 1, "began": 0}]
    if losses is not None:
        lines.append({"results": {"torch_seed": seed, "losses": tensors}})
    (folder / "one.run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


@pytest.mark.parametrize(
    ("after", "seed", "status", "verdict"),
    [
        ([2.0, 1.5], 0, 0, "equal"),
        ([2.0, 1.5000002], 0, 0, "within_rounding"),
        ([2.0, 1.6], 0, 1, "differs"),
        ([2.5, 1.6], 9, 3, "unknown"),
        (None, 0, 3, "unknown"),
    ],
)
def test_the_status_is_the_verdict(
    tmp_path: Path, after: list[float] | None, seed: int, status: int, verdict: str
) -> None:
    pair = [recorded(tmp_path / "a", [2.0, 1.5]), recorded(tmp_path / "b", after, seed)]
    done = CliRunner().invoke(app, ["verify", *pair, "--results", "--format", "json"])
    assert done.exit_code == status, done.output
    told = json.loads(done.stdout)
    jsonschema.validate(told, schema("verification"))
    assert told["results"]["verdict"] == verdict
    if verdict == "within_rounding":
        assert 1e-7 < told["results"]["difference"] < 2e-7
    text = CliRunner().invoke(app, ["verify", *pair, "--results"])
    assert text.exit_code == status
    assert "Results    " in text.stdout


def test_without_the_option_nothing_is_compared(tmp_path: Path) -> None:
    pair = [recorded(tmp_path / "a", [2.0]), recorded(tmp_path / "b", [3.0])]
    done = CliRunner().invoke(app, ["verify", *pair, "--format", "json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["results"] is None


def test_another_recording_of_the_first_program_shows_that_it_does_not_repeat_itself(
    tmp_path: Path,
) -> None:
    names = zip("abc", ([2.0], [3.0], [2.7]), strict=True)
    first, second, again = (recorded(tmp_path / name, losses) for name, losses in names)
    done = CliRunner().invoke(app, ["verify", first, second, "--repeat", again])
    assert done.exit_code == 3
    assert "does not repeat itself" in " ".join(done.stdout.split())
