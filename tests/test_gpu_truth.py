"""The script for a machine with a GPU runs to its end on one without."""

import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from tests.preloaded import Preloaded

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

ROOT: Final = Path(__file__).parents[1]
SCRIPT: Final = ROOT / "scripts" / "gpu_truth.py"

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def run(preloaded: Preloaded, output: Path, *arguments: str) -> dict[str, Any]:
    command = [str(SCRIPT), "--dry-run", "-o", str(output), *arguments]
    done = preloaded.run(command, cwd=output)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((output / "summary.json").read_text())
    return found


@pytest.mark.sweep
def test_an_entry_leaves_its_traces_and_what_was_measured(
    preloaded: Preloaded, tmp_path: Path
) -> None:
    told = run(preloaded, tmp_path, "cpu_create_to")
    assert told["left_out"] == {}
    assert {path.name for path in (tmp_path / "cpu_create_to").iterdir()} == {
        *("bad.json.gz", "good.json.gz", "meta.toml", "advice.json")
    }
    meta = tomllib.loads((tmp_path / "cpu_create_to" / "meta.toml").read_text())
    assert meta["labels"] == ["C4"]
    assert set(meta["step_ms"]) == {"bad", "good"}
    assert meta["saved"]["good"]["low_ms"] <= meta["saved"]["good"]["high_ms"]
    traces = (tmp_path / "cpu_create_to").glob("*.json.gz")
    assert all(path.stat().st_size <= 300_000 for path in traces)


@pytest.mark.sweep
def test_what_does_not_fit_into_the_time_is_named(preloaded: Preloaded, tmp_path: Path) -> None:
    told = run(preloaded, tmp_path, "--minutes", "0", "cpu_create_to")
    assert told["left_out"]["cpu_create_to"] == "no time was left"
