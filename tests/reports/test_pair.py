"""A page of two recordings carries their comparison, whatever the room and the names."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from tests.compare.programs import Program, record
from tests.reports.test_html import carried, elements, rows_of, unpacked
from typer.testing import CliRunner

from selftime.cli import app
from selftime.reports.html import LIMIT
from selftime.reports.html.pair import packed_comparison_tables

HOSTILE: Final = "</script><script>alert(1)</script><!-- "
MANY: Final = 1_050


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["compare", *words])


def recorded(folder: Path, name: str, **operators: float) -> str:
    program = replace(Program(), steps=3, operators=operators or Program().operators)
    return record(program, folder, name).source


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The files of two recordings."""
    folder = tmp_path_factory.mktemp("sides")
    slower = {"aten::addmm": 440.0, HOSTILE: 50.0}
    return recorded(folder, "first"), recorded(folder, "second", **slower)


@pytest.fixture(scope="module")
def page(sides: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page on them, as the command writes it."""
    out = tmp_path_factory.mktemp("page") / "page.html"
    done = run(*sides, "--format", "html", "-o", str(out))
    assert done.exit_code == 0, done.output
    assert f"comparison written to {out}" in done.stderr
    return out.read_text(encoding="utf-8")


def told(page: str) -> list[dict[str, Any]]:
    return [unpacked(table["packed"]) for table in carried(page)["compared"]["tables"]]


def test_it_opens_at_the_comparison_and_has_both(page: str) -> None:
    data = carried(page)
    names = ["before/first.json", "after/second.json"]
    assert data["start"] == "#/compare"
    assert [data["compared"][side] for side in ("before", "after")] == names
    assert [one["run"] for one in data["traces"]] == ["before", "after"]
    assert list(data["held"]) == names
    assert all(held["tables"] for held in data["held"].values())


def test_it_stays_below_its_limit_and_carries_no_source(page: str) -> None:
    assert len(page.encode()) < LIMIT
    assert all(held["sources"] == {} for held in carried(page)["held"].values())


def test_its_numbers_are_those_of_the_command(page: str, sides: tuple[str, str]) -> None:
    found = told(page)
    assert [one["metric"] for one in found] == ["device", "host"]
    for one in found:
        text = run(*sides, "--format", "json", "--metric", one["metric"]).stdout
        command = json.loads(text)
        assert one["notes"] == command["notes"]
        for name, table in command["tables"].items():
            rows = rows_of(one["tables"][name])
            expected = table["rows"]
            if name == "tree":  # in another order, and without what other columns tell
                expected = [{k: v for k, v in row.items() if k != "path"} for row in expected]
                rows, expected = (
                    sorted(side, key=lambda row: row["id"]) for side in (rows, expected)
                )
            assert rows == expected


@pytest.mark.sweep
def test_names_do_nothing(page: str) -> None:
    kinds = [attrs.get("type") for attrs, _ in elements(page).of("script")]
    assert kinds == ["application/json", "text/plain", "module"]
    assert HOSTILE in {row["name"] for row in rows_of(told(page)[0]["tables"]["tree"])}


@pytest.mark.sweep
def test_of_a_large_tree_the_heaviest_nodes_come_first(tmp_path: Path) -> None:
    programs = (
        replace(Program(), steps=2, operators={f"op{n}_{side}": 1.0 + n % 7 for n in range(MANY)})
        for side in "ab"
    )
    before, after = (record(one, tmp_path, f"trace{at}") for at, one in enumerate(programs))
    first, _ = packed_comparison_tables(before, after, "host")
    assert first.options == {"metric": "host"}
    cut, whole = (unpacked(version)["tables"]["tree"] for version in first.versions)
    assert (cut["rows"], cut["total"]) == (2_000, 2 * MANY)
    assert (whole["rows"], whole["total"]) == (2 * MANY, 2 * MANY)
    most = [max(row["total_before"], row["total_after"]) for row in rows_of(whole)]
    assert most == sorted(most, reverse=True)
    assert rows_of(cut) == rows_of(whole)[:2_000]
    assert all(len(version) < LIMIT / 5 for version in first.versions)


def test_what_cannot_be_written_is_refused(sides: tuple[str, str]) -> None:
    refused = run(*sides, "--format", "html")
    assert refused.exit_code == 2
    assert "write it to a file with `-o FILE`" in refused.stderr
    over = run(*sides, "--format", "html", "-o", sides[1])
    assert over.exit_code == 2
    assert "is the trace itself" in over.stderr
    assert "traceEvents" in json.loads(Path(sides[1]).read_text(encoding="utf-8"))
