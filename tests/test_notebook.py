"""Traces, jobs and advice show themselves in a notebook, and a summary where pages may not."""

import json
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import selftime
from selftime import notebook
from selftime.errors import UsageError
from selftime.testing import sketch
from selftime.trace import Job, Trace
from selftime.views import VIEWS

HOSTILE = "</iframe><script>alert(1)</script>"


def slow() -> Trace:
    """Half of each step the loop waits for its data."""
    return sketch("""
        a = aten::mm; line = train.py:7 main
        b = aten::relu; line = train.py:8 main
        cpu 1  | aaa bbbbbbbbb
        call 1 |  k         m
        gpu 7  |   kkk       mmmm
    """)


@cache
def shown() -> str:
    """How that trace shows itself."""
    return slow()._repr_html_()


def carried(html: str) -> dict[str, Any]:
    """The data of the page in the frame."""
    page = unescape(html.partition('srcdoc="')[2].partition('"')[0])
    text = page.partition('id="selftime-data">')[2].partition("</script>")[0]
    data: dict[str, Any] = json.loads(text)
    return data


def test_a_trace_is_a_page_at_its_answer() -> None:
    data = carried(shown())
    assert data["start"] == "#/answer"
    assert [one["id"] for one in data["traces"]] == ["(sketch)"]
    assert {table["view"] for table in data["held"]["(sketch)"]["tables"]} >= {"overview"}


def test_nothing_is_loaded_and_the_frame_has_no_origin() -> None:
    html = shown()
    outside = html.partition('srcdoc="')[0] + html.rpartition('"')[2]
    assert "allow-same-origin" not in html.partition("srcdoc")[0]
    assert "src=" not in outside
    assert "href=" not in outside
    assert "<script" not in outside


def test_where_frames_are_removed_the_output_says_so() -> None:
    text = shown().rpartition('">')[2].removesuffix("</iframe>")
    assert text.startswith("The page is not shown here.")
    assert "trust it or run the cell" in text


def test_the_summary_is_there_without_the_frame() -> None:
    before = shown().partition("<style>")[0]
    assert before.startswith("<details><summary>selftime · (sketch) · ")
    assert "Health" in before
    assert before.rstrip().endswith("</details>")


def test_the_frame_is_smaller_than_a_report() -> None:
    assert selftime_report_limit() > notebook.MAX_NOTEBOOK_PAGE_BYTES
    assert len(unescape(shown())) < notebook.MAX_NOTEBOOK_PAGE_BYTES


def selftime_report_limit() -> int:
    from selftime.reports.html import LIMIT  # noqa: PLC0415 - named where it is compared

    return LIMIT


def test_a_panel_is_shown_with_its_options() -> None:
    drawn = slow().show("operators", by="line", top_level=True, height=300)
    assert repr(drawn) == "<`operators` of (sketch): a notebook draws it>"
    html = drawn._repr_html_()
    assert "height: 300px" in html
    data = carried(html)
    assert data["start"] == "#/operators?by=line&top_level=true"
    options = [table["options"] for table in data["held"]["(sketch)"]["tables"]]
    assert {"by": "line", "top_level": True} in options


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_has_an_address(view: str) -> None:
    drawn = slow().show(view)
    assert view in (drawn.panel, drawn.params.get("name"))


def test_what_a_panel_does_not_know_is_told() -> None:
    with pytest.raises(UsageError, match="no option `bye`"):
        slow().show("operators", bye="line")
    with pytest.raises(
        UsageError, match="no panel `operatrs`; there are account, annotations, answer"
    ):
        slow().show("operatrs")


def test_advice_shows_the_page_of_its_trace() -> None:
    trace = slow()
    advice = selftime.advise(trace)
    assert advice.trace is trace
    assert carried(advice._repr_html_())["start"] == "#/answer"
    assert "trace" not in advice.to_dict()
    assert advice == selftime.advise(slow()), "advice is equal if what it says is"


@pytest.mark.sweep
def test_a_job_shows_all_its_traces() -> None:
    job = Job({"/runs/a/rank0.json": slow(), "/runs/a/rank1.json": slow()})
    data = carried(job._repr_html_())
    assert [one["id"] for one in data["traces"]] == ["rank0.json", "rank1.json"]


def test_a_huge_trace_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "_MAX_SLICES_IN_PAGE", 1)
    html = slow()._repr_html_()
    assert "<iframe" not in html
    assert "slices" in html
    assert "<code>.show()</code> shows the page" in html
    advice = selftime.advise(slow())._repr_html_()
    assert "<iframe" not in advice
    assert "Health" in advice


def test_names_do_nothing(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": HOSTILE, "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    file = tmp_path / "<script>.json"
    file.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    trace = selftime.load(file)
    assert isinstance(trace, Trace)
    html = trace._repr_html_()
    assert html.count("<iframe") == html.count("</iframe>") == 1
    assert "<script" not in html


def test_its_text_is_that_of_the_terminal() -> None:
    formatters = pytest.importorskip("IPython.core.formatters")
    advice = selftime.advise(slow())
    assert formatters.PlainTextFormatter()(advice) == str(advice)
    job = Job({"/runs/a/rank0.json": slow()}, refused={"/runs/a/b.json": "it is empty"})
    assert repr(job) == "<Job of 1 trace: no labels; 1 left out>"


def test_text_in_a_notebook_is_not_displayed_while_it_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = str(selftime.advise(slow()))
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert str(selftime.advise(slow())) == text


def test_ipython_finds_the_page() -> None:
    formatters = pytest.importorskip("IPython.core.formatters")
    html = formatters.HTMLFormatter()(slow())
    assert "<iframe" in html
