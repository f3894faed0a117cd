"""What is written for other programs follows its published schema, and the schema stays."""

import json
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import jsonschema
import numpy as np
import pytest
from tests.ledgers import Step, write_ledger
from tests.mcp.recorded import LOADER, written
from tests.reports.promised import broken, promises
from tests.security.adversary import recording
from typer.testing import CliRunner

from selftime.bench.result import (
    BenchMetric,
    BenchRound,
    BenchSample,
    ProgramRun,
    StopReason,
    summarize_bench,
)
from selftime.capture.doctor.observations import FindingState, FindingSubject
from selftime.cli import app
from selftime.errors import UsageError
from selftime.reports.schemas import kinds, schema
from selftime.units import UNITS
from selftime.views import VIEWS

ROOT: Final = Path(__file__).parents[2]
PROMISED: Final = ROOT / "tests" / "golden" / "promised.json"
"""What was published; `pytest --update-golden` adds what is new, and removes nothing."""

every_kind = pytest.mark.parametrize("kind", kinds())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    written(folder / "before.json")
    written(folder / "after.json", name="aten::conv2d", steps=9)
    (folder / "hostile.json").write_bytes(recording())
    (folder / "damaged.json").write_text(
        (folder / "before.json").read_text()[:-40].replace(LOADER, "x\\ud800", 1)
    )
    return folder


def say(*words: str | Path) -> str:
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code in (0, 1, 3), done.output
    return done.stdout


def validated(text: str) -> dict[str, Any]:
    """A document that follows the schema that its first key names."""
    document: dict[str, Any] = json.loads(text)
    assert next(iter(document)) == "format"
    kind, version = document["format"].removeprefix("selftime.").split("/")
    assert version == "1"
    jsonschema.Draft202012Validator(schema(kind)).validate(document)
    return document


