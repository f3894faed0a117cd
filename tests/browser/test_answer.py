"""The answer says what the terminal says, and each finding opens to all there is to it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Locator, Page, expect
from typer.testing import CliRunner

import selftime
from selftime import units
from selftime.advice import Advice, advise
from selftime.cli import app
from selftime.reports.advice import wording
from selftime.reports.page_data.account import account_data
from selftime.reports.page_data.advice import common_folder_of_findings
from selftime.reports.page_data.step_with_fixes import headline_texts

Address = Callable[[str], str]
Open = Callable[..., Page]
Settle = Callable[[Page, str], None]

PROGRAM: Final = """from torch.utils.data import DataLoader

loader = DataLoader(
    images,
    batch_size=4,
    num_workers=0,
)


def train():
    for batch in loader:
        step(batch)
"""
DEFINED: Final = 10
"""The line that stacks tell of `train`."""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A recording of a program that loads on its own thread, and whose source lies beside it."""
    source = tmp_path / "train.py"
    source.write_text(PROGRAM, encoding="utf-8")

    def ran(category: str, name: str, ts: float, dur: float, **args: int) -> dict[str, Any]:
        named = {key.replace("_", " "): value for key, value in args.items()}
        where = {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": 9}
        return {**where, "ts": ts, "dur": dur, "args": named}

    load = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    events = []
    for step, at in enumerate(100_000.0 * number for number in range(6)):
        events += [
            ran("user_annotation", f"ProfilerStep#{step}", at, 99_000.0),
            ran(
                "python_function",
                f"{source}({DEFINED}): train",
                at + 1,
                98_990.0,
                Python_id=step + 1,
            ),
            ran("cpu_op", load, at + 10, 60_000.0, External_id=2 * step + 1),
            ran("cpu_op", "aten::mm", at + 61_000, 37_000.0, External_id=2 * step + 2),
        ]
    trace = tmp_path / "train.pt.trace.json"
    whole = {"schemaVersion": 1, "with_stack": 1, "traceEvents": events}
    trace.write_text(json.dumps(whole), encoding="utf-8")
    return trace


def advised(path: Path) -> Advice:
    trace = selftime.load(str(path))
    assert isinstance(trace, selftime.Trace)
    return advise(trace)


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def said(place: Locator) -> str:
    """What a part of the page says, without the folds of its layout."""
    return one_line(place.inner_text())


def unquoted(text: str) -> str:
    """A sentence as it is shown: names are set as code in place of standing in backticks."""
    return one_line(text.replace("`", ""))


def expected_of_account(advice: Advice) -> list[str]:
    """What the page says of the account of the step: its rows with line and verdict."""
    account = account_data(advice, common_folder_of_findings(advice))
    if account is None:
        return []
    rows = [
        f"{row['what']} {where_of(row)} {row['time']} {row['percent']} "
        f"{row['at_most'] or '-'} {row['verdict_text']}"
        for row in account["rows"][: account["shown"]]
    ]
    return [account["bound_by"], account["spent"], account["totals"], *rows]


def where_of(row: dict[str, Any]) -> str:
    """The line of a row and the name of what ran; without a line that is said."""
    line, name = row["line"], row["name"]
    if line is None:
        return "no line" if name is None else f"no line, {name}"
    return line if name is None else f"{line} {name}"


@pytest.mark.traces
@pytest.mark.parametrize(
    "trace",
    [
        "a100-2022-diff-control",
        "b200-2025-vllm-eager",
        "cpu-2024-gloo-rank34",
        "h100-2025-vit",
        "mi300-2025-resnet-ddp-recompute",
        "v100-2021-resnet50-workers0.pt.trace",
    ],
)
@pytest.mark.sweep(1)
def test_the_page_says_what_the_terminal_says(
    trace: str,
    real: Callable[[str], Path],
    address: Address,
    opened: Open,
    settle: Settle,
    screenshot: Callable[[Page, str], None],
) -> None:
    advice = advised(real(trace))
    page = opened(f"{address(trace)}#/answer")
    settle(page, "answer")
    answer = said(page.locator(".answer"))
    expected = [
        wording.FINDINGS_TITLE,
        wording.HEALTH_VERDICT_SENTENCES[advice.health.verdict],
        *(unquoted(note.text) for note in advice.health.notes),
        *filter(None, (headline_texts(advice) or {}).values()),
        *expected_of_account(advice),
        *map(wording.checked_cause_text, wording.causes_not_worth_changing(advice)),
        *wording.counted_missing_data_texts(advice),
        *(f"needs {need}" for need in wording.rules_by_missing_data(advice, omit_counted=True)),
        wording.absent_causes_text(advice) or "",
        wording.joint_saving_text(advice) or "",
    ]
    assert [words for words in expected if unquoted(words) not in answer] == []
    shown = page.locator(".finding")
    expect(shown).to_have_count(len(advice.findings))
    for number, (finding, item) in enumerate(zip(advice.findings, shown.all(), strict=True)):
        head = said(item)
        assert unquoted(finding.title) in head
        assert one_line(wording.source_location_text(finding.where)) in head
        assert wording.saving_text(finding.saving) in head
        assert wording.finding_confidence_text(finding) in head
        if number > 0:  # the first is open
            item.locator(".finding-toggle").click()
        body = said(item.locator(".finding-body"))
        assert unquoted(finding.fix.text) in body
        for evidence in finding.evidence:
            metric, _, value = wording.evidence_text(evidence).rpartition(": ")
            assert f"{unquoted(metric)} {value}" in body
    screenshot(page, f"answer-{trace}")


def test_a_finding_opens_to_its_source_and_to_the_fix_as_a_diff(
    program: Path,
    served: Callable[..., str],
    opened: Open,
    settle: Settle,
    screenshot: Callable[[Page, str], None],
) -> None:
    page = opened(f"{served(program)}#/answer")
    settle(page, "answer")
    toggle = page.get_by_role("button", name=re.compile("loads data on the main thread"))
    expect(toggle).to_have_attribute("aria-expanded", "true")  # the first is
    expect(page).not_to_have_url(re.compile("open="))
    marked = page.locator(".finding-body .source code.marked")
    expect(marked).to_have_attribute("data-line", str(DEFINED))
    expect(marked).to_contain_text("def train():")
    changed = page.locator(".diff code.removed, .diff code.added")
    expect(changed.first).to_contain_text("num_workers=0,")
    assert [said(line).partition(": ")[2] for line in changed.all()] == [
        "num_workers=0,",
        "num_workers=4,",
        "persistent_workers=True,",
    ]
    screenshot(page, "finding")
    toggle.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".finding-body")).to_have_count(0)
    expect(page).to_have_url(re.compile("open=$"))
    page.reload()
    settle(page, "answer")
    expect(toggle).to_have_attribute("aria-expanded", "false")
    toggle.press("Enter")
    expect(page.locator(".finding-body")).to_have_count(1)
    expect(page).not_to_have_url(re.compile("open="))


