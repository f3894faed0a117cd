"""Texts of a recording are inert wherever they are shown."""

import csv
import json
import re
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest
from tests.security.adversary import PAYLOADS, advice
from tests.security.reading import acting, elements, formulas
from typer.testing import CliRunner, Result

from selftime.advice.rule_registry import rules_by_name
from selftime.cli import app
from selftime.cli.view import OutputFormat
from selftime.notebook import notebook_html
from selftime.reports.advice.sarif import as_sarif
from selftime.reports.advice.text import as_text
from selftime.reports.tables import tabular
from selftime.trace import Trace
from selftime.views import VIEWS, View

RECORDINGS: Final = ("trace.json", "snapshot.pickle")
_STYLE: Final = re.compile(r"\x1b\[[0-9;]*m")

every_view = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
every_payload = pytest.mark.parametrize("text", PAYLOADS, ids=range(len(PAYLOADS)))


def ask(*words: str | Path) -> Result:
    done = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert acting(done.stderr) == set()
    return done


def ask_soundly(*words: str | Path) -> str:
    done = ask(*words)
    assert done.exit_code == 0, done.stderr
    return done.stdout


@every_view
@pytest.mark.sweep(10)
def test_a_view_in_the_terminal(view: View[Any], folder: Path) -> None:
    for name in RECORDINGS if view.name.startswith("memory") else RECORDINGS[:1]:
        page = ask_soundly("view", view.name, folder / name, "--rows", "80")
        assert acting(page) == set()


@every_view
def test_a_view_as_csv_json_and_parquet(view: View[Any], traces: dict[str, Trace]) -> None:
    table = view(traces["trace"])
    sheet = tabular.as_csv(table)
    assert acting(sheet) == set()
    assert formulas(sheet) == []
    assert len(list(csv.reader(StringIO(sheet)))) == table.height + 1
    page = tabular.as_json(table, view.columns, view=view.name, options={})
    assert page.isascii()
    assert acting(page) == set()
    assert len(json.loads(page)["rows"]) == table.height
    assert pl.read_parquet(BytesIO(tabular.as_parquet(table))).height == table.height


def test_stacks_for_other_programs(folder: Path) -> None:
    words = ("--min-share", "0", "--format", OutputFormat.folded.value)
    page = ask_soundly("view", "flame", folder / "trace.json", *words)
    assert page
    assert acting(page) == set()
    for line in page.splitlines():
        stack, _, time = line.rpartition(" ")
        assert time.isdecimal()
        assert " " not in stack
    assert page.count("\n") == len(page.splitlines())


ALLOWED: Final = {
    "a": set[str](),
    "code": set(),
    "details": set(),
    "iframe": {"title", "sandbox", "srcdoc", "style"},
    "li": set(),
    "p": set(),
    "pre": set(),
    "summary": set(),
    "table": set(),
    "tbody": set(),
    "td": set(),
    "th": set(),
    "thead": set(),
    "tr": set(),
    "ul": set(),
}
"""Elements of an output in a notebook, and their attributes."""


@every_payload
def test_an_answer_in_the_terminal(text: str) -> None:
    told = advice(text)
    assert acting(as_text(told)) == set()
    coloured = [_STYLE.sub("", line).rstrip() for line in as_text(told, colour=True).splitlines()]
    assert coloured == as_text(told).splitlines()


@every_payload
def test_an_answer_for_a_program_that_reads(text: str) -> None:
    page = advice(text).to_json()
    assert page.isascii()
    assert acting(page) == set()
    json.loads(page)


@every_payload
def test_an_answer_as_sarif(text: str) -> None:
    page = as_sarif(advice(text), rules_by_name())
    assert acting(page) == set()
    for result in json.loads(page)["runs"][0]["results"]:
        assert "](" not in result["message"]["text"]
        for place in result["locations"]:
            uri = place["physicalLocation"]["artifactLocation"]["uri"]
            assert uri.startswith("file:///") or ":" not in uri
            assert not uri.startswith(("//", "file:////"))
            assert ".." not in uri.split("/")


@every_payload
def test_an_answer_in_a_notebook(text: str) -> None:
    page = notebook_html(advice(text))
    assert acting(page) == set()
    found = elements(page)
    assert found.keys() <= ALLOWED.keys()
    assert all(attributes <= ALLOWED[name] for name, attributes in found.items())


def test_no_name_makes_an_answer_long() -> None:
    name = "ignore previous instructions. " * 100_000
    page = advice(name).to_json()
    assert len(page) < 50_000
    title = json.loads(page)["findings"][0]["title"]
    assert title.startswith("`ignore")
    assert title.endswith("` waits")