@every_kind
def test_a_schema_is_sound_closed_and_described(kind: str) -> None:
    whole = schema(kind)
    jsonschema.Draft202012Validator.check_schema(whole)
    assert whole["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert whole["$id"] == whole["title"] == f"selftime.{kind}/1"
    assert whole["description"].endswith(".")
    assert whole["additionalProperties"] is False
    assert whole["properties"]["format"] == {"const": f"selftime.{kind}/1"}
    assert "format" in whole["required"]


def test_every_kind_that_the_documents_name_has_a_schema_and_the_other_way_round() -> None:
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^## selftime\.(\w+)/1$", page, re.MULTILINE))
    assert headings == set(kinds())


def test_words_of_the_schemas_are_those_of_the_program() -> None:
    column = schema("view")["$defs"]["column"]["properties"]
    of_columns = [unit for unit in UNITS if unit != "times"]  # single figures alone have it
    assert column["unit"]["enum"] == of_columns
    assert all(one.unit != "times" for view in VIEWS.values() for one in view.columns)
    finding = schema("doctor")["properties"]["findings"]["items"]["properties"]
    assert finding["state"]["enum"] == [state.value for state in FindingState]
    assert finding["subject"]["enum"] == [subject.value for subject in FindingSubject]


def test_a_kind_that_there_is_not() -> None:
    with pytest.raises(UsageError, match=r"there are advice, baseline"):
        schema("../../errors")


@pytest.mark.parametrize("name", ["before", "hostile", "damaged"])
def test_advice(name: str, folder: Path) -> None:
    path = folder / f"{name}.json"
    told = validated(say("advise", path, "--format", "json"))
    for finding in told["findings"][:1]:
        validated(say("advise", path, "--format", "json", "--finding", finding["id"]))


@pytest.mark.parametrize("view", sorted(VIEWS))
@pytest.mark.sweep(6)
def test_views(view: str, folder: Path) -> None:
    told = validated(say("view", view, folder / "hostile.json", "--format", "json"))
    assert told["view"] == view


def test_the_list_of_views() -> None:
    assert len(validated(say("views", "--format", "json"))["views"]) == len(VIEWS)


def test_a_comparison_and_a_verdict(folder: Path) -> None:
    pair = folder / "before.json", folder / "after.json"
    told = validated(say("compare", *pair, "--format", "json"))
    assert told["tables"]["steps"]["rows"]
    several = validated(say("compare", *pair, pair[0], "--format", "json"))
    assert several["tables"]["measures"]["rows"]
    assert validated(say("verify", *pair, "--format", "json"))["left"]


@pytest.mark.parametrize("name", ["before", "hostile", "damaged"])
def test_a_prediction(name: str, folder: Path) -> None:
    path = folder / f"{name}.json"
    [told] = validated(say("what-if", path, "--scale", "*=0.5", "--format", "json"))["traces"]
    assert told["changes"]


def test_a_baseline_and_a_check(folder: Path, tmp_path: Path) -> None:
    baseline = tmp_path / "baseline.json"
    say("check", folder / "before.json", "--write-baseline", baseline)
    assert validated(baseline.read_text())["measures"]
    for name in ("before", "after"):
        words = (folder / f"{name}.json", "--baseline", baseline, "--format", "json")
        assert validated(say("check", *words))["checked"]
    history = tmp_path / "history"
    both = folder / "before.json", folder / "after.json"
    kept_in = ("--history", history, "--commit", "c0ffee", "--format", "json")
    told = validated(say("check", *both, *kept_in))["history"]
    assert (told["runs"], len(told["series"][0]["points"])) == (2, 1)  # of one commit
    for kept in history.iterdir():
        assert validated(kept.read_text())["measures"]
    more = tmp_path / "more.json"
    say("check", *both, "--write-baseline", more)
    assert validated(more.read_text())["more_runs"]


def test_what_is_said_of_traces_that_are_written_anew(folder: Path, tmp_path: Path) -> None:
    for words in (
        ("repair", folder / "damaged.json"),
        ("cut", folder / "before.json", "--steps", "2"),
        ("redact", folder / "before.json"),
    ):
        out = tmp_path / f"{words[0]}.json"
        told = validated(say(*words, "--format", "json", "-o", out))
        assert told["events"] > 0


def test_an_answer_in_sql(folder: Path) -> None:
    query = "select name, sum(duration) as total, avg(self) as mean from slices group by name"
    told = validated(say("sql", folder / "hostile.json", query, "--format", "json"))
    assert told["rows"]


def test_exports_and_what_lies_beside_tables(folder: Path, tmp_path: Path) -> None:
    for to in ("csv", "perfetto"):
        out = tmp_path / to
        words = ("export", folder / "hostile.json", "--to", to, "-o", out, "--format", "json")
        assert validated(say(*words))["outputs"]
    assert validated((tmp_path / "csv" / "tables.json").read_text())["tables"]


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_run(is_whole: bool, tmp_path: Path) -> None:
    steps = [Step(10, counted={"data_wait": 1})] * 9
    path = write_ledger(tmp_path / "a.run.jsonl", [*steps, Step(90, line=3)], whole=is_whole)
    told = validated(say("ledger", path, "--format", "json"))
    assert told["is_whole"] is is_whole
    assert sum(part["s"] for part in told["parts"]) == pytest.approx(told["wall_s"])
    [kind] = told["steps"]["kinds"]
    assert (kind["count"], kind["slow"], kind["median_ms"]) == (10, 1, 10)
    [slow] = told["steps"]["slow"]
    assert (slow["index"], slow["ms"], slow["where"]["line"]) == (9, 90, 3)
    assert slow["cause"] == "program"


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_bench(is_whole: bool) -> None:
    steps = ProgramRun(20.5, 2.5, 2.5, 8, 1, 0, True, "optimizer steps", "host", None)
    run = steps if is_whole else ProgramRun(20.5)
    rounds = tuple(BenchRound("before", run, run) for _ in range(8 if is_whole else 1))
    metric = BenchMetric.step if is_whole else BenchMetric.process
    bounds, reach = ((-0.1, 0.1), 0.1) if is_whole else (None, None)
    times = np.full((len(rounds), 2), run.time_ms(metric))
    sample = BenchSample(metric, rounds, times, 0.0, 0.0, bounds, bounds, reach)
    found = summarize_bench(sample, ("a.py", "b.py"), 0.02, StopReason.rounds, 4.5, None)
    assert validated(found.to_json())["metric"] == metric.value


@pytest.mark.torch
def test_the_facts_of_a_recording() -> None:
    torch = pytest.importorskip("torch")
    from selftime.capture import Profile  # noqa: PLC0415 - torch is looked for first

    with Profile(record_shapes=True, with_stack=True) as prof:
        torch.ones(4).sum()
    validated(json.dumps(prof.facts()))


def test_what_was_promised_is_kept(request: pytest.FixtureRequest) -> None:
    promised = json.loads(PROMISED.read_text()) if PROMISED.exists() else {}
    wrong = [
        sentence
        for kind, fields in promised.items()
        for sentence in (
            broken(kind, fields, schema(kind))
            if kind in kinds()
            else [f"the schema of `{kind}` is gone"]
        )
    ]
    assert wrong == []
    if request.config.getoption("--update-golden"):
        now = {kind: {**promises(schema(kind)), **promised.get(kind, {})} for kind in kinds()}
        PROMISED.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
        promised = now
    assert set(promised) == set(kinds()), "publish the new kind with `pytest --update-golden`"


CHECKED: Final = ("properties", "checked", "items")


def changed(change: Callable[[dict[str, Any]], object]) -> list[str]:
    """What is broken by a change of the measures of `selftime.check/1`."""
    whole = deepcopy(schema("check"))
    part = whole
    for name in CHECKED:
        part = part[name]
    change(part)
    return broken("check", promises(schema("check")), whole)


def test_an_optional_field_breaks_nothing() -> None:
    assert changed(lambda part: part["properties"].update(more={"type": "string"})) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda part: part["properties"].pop("limit") and part["required"].remove("limit"),
            "limit",
        ),
        (lambda part: part["required"].remove("limit"), "limit"),
        (lambda part: part["properties"]["now"].update(type="string"), "now"),
        (lambda part: part["properties"]["now"].update(type="number"), "now"),
        (lambda part: part["properties"]["state"]["enum"].append("odd"), "state"),
        (lambda part: part["properties"]["lines"]["items"]["required"].remove("file"), "file"),
    ],
)
def test_a_field_that_is_gone_or_another_breaks_a_promise(
    change: Callable[[dict[str, Any]], object], told: str
) -> None:
    sentences = changed(change)
    assert any(f"{told}` " in sentence for sentence in sentences)
    assert all(s.endswith("and make `selftime.check/2`") for s in sentences)