def test_the_picture_of_the_step_is_to_scale(
    program: Path, served: Callable[..., str], opened: Open, settle: Settle
) -> None:
    (finding,) = advised(program).findings
    saving = finding.saving
    assert saving.estimate_ms is not None
    assert saving.speedup is not None
    page = opened(f"{served(program)}#/answer")
    settle(page, "answer")
    parts = page.locator(".whatif-left, .whatif-gone")
    widths = [box["width"] for part in parts.all() if (box := part.bounding_box())]
    assert len(widths) == 2
    assert widths[0] / sum(widths) == pytest.approx(1 / saving.speedup, abs=0.01)
    before = saving.estimate_ms * saving.speedup / (saving.speedup - 1)
    times = [before, before - saving.estimate_ms]
    assert page.locator(".whatif > b").all_inner_texts() == [*map(units.milliseconds_text, times)]


def test_measured_slices_are_shown_in_the_timeline(
    program: Path, served: Callable[..., str], opened: Open, settle: Settle
) -> None:
    (finding,) = advised(program).findings
    measured = finding.evidence[0].slices
    assert measured is not None
    page = opened(f"{served(program)}#/answer")
    settle(page, "answer")
    value = page.locator(".evidence tbody tr").first.get_by_role("link")
    assert value.inner_text() == wording.evidence_value_text(finding.evidence[0])
    value.click()
    settle(page, "timeline")
    expect(page).to_have_url(re.compile(f"of=finding%3A{finding.id}%3A1"))
    note = page.get_by_role("group", name="Highlighted slices")
    expect(note).to_contain_text(f"{measured.size} slices of the finding {finding.title}")


