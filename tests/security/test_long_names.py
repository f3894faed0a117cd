"""No name of a recording, however long, makes what is told of it long."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import polars as pl
import pytest
from rich.cells import cell_len
from tests.security.adversary import recording
from typer.testing import CliRunner

from selftime.advice import Advice, advise
from selftime.advice.rule_registry import rules_by_name
from selftime.cli import app
from selftime.ingest.load import load
from selftime.mcp.markdown_pages import markdown_table
from selftime.reports.advice.brief import MAX_ANSWER_TOKENS
from selftime.reports.advice.sarif import as_sarif
from selftime.reports.advice.text import as_text
from selftime.reports.advice.tokens import estimate_max_tokens
from selftime.reports.page_data.advice import advice_data
from selftime.reports.tables.text_table import as_text as table_as_text
from selftime.trace import Trace
from selftime.views import VIEWS

LENGTH: Final = 100_000
NAMES: Final = {
    "a word": "x" * LENGTH,
    "with spaces": "lorem ipsum " * (LENGTH // 12),
    "wide": "漢" * (LENGTH // 6),  # which JSON writes with six letters each
}
LONGEST: Final = 2_000
"""Most characters of a sentence, title or cell that a recording's names stand in."""
WIDTH: Final = 100


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    path = tmp_path_factory.mktemp("long") / "trace.json"
    path.write_bytes(recording(tuple(NAMES.values()), at_top_level=False))
    found = load(path, cache=False)
    assert isinstance(found, Trace)
    assert any(len(name) > LENGTH for name in found.slices["name"].cast(pl.String).unique())
    return found


@pytest.fixture(scope="module")
def answer(trace: Trace) -> Advice:
    return advise(trace)


def sentences(answer: Advice) -> Iterator[str]:
    yield from (note.text for note in answer.health.notes)
    yield from (checked.reason for checked in answer.checked)
    yield from (unknown.needs for unknown in answer.unknown)
    for finding in answer.findings:
        yield from (finding.title, finding.fix.text, finding.fix.code or "")
        yield from (evidence.metric for evidence in finding.evidence)
        yield str(finding.where)[LONGEST:]
    assert answer.findings


def lines_of_text(answer: Advice) -> Iterator[str]:
    page = as_text(answer, width=WIDTH)
    assert len(page) < 100 * LONGEST
    return iter(page.splitlines())


def texts_of_json(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (text for inner in value.values() for text in texts_of_json(inner))
    elif isinstance(value, list | tuple):
        yield from (text for inner in value for text in texts_of_json(inner))
    elif isinstance(value, str):
        yield value


def sarif_texts(answer: Advice) -> Iterator[str]:
    [run] = json.loads(as_sarif(answer, rules_by_name()))["runs"]
    return texts_of_json(run["results"])


SURFACES: Final[dict[str, Callable[[Advice], Iterator[str]]]] = {
    "the answer": sentences,
    "the terminal": lines_of_text,
    "JSON": lambda answer: texts_of_json(answer.to_dict()),
    "SARIF": sarif_texts,
    "the page": lambda answer: texts_of_json(advice_data(answer)),
}


@pytest.mark.parametrize("surface", SURFACES.values(), ids=SURFACES)
def test_what_is_advised(surface: Callable[[Advice], Iterator[str]], answer: Advice) -> None:
    assert [(len(text), text[:80]) for text in surface(answer) if len(text) > 3 * LONGEST] == []


def test_a_table_in_the_terminal(trace: Trace) -> None:
    for view in VIEWS.values():
        page = table_as_text(view(trace), view.columns, width=WIDTH, rows=20)
        assert max(map(cell_len, page.splitlines())) <= WIDTH, view.name
        assert len(page) < 20 * LONGEST, view.name


def test_a_table_for_an_agent(trace: Trace) -> None:
    for view in VIEWS.values():
        rows = view(trace).head(20)
        page = markdown_table(rows, view.columns, first_row=0, total_rows=rows.height)
        assert estimate_max_tokens(page) <= MAX_ANSWER_TOKENS, view.name


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("words", ["view {} x.json", "explain {}", "advise {}", "view steps {}"])
def test_an_error(name: str, words: str) -> None:
    asked = [word.format(name) for word in words.split()]
    done = CliRunner().invoke(app, asked, catch_exceptions=False)
    assert done.exit_code == 2
    assert len(done.stderr) <= 3 * LONGEST
    assert done.stderr.count("\n") == 1
