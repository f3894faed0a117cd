"""The page's question for a comparison: the answer is that of `selftime.compare`."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.compare.programs import Program, record
from tests.ledgers import Step, write_ledger
from werkzeug.test import Client

from selftime.compare import TABLES, compare
from selftime.compare.kernels import compared_kernels
from selftime.ingest.load import load
from selftime.reports.page_data.compare import prepare_comparison
from selftime.reports.tables.tabular import nan_and_infinity_as_null
from selftime.trace import Trace
from selftime.web import PageApp, TracesAtPaths, answers

SLOWER = {"aten::addmm": 440.0, "aten::relu": 50.0, "<b>aten::gelu</b>": 20.0}


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    record(Program(), tmp_path, "before")
    record(replace(Program(), operators=SLOWER, seed=1, shapes="[[8]]"), tmp_path, "after")
    return tmp_path / "before.json", tmp_path / "after.json"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SELFTIME_CACHE", str(tmp_path / "cache"))


def traces(pair: tuple[Path, Path]) -> tuple[Trace, Trace]:
    before, after = (load(str(path)) for path in pair)
    assert isinstance(before, Trace)
    assert isinstance(after, Trace)
    return before, after


def asked(client: Client, **words: str) -> Any:
    return client.get("/api/compare", query_string=words)


def sides(client: Client) -> dict[str, str]:
    told: Any = client.get("/api/traces").json
    ids = {one["name"]: one["id"] for one in told["traces"]}
    return {".trace": ids["before.json"], ".with": ids["after.json"]}


def rows_of(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    columns = {}
    for name, column in table["columns"].items():
        if "codes" in column:
            texts = column["texts"]
            columns[name] = [None if code is None else texts[code] for code in column["codes"]]
        else:
            columns[name] = column["values"]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize("metric", [None, "host"])
def test_every_number_is_that_of_the_command(pair: tuple[Path, Path], metric: Any) -> None:
    client = Client(PageApp(TracesAtPaths(map(str, pair))))
    told = asked(client, **sides(client), **({"metric": metric} if metric else {})).json
    found = compare(*traces(pair), metric=metric)
    assert told["metric"] == (metric or "device")
    assert told["metrics"] == ["device", "host"]
    assert tuple(told["notes"]) == found.notes != ()
    tables = {**found.tables(), "kernel_names": compared_kernels(*traces(pair), "name")}
    for name, table in tables.items():
        expected = nan_and_infinity_as_null(table).to_dicts()
        if name == "tree":
            expected = [{k: v for k, v in row.items() if k != "path"} for row in expected]
            expected.sort(key=lambda row: row["id"])
        if name in ("run_parts", "run_steps"):  # these traces have no ledger of their run
            assert expected == [] == rows_of(told["tables"][name])
            continue
        rows = rows_of(told["tables"][name])
        assert (sorted(rows, key=lambda row: row["id"]) if name == "tree" else rows) == expected
        assert told["tables"][name]["total"] == table.height > 0
        names = [column["name"] for column in told["specs"][name]["columns"]]
        assert names == list(rows[0])
        assert told["specs"][name]["doc"] == TABLES[name.replace("kernel_names", "kernels")].doc


def test_two_ledgers_are_compared_as_by_the_command(tmp_path: Path) -> None:
    steps = [Step(10 + number % 3) for number in range(60)]
    slower = [Step(2 * step.ms, counted={"data_wait": 1}) for step in steps]
    pair = (
        write_ledger(tmp_path / "a.run.jsonl", steps),
        write_ledger(tmp_path / "b.run.jsonl", slower),
    )
    client = Client(PageApp(TracesAtPaths(map(str, pair))))
    listed: Any = client.get("/api/traces").json
    before, after = (one["id"] for one in listed["traces"])
    told = asked(client, **{".trace": before, ".with": after}).json
    found = compare(*traces(pair))
    for name in ("run_parts", "run_steps"):
        assert rows_of(told["tables"][name]) == found.tables()[name].to_dicts() != []
    assert told["said"]["run"].startswith("Run: 1.2 s before, 1.8 s after")
    assert told["said"]["no_steps"] is None


def test_the_first_rows_of_a_tree_are_a_tree(tmp_path: Path) -> None:
    sides = (replace(Program(), modules=True, seed=seed) for seed in (0, 1))
    before, after = (record(one, tmp_path, "trace") for one in sides)
    found = prepare_comparison(before, after, "host")
    rows = found.tables["tree"].table
    places = {id_: place for place, id_ in enumerate(rows["id"].to_list())}
    assert rows["depth"].max() == 1
    for place, parent in enumerate(rows["parent"].to_list()):
        assert parent is None or places[parent] < place


def test_a_large_tree_is_cut_and_says_so(pair: tuple[Path, Path]) -> None:
    told = json.loads(prepare_comparison(*traces(pair)).comparison_json(tree_rows=2))["tables"][
        "tree"
    ]
    assert told["rows"] == 2
    assert told["total"] == compare(*traces(pair)).tree.height > 2
    kept = rows_of(told)
    most = [max(row["total_before"], row["total_after"]) for row in kept]
    assert most == sorted(most, reverse=True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({".with": "nonesuch"}, "there is no trace `nonesuch` here"),
        ({".trace": "nonesuch"}, "there is no trace `nonesuch` here"),
        ({".with": ""}, "`.with` is missing"),
        ({"metric": "wall"}, "there is no metric `wall`; ask for host or device"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_sentence(
    pair: tuple[Path, Path], words: dict[str, str], sentence: str
) -> None:
    client = Client(PageApp(TracesAtPaths(map(str, pair))))
    refused = asked(client, **{**sides(client), **words})
    assert refused.status_code == 400
    assert sentence in refused.json["error"]
    assert "\n" not in refused.json["error"]


def test_a_trace_that_cannot_be_read_is_named(pair: tuple[Path, Path]) -> None:
    client = Client(PageApp(TracesAtPaths(map(str, pair))))
    words = sides(client)
    pair[1].write_text("no trace")
    refused = asked(client, **words)
    assert refused.status_code == 422
    assert "after.json" in refused.json["error"]


def test_the_same_question_is_computed_once(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def counted(*words: Any) -> Any:
        made.append(words)
        return prepare_comparison(*words)

    monkeypatch.setattr(answers, "prepare_comparison", counted)
    first = answers.PageDataAnswers(TracesAtPaths(map(str, pair)), store_after_s=0)
    words = dict(
        zip((".trace", ".with"), (one.id for one in first.sources.listed_traces()), strict=True)
    )
    told = first.comparison_json(words)
    assert first.comparison_json(words) == told
    later = answers.PageDataAnswers(TracesAtPaths(map(str, pair)), store_after_s=0)
    assert later.comparison_json(words) == told
    assert len(made) == 1
    swapped = {".trace": words[".with"], ".with": words[".trace"]}
    assert later.comparison_json(swapped) != told
    pair[0].write_bytes(pair[1].read_bytes())
    assert later.comparison_json(words) != told
    assert len(made) == 3