def test_a_rule_has_its_page_over_the_answer(
    program: Path, served: Callable[..., str], opened: Open, settle: Settle
) -> None:
    page = opened(f"{served(program)}#/answer")
    settle(page, "answer")
    page.get_by_role("link", name="About slow_input").click()
    sheet = page.get_by_role("dialog", name="The rule slow_input")
    expect(sheet.get_by_role("heading", name="Why it costs")).to_be_visible()
    expect(page).to_have_url(re.compile("rule=slow_input"))
    page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)
    expect(page).not_to_have_url(re.compile("rule="))


def test_a_finding_is_copied_as_markdown(
    program: Path, served: Callable[..., str], opened: Open, settle: Settle
) -> None:
    page = opened(f"{served(program)}#/answer", permissions=["clipboard-read", "clipboard-write"])
    settle(page, "answer")
    for name in ("Copy code", "Copy patch"):
        button = page.get_by_role("button", name=name)
        button.click()
        expect(button).to_contain_text("copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        if name == "Copy code":
            assert copied == advised(program).findings[0].fix.code
        else:
            assert copied.startswith("--- a/")
            assert "\n-    num_workers=0,\n+    num_workers=4,\n" in copied
    page.get_by_role("button", name="Copy as Markdown").click()
    expect(page.locator(".finding-actions .copy-told")).to_contain_text("copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    (finding,) = advised(program).findings
    assert f"### 1. {finding.title}\n" in copied
    assert wording.saving_text(finding.saving) in copied
    assert (finding.fix.code or "?") in copied
    assert copied == printed("advise", program, "--finding", finding.id)
    page.get_by_role("button", name="Copy all as Markdown").click()
    expect(page.locator(".answer-head .copy-told")).to_contain_text("copied")
    assert page.evaluate("navigator.clipboard.readText()") == printed("advise", program)


def printed(command: str, path: Path, *words: str) -> str:
    """What a command prints as Markdown."""
    done = CliRunner().invoke(app, [command, str(path), *words, "--format", "markdown"])
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_a_row_of_the_account_opens_to_its_reason(
    program: Path, served: Callable[..., str], opened: Open, settle: Settle
) -> None:
    advice = advised(program)
    account = account_data(advice, common_folder_of_findings(advice))
    assert account is not None
    page = opened(f"{served(program)}#/answer")
    settle(page, "answer")
    row = page.locator(".account-table tbody tr").first
    row.get_by_role("button").first.click()
    why = page.locator(".account-why")
    said_of_row = f"{account['rows'][0]['text']}: {account['rows'][0]['reason']}"
    expect(why).to_have_text(unquoted(said_of_row))
    expect(page).to_have_url(re.compile("why=1"))
    row.get_by_role("button").first.click()
    expect(why).to_have_count(0)


PLACES: Final = """() => [".answer-figures", ".answer-main", ".facts", ".fact"].flatMap(selector =>
  [...document.querySelectorAll(selector)].map(found => {
    const { left, top } = found.getBoundingClientRect();
    return [selector, found.dataset.fact ?? "", left, top];
  }))"""


def test_nothing_moves_when_the_advice_comes(
    program: Path, served: Callable[..., str], opened: Open
) -> None:
    page = opened(f"{served(program)}#/overview", width=1440, height=900)
    held: list[Any] = []
    page.route("**/api/advice*", lambda asked, _: held.append(asked))
    page.evaluate("location.hash = '#/answer'")
    expect(page.locator(".fact-list")).to_have_count(2)
    expect(page.locator(".fact[data-waits=true]")).to_have_count(0)
    before = page.evaluate(PLACES)
    assert len(before) > 6
    expect(page.locator(".findings")).to_have_count(0)
    (asked,) = held
    asked.continue_()
    expect(page.locator(".findings")).to_be_visible()
    assert page.evaluate(PLACES) == before


def test_the_slowest_line_is_named_at_once(
    program: Path, served: Callable[..., str], opened: Open, settle: Settle
) -> None:
    page = opened(f"{served(program)}#/answer")
    settle(page, "answer")
    first = page.locator("[data-fact=lines] li").first
    expect(first).to_contain_text("train.py")
    trace = selftime.load(str(program))
    assert isinstance(trace, selftime.Trace)
    time = trace.view("lines").row(0, named=True)["self_cpu_time"]
    expect(first).to_contain_text(units.time_text(time))
    first.get_by_role("link").click()
    settle(page, "lines")
